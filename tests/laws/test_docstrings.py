"""Docstrings say what a thing is or does: none begins as a relative clause or with a preposition."""

from __future__ import annotations

import ast
import re

from tests.support.sources import Source, sources

FRAGMENT = re.compile(
    "(?:Of|Who|Whom|Whose|What|Whether|Which|By|From|How|Where|When|That|Those|As|In|With|For|Until|At|None)\\b"
)


def fragments(source: Source) -> list[str]:
    return [
        source.say(node, f"a docstring begins with {begun[0]!r}")
        for node in source.nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (begun := FRAGMENT.match(ast.get_docstring(node) or ""))
    ]


def test_no_docstring_is_a_fragment() -> None:
    assert [text for source in sources("p2pdp") for text in fragments(source)] == []


def test_a_fragment_is_seen() -> None:
    def seen(first: str, kind: str = "def") -> int:
        return len(fragments(Source("p2pdp/core/x.py", f'class A:\n    {kind} f(self):\n        """{first} x."""\n')))

    assert [seen(word) for word in ("Of", "Whether", "None", "What")] == [1, 1, 1, 1]
    assert seen("How", "async def") == 1
    assert len(fragments(Source("p2pdp/core/x.py", '"""What x."""\n\n\nclass A:\n    """Where x."""\n'))) == 2
    assert [seen(word) for word in ("Return", "Format", "Informs", "Whatever")] == [0, 0, 0, 0]
    assert fragments(Source("p2pdp/core/x.py", "def f():\n    pass\n")) == []
