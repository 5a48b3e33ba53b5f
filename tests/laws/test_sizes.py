"""Files stay within 400 lines and functions within 70, so that each can be read in one go."""

from __future__ import annotations

import ast

from tests.support.sources import Source, sources

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70


def oversized(source: Source) -> list[str]:
    lines = len(source.text.splitlines())
    said = [f"{source.path}: {lines} lines"] if lines > FILE_LINES_MAX else []
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                said.append(source.say(node, f"{node.name} has {length} lines"))
    return said


def test_nothing_is_oversized() -> None:
    assert [text for source in sources("p2pdp") for text in oversized(source)] == []


def test_the_limits_hold_to_the_line() -> None:
    def seen(text: str) -> int:
        return len(oversized(Source("p2pdp/core/x.py", text)))

    body = "    a = 1\n"
    assert seen("a = 1\n" * 400) == 0
    assert seen("a = 1\n" * 401) == 1
    assert seen("def f():\n" + body * 69) == 0
    assert seen("def f():\n" + body * 70) == 1
    assert seen("class A:\n  async def f(self):\n" + body * 70) == 1
