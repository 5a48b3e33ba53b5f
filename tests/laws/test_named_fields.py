"""Fields of messages and bodies of records are read by name: nothing looks them up by their place."""

from __future__ import annotations

import ast

import pytest

from tests.support.sources import Source, sources


def by_place(source: Source) -> list[str]:
    """Subscripts of `.body` or `.fields` by a constant, or by a slice that has one."""
    return [
        source.say(node, f".{node.value.attr} by place")
        for node in source.nodes
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Attribute)
        and node.value.attr in ("body", "fields")
        and any(isinstance(part, ast.Constant) and type(part.value) is int for part in ast.walk(node.slice))
    ]


def test_nothing_is_looked_up_by_its_place() -> None:
    assert [text for one in sources("p2pdp") for text in by_place(one)] == []


@pytest.mark.parametrize(
    "text", ["x = record.body[5]\n", "x = message.fields[-1]\n", "a = one.body[:3]\n", "f(send.message.fields[0])\n"]
)
def test_a_place_is_seen(text: str) -> None:
    assert by_place(Source("p2pdp/runs/x.py", text))


@pytest.mark.parametrize("text", ["x = record.body.sender\n", "x = columns.fields[count]\n", "x = fields[0]\n"])
def test_a_name_is_not(text: str) -> None:
    assert not by_place(Source("p2pdp/runs/x.py", text))
