"""Only the room of transports knows a kind of transport by its name; everybody else asks the registry."""

from __future__ import annotations

import ast

from p2pdp.transports.registry import ours
from tests.support.sources import Source, sources

NAMES = frozenset(ours())


def decisions(source: Source) -> list[str]:
    """Comparisons and look-ups with the name of a kind."""
    said = []
    for node in source.nodes:
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            parts = [node.value]
        else:
            continue
        words = {each.value for part in parts for each in ast.walk(part) if isinstance(each, ast.Constant)}
        said += [source.say(node, f"ask the registry instead of {name!r}") for name in sorted(NAMES & words)]
    return said


def test_nobody_else_decides_by_the_name_of_a_transport() -> None:
    assert [text for source in sources("p2pdp") if source.room != "transports" for text in decisions(source)] == []


def test_a_decision_by_name_is_seen() -> None:
    for text in (
        'if run.transport == "mqtt":\n    pass\n',
        'a = transport not in ("tcp", "mqtt")\n',
        'match kind:\n    case "memory":\n        pass\n',
    ):
        assert decisions(Source("p2pdp/runs/x.py", text)) != []
    assert decisions(Source("p2pdp/runs/x.py", 'transport = "tcp"\n')) == []
