from __future__ import annotations

from tests.support.sources import sources
from tests.support.workers import CONTAINERS, scope, workers


def test_only_tests_of_containers_share_a_worker() -> None:
    assert scope(f"{CONTAINERS}::test_a[b::c]") == scope(f"{CONTAINERS}::test_b") == CONTAINERS
    assert scope("tests/wire/test_a.py::test_b") == "tests/wire/test_a.py::test_b"


def test_whoever_brings_containers_up_is_among_them() -> None:
    users = [source.path for source in sources("tests") if "Project(" in source.text and "/test_" in source.path]
    assert {path for path in users if not path.endswith("laws/test_workers.py")} == {CONTAINERS}


def test_there_are_more_workers_than_cores_where_there_are_several() -> None:
    assert [workers(cores) for cores in (1, 2, 4, 5)] == [1, 3, 6, 8]
