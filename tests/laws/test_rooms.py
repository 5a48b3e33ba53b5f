"""A room imports only what its line in the table names; the guide's page on architecture shows the table."""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.support.sources import TOP, Source, module_level, room_within, sources

ROOMS: dict[str, str] = {
    "core": "",
    "topology": "core",
    "mechanisms": "core",
    "tasks": "core mechanisms",
    "protocols": "core mechanisms topology tasks analysis",
    "wire": "core",
    "crypto": "core wire",
    "ledger": "core wire crypto",
    "privacy": "core topology mechanisms",
    "replay": "core wire crypto ledger protocols mechanisms tasks topology",
    "auditor": "core crypto ledger replay protocols mechanisms privacy topology transports",
    "attacks": "core wire ledger replay assembly protocols mechanisms tasks topology sim",
    "analysis": "core wire crypto ledger replay auditor assembly attacks sim protocols mechanisms privacy topology "
    "tasks",
    "services": "core wire crypto ledger topology mechanisms tasks protocols",
    "peer": "core wire crypto ledger mechanisms",
    "assembly": "core replay peer services wire crypto ledger protocols mechanisms tasks topology",
    "transports": "core wire crypto",
    "files": "core ledger crypto replay topology mechanisms tasks protocols transports",
    "node": "core assembly peer transports services files crypto ledger wire protocols mechanisms tasks topology "
    "privacy",
    "cluster": "core node services files transports crypto ledger replay mechanisms protocols",
    "sim": "core assembly peer services wire crypto ledger protocols mechanisms tasks topology",
    "report": "core auditor assembly protocols",
    "web": "core report",
    "index": "core",
    "__main__": "cli",
    "__init__": "core api tasks",
}
# These may import every room of the table and each other, as long as no cycle comes of it.
DOORS = ("runs", "bench", "experiments", "api", "cli")
# A light node process must not load these until it needs them.
LAZY = {("node", "privacy"), ("protocols", "analysis")}
# A protocol names its analysis, which is imported when somebody asks for it and is no part of a circle.
LATE = ("protocols", "analysis")

ALLOWED = {room: frozenset(names.split()) for room, names in ROOMS.items()} | {
    door: frozenset(ROOMS) | frozenset(DOORS) for door in DOORS
}


def room_of(dotted: str) -> str:
    """The room that a dotted name below p2pdp belongs to; what p2pdp itself exports is `__init__`."""
    parts = dotted.split(".")
    return room_within(parts[1:]) if len(parts) > 1 and parts[1] in ALLOWED else "__init__"


def imported(source: Source) -> list[tuple[ast.AST, str]]:
    """Every place that imports something of ours, with its dotted name; by `importlib` too."""
    by_name = any(name.startswith("importlib") or name == "builtins.__import__" for _, name in source.mentions)
    found: list[tuple[ast.AST, str]] = []
    for node in source.nodes:
        if isinstance(node, ast.Import):
            found += [(node, name.name) for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node, name) for name in source.targets(node).values()]
        elif by_name and isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append((node, node.value))
    return [(node, name) for node, name in found if name == "p2pdp" or name.startswith("p2pdp.")]


def foreign_imports(source: Source) -> list[str]:
    if source.room not in ALLOWED:
        return [source.say(source.tree, f"no room is called {source.room}: the table does not have it")]
    early = module_level(source.tree)
    said = []
    for node, name in imported(source):
        room = room_of(name)
        if room == source.room:
            continue
        if room not in ALLOWED[source.room]:
            said.append(source.say(node, f"{source.room} may not import {name}"))
        elif (source.room, room) in LAZY and node in early:
            said.append(source.say(node, f"{source.room} may import {name} inside functions only"))
    return said


def dotted_imports(source: Source) -> list[str]:
    """`import p2pdp.room.module` would read a room's name through p2pdp, where a function may bear it."""
    return [
        source.say(node, f"write `from {name.name} import ...`")
        for node in source.nodes
        if isinstance(node, ast.Import)
        for name in node.names
        if name.name.startswith("p2pdp.")
    ]


def cycles(files: list[Source]) -> list[str]:
    doors: dict[str, set[str]] = {}
    for source in files:
        found = {room_of(name) for _, name in imported(source)} - {source.room}
        doors.setdefault(source.room, set()).update(room for room in found if (source.room, room) != LATE)
    try:
        TopologicalSorter(doors).prepare()
    except CycleError as error:
        return [f"the rooms import each other in a circle: {' <- '.join(error.args[1])}"]
    return []


def test_rooms_import_only_what_their_line_names() -> None:
    assert [text for source in sources("p2pdp") for text in foreign_imports(source)] == []


def test_the_map_in_the_guide_is_the_table() -> None:
    page = (TOP / "p2pdp" / "guide" / "architecture.md").read_text()
    drawn = page.partition("```\nroom ")[2].partition("```")[0].splitlines()[1:]
    rows = [re.split(r" {2,}", line) for line in drawn]
    found = {room: frozenset(imports.replace("-", " ").split()) for room, _, imports in rows}
    assert found == {room: ALLOWED[room] for room in ROOMS if not room.startswith("__")}


def test_ours_is_imported_by_from_only() -> None:
    assert [text for source in sources("p2pdp") + sources("tests") for text in dotted_imports(source)] == []


def test_no_room_imports_another_in_a_circle() -> None:
    assert cycles(list(sources("p2pdp"))) == []


def test_the_table_itself_has_no_circle_and_no_unknown_room() -> None:
    rooms = {room: ALLOWED[room] - set(DOORS) - {"cli"} for room in ROOMS}
    rooms[LATE[0]] = rooms[LATE[0]] - {LATE[1]}
    assert set().union(*rooms.values()) <= set(ROOMS)
    TopologicalSorter(rooms).prepare()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("p2pdp/core/x.py", "from p2pdp.wire.codec import pack\n"),
        ("p2pdp/core/x.py", "def f():\n    from p2pdp.wire import codec\n"),
        ("p2pdp/core/x.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p2pdp.wire import codec\n"),
        ("p2pdp/core/x.py", "from ..wire import codec\n"),
        ("p2pdp/core/x.py", "from .. import wire\n"),
        ("p2pdp/core/x.py", "from p2pdp import wire as w\n"),
        ("p2pdp/core/x.py", "from p2pdp import Spec\n"),
        ("p2pdp/core/__init__.py", "from ..api import audit\n"),
        ("p2pdp/attacks/x.py", "import p2pdp.privacy.gaussian\n"),
        ("p2pdp/protocols/x.py", "from importlib import import_module\nm = import_module(f'p2pdp.peer.{1}')\n"),
        ("p2pdp/protocols/x.py", "m = __import__('p2pdp.peer')\n"),
        ("p2pdp/cellar/x.py", "a = 1\n"),
        ("p2pdp/loose.py", "a = 1\n"),
        ("p2pdp/node/x.py", "from p2pdp.privacy.gaussian import curve\n"),
        ("p2pdp/protocols/x.py", "from p2pdp.protocols.walk.analysis.sums import WalkAnalysis\n"),
        ("p2pdp/protocols/walk/x.py", "from p2pdp.protocols.defaults import Analysis\n"),
        ("p2pdp/protocols/walk/x.py", "from p2pdp.auditor.local import local_account\n"),
        ("p2pdp/node/x.py", "class A:\n    from p2pdp.privacy.gaussian import curve\n"),
    ],
)
def test_a_foreign_import_is_seen(path: str, text: str) -> None:
    assert len(foreign_imports(Source(path, text))) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("p2pdp/core/x.py", "import math\nfrom p2pdp.core.ids import Peer\nfrom .ids import Peer\nfrom . import ids\n"),
        ("p2pdp/core/__init__.py", "from . import ids\nfrom .ids import Peer\n"),
        ("p2pdp/ledger/x.py", "from p2pdp.wire.codec import pack\n"),
        ("p2pdp/node/x.py", "def f():\n    from p2pdp.privacy.gaussian import curve\n"),
        ("p2pdp/protocols/x.py", "LABEL = 'p2pdp.peer'\n"),
        ("p2pdp/api.py", "from p2pdp.auditor import claims\n"),
    ],
)
def test_what_the_table_allows_is_not_accused(path: str, text: str) -> None:
    assert foreign_imports(Source(path, text)) == []


def test_a_circle_is_seen() -> None:
    first = Source("p2pdp/api.py", "def f():\n    from p2pdp.cli.main import main\n")
    second = Source("p2pdp/cli/main.py", "from p2pdp.api import audit\n")
    assert cycles([first]) == cycles([second]) == []
    assert len(cycles([first, second])) == 1


def test_a_dotted_import_is_seen() -> None:
    assert len(dotted_imports(Source("p2pdp/cli/x.py", "import math\nimport p2pdp.auditor.claims\n"))) == 1
