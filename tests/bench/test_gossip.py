"""A benchmark forks, so it is measured in a process of its own (`tests/cli/test_bench.py`)."""

from __future__ import annotations

from typing import Any

import pytest

from p2pdp.bench import gossip as module
from p2pdp.bench.gossip import bench_gossip, bench_vectors, is_exchange, seconds_between
from p2pdp.core.errors import RunFailed, UsageError
from p2pdp.core.spec import Spec
from p2pdp.files.spec import parse_spec
from p2pdp.ledger.records import read
from tests.support.gossips import gossip
from tests.support.runs import quiet


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The specs of real rounds and the arguments of bare ones, in order; the former take two seconds, then four."""
    found: list[Any] = []
    spent: list[float] = []  # of processor time

    def real(text: str) -> dict[str, Any]:
        found.append(parse_spec(text, None))
        seconds = 2.0 * sum(isinstance(one, Spec) for one in found)
        times = {"seconds_until_enrolled": 1.0, "seconds_in_all": 4.0}
        return {"seconds": seconds, "exchanges": 800, "cpu_seconds": 0.4, **times}

    def bare(neighbours: Any, frame_bytes: int, rounds: int) -> float:
        found.append((len(neighbours), {len(one) for one in neighbours}, frame_bytes, rounds))
        spent.append(0.16)
        return 1.0

    monkeypatch.setattr(module, "cpu_s", lambda: sum(spent))
    monkeypatch.setattr(module, "measure_gossip", real)
    monkeypatch.setattr(module, "bare_rounds", bare)
    return found


def test_rates_are_those_of_the_rounds_and_bare_ones_take_turns_with_them(asked: list[Any]) -> None:
    measured = bench_gossip(10, 4, 20, 3)
    pairs = measured.pop("pairs")
    assert [pair["rounds_per_second"] for pair in pairs] == [10.0, 5.0, 20 / 6]
    assert measured == {
        "transport": "tcp", "nodes": 10, "degree": 4, "rounds": 20, "numbers": 1, "rounds_per_second": 5.0,
        "bare_rounds_per_second": 20.0, "ratio": 0.25, "messages_per_second": 200.0,
        "cpu_us_per_message": pytest.approx(500.0), "bare_cpu_us_per_message": pytest.approx(200.0),
        "seconds": 4.0, "seconds_until_enrolled": 1.0, "seconds_in_all": 4.0,
    }  # fmt: skip
    assert [isinstance(one, Spec) for one in asked] == [False, True, True, False, False, True]
    spec = asked[1]
    assert (spec.run.nodes, spec.run.transport, spec.graph.kind, spec.graph.degree) == (10, "tcp", "regular", 4)
    assert spec.options.rounds == 20
    assert asked[0] == (10, {4}, 256, 20)


def test_vectors_have_as_many_numbers_as_asked_for(asked: list[Any]) -> None:
    measured = bench_vectors(6, 2, 1000, 5, 1)
    assert (measured["nodes"], measured["numbers"], measured["rounds_per_second"]) == (6, 1000, 2.5)
    bare, spec = asked
    assert spec.data.kind == "npy"
    assert bare == (6, {2}, 16384, 5)


@pytest.mark.parametrize(("nodes", "degree", "rounds", "says"), [
    (16, 4, 0, "--rounds 0"), (4, 4, 9, "--degree 4"), (5, 3, 9, "product even"), (9, 1, 9, "--degree 1"),
])  # fmt: skip
def test_what_cannot_be_measured_is_refused(nodes: int, degree: int, rounds: int, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        bench_gossip(nodes, degree, rounds)
    with pytest.raises(UsageError, match=says):
        bench_vectors(nodes, degree, 10, rounds)


@pytest.mark.parametrize(("numbers", "says"), [(0, "--numbers 0"), (10**8, "frame")])
def test_vectors_that_fit_into_no_frame_are_refused(numbers: int, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        bench_vectors(6, 2, numbers)


def test_rounds_last_from_the_first_to_go_to_the_last_result() -> None:
    run = quiet(gossip(6, "ring", "rounds = 5"))
    users = [read(bytes(run.world.processes[user].disk.view)).records for user in range(6)]
    assert sum(is_exchange(record) for records in users for record in records) == 2 * 6 * 5
    seconds = seconds_between(users)
    assert 5 * 0.001 <= seconds <= run.world.now_s  # a message takes a millisecond there
    assert seconds_between(users[:3]) <= seconds
    with pytest.raises(RunFailed, match="1 users did not come to a result"):
        seconds_between([*users, []])
