"""A family is a folder: nothing outside it, the experiments and the tests names a family, its plans or its modules."""

from __future__ import annotations

import ast
import re

import pytest

from p2pdp.protocols import names
from tests.support.sources import Source, sources

FAMILIES = frozenset(name.partition(".")[0] for name in names())
WITHIN = tuple(f"p2pdp/protocols/{family}/" for family in FAMILIES)
FREE = (*WITHIN, "p2pdp/experiments/")


def named(source: Source) -> list[str]:
    """Imports from families, names of protocols, and tests of a plan's type."""
    said = []
    for node in source.nodes:
        if isinstance(node, ast.ImportFrom):
            for name in source.targets(node).values():
                parts = name.split(".")
                if parts[:2] == ["p2pdp", "protocols"] and len(parts) > 2 and parts[2] in FAMILIES:
                    said.append(source.say(node, f"imports {name}"))
        elif isinstance(node, ast.Constant) and node.value in names():
            said.append(source.say(node, f"names {node.value}"))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            kinds = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
            said += [source.say(node, f"asks for {kind}") for kind in sorted(kinds) if kind.endswith("Plan")]
        for text in asked(node):
            said.append(source.say(node, f"asks for {text}"))
    return said


def asked(node: ast.AST) -> list[str]:
    """Return the families that a comparison, or a test of a prefix, asks for."""
    compared = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
    prefix = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "startswith"
    constants = [
        part.value
        for part in (node.args if prefix and isinstance(node, ast.Call) else compared)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    return [text for text in constants if text.partition(".")[0] in FAMILIES]


def test_nothing_outside_a_family_names_it() -> None:
    bound = [one for one in sources("p2pdp") if not one.path.startswith(FREE)]
    assert [text for one in bound for text in named(one)] == []


def test_nothing_asks_for_the_type_of_a_plan() -> None:
    """Not even its own family: a plan says by its properties what it is."""
    said = [text for one in sources("p2pdp") for text in named(one)]
    assert [text for text in said if "asks for" in text and text.endswith("Plan")] == []


def test_a_family_names_no_other() -> None:
    said = []
    for family in FAMILIES:
        foreign = re.compile(rf"imports p2pdp\.protocols\.(?!{family}\b)")
        inside = [one for one in sources("p2pdp") if one.path.startswith(f"p2pdp/protocols/{family}/")]
        said += [text for one in inside for text in named(one) if foreign.search(text)]
    assert said == []


@pytest.mark.parametrize(
    "text",
    [
        "from p2pdp.protocols.walk.sgd import SgdPlan\n",
        "def f():\n    from p2pdp.protocols.gossip import plan\n",
        'x = "walk.sum"\n',
        "a = isinstance(run.plan, SgdPlan | WalkPlan)\n",
        'a = result.protocol.startswith("shuffle")\n',
        'a = family == "gossip"\n',
    ],
)
def test_a_name_is_seen(text: str) -> None:
    assert named(Source("p2pdp/runs/x.py", text))
