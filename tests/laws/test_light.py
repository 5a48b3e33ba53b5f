"""A light node process loads nothing heavy, and importing anything of ours touches no network."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tests.support.sources import TOP, Source, module_level, sources, within

HEAVY = ("scipy", "networkx", "typer", "rich", "aiohttp", "sqlalchemy", "matplotlib", "torch")
LIGHT = ("peer", "protocols", "tasks", "ledger", "crypto", "wire", "core")
WITHOUT_NUMPY = ("core", "wire", "crypto", "ledger", "peer", "services")
ARRAYS = "p2pdp/core/arrays.py"  # names types; who holds arrays has numpy anyway
ALWAYS_LAZY = ("scipy", "networkx", "torch", "pyarrow")

LOADED = """
import sys
from importlib import import_module
for name in sys.argv[2:]:
    import_module(name)
print(*(name for name in sys.argv[1].split() if name in sys.modules))
"""
OFFLINE = """
import sys
from importlib import import_module
def refuse(event, arguments):
    if event.startswith(("socket.", "urllib.", "http.", "ftplib.", "smtplib.")):
        raise SystemExit(f"importing {name} raised the event {event}")
sys.addaudithook(refuse)
for name in sys.argv[1:]:
    import_module(name)
"""


def fresh(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script in an interpreter that has imported nothing of ours yet."""
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=TOP, capture_output=True, text=True, check=False, timeout=240
    )


def loaded(candidates: tuple[str, ...], modules: list[str]) -> list[str]:
    done = fresh(LOADED, " ".join(candidates), *modules)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def modules_of(room: str) -> list[str]:
    return [source.module for source in sources("p2pdp") if source.path.startswith(f"p2pdp/{room}/")]


def early_imports(source: Source, names: tuple[str, ...]) -> list[str]:
    """Imports of these packages that run when the module itself is imported."""
    return [
        source.say(node, f"{name} is to be imported inside functions")
        for node in module_level(source.tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([n.name for n in node.names] if isinstance(node, ast.Import) else source.targets(node).values())
        if any(within(name, heavy) for heavy in names)
    ]


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded((*HEAVY, "numpy", "nacl", "msgpack"), ["p2pdp"]) == []


@pytest.mark.parametrize("room", LIGHT)
def test_a_light_room_loads_nothing_heavy(room: str) -> None:
    assert loaded(HEAVY, ["p2pdp", *modules_of(room)]) == []


def test_heavy_packages_are_imported_where_they_are_used() -> None:
    said = [text for source in sources("p2pdp") for text in early_imports(source, ALWAYS_LAZY)]
    said += [
        text
        for source in sources("p2pdp")
        if source.room in WITHOUT_NUMPY and source.path != ARRAYS
        for text in early_imports(source, ("numpy", "p2pdp.core.arrays"))
    ]
    assert said == []


def test_importing_any_module_touches_no_network() -> None:
    names = [source.module for source in sources("p2pdp") if not source.path.endswith("/__main__.py")]
    done = fresh(OFFLINE, *names)
    assert done.returncode == 0, done.stderr


def test_a_heavy_import_and_a_connection_are_seen() -> None:
    assert loaded(("scipy", "decimal"), ["decimal"]) == ["decimal"]
    assert fresh(OFFLINE, "json").returncode == 0
    caught = fresh(f"{OFFLINE}\nname = 'x'\nimport socket\nsocket.socket()")
    assert "raised the event socket.__new__" in caught.stderr


@pytest.mark.parametrize(
    "text",
    [
        "import scipy.sparse as sparse",
        "from scipy import linalg",
        "class A:\n    import scipy",
        "try:\n    import scipy\nexcept ImportError:\n    pass",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    pass\nelse:\n    import scipy",
    ],
)
def test_an_early_import_is_seen(text: str) -> None:
    assert len(early_imports(Source("p2pdp/auditor/x.py", text), ("scipy",))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    import scipy",
        "class A:\n    def f(self):\n        from scipy import linalg",
        "import typing\nif typing.TYPE_CHECKING:\n    import scipy",
        "import scipyish",
    ],
)
def test_a_late_import_is_not_accused(text: str) -> None:
    assert early_imports(Source("p2pdp/auditor/x.py", text), ("scipy",)) == []
