from __future__ import annotations

import ast

from tests.support.sources import sources
from tests.support.tiers import in_slow_room, is_fast, slow_tests


def test_slow_tests_are_tests() -> None:
    found = {
        f"{source.path.removeprefix('tests/')}::{node.name}"
        for source in sources("tests")
        for node in source.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert sorted(slow_tests() - found) == [], "tests/slow.txt names tests that are gone"


def test_tiers_are_of_rooms_and_functions() -> None:
    slow = {"core/test_x.py::test_b"}
    assert is_fast("tests/core/test_x.py::test_a[b]", slow)
    assert is_fast("tests/core/test_x.py::test_bc", slow)
    assert not is_fast("tests/core/test_x.py::test_b", slow)
    assert not is_fast("tests/core/test_x.py::test_b[1-2]", slow)
    assert not is_fast("tests/system/test_y.py::test_a", slow)
    assert in_slow_room("tests/system")
    assert not in_slow_room("tests")
    assert not in_slow_room("system/test_y.py")
