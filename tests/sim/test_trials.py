from __future__ import annotations

from dataclasses import replace

import pytest

from p2pdp.files.spec import parse_spec
from p2pdp.protocols import names
from p2pdp.protocols.gossip.analysis.fast import fast_averages
from p2pdp.runs.prepared import prepare
from p2pdp.sim.trials import COMPARED_MAX, Trials
from tests.contracts.frozen import specs
from tests.support.small import RING


@pytest.mark.parametrize("name", names())
def test_each_protocol_gives_one_outcome_a_trial_and_begins_each_once(name: str) -> None:
    spec = next(spec for spec in specs().values() if spec.run.protocol == name)
    first = prepare(spec)
    begun: list[int] = []
    trials = Trials(first.run, first.rows, 3, 3, False, lambda _: (first.run, first.rows), begun.append)
    found = first.run.protocol.analysis().fast(trials)
    assert found is not None
    assert len(list(found)) == 3
    assert begun == [0, 1, 2]


def test_other_seeds_give_other_results() -> None:
    first = prepare(parse_spec(RING, None))
    trials = Trials(first.run, first.rows, 3, 4, True, lambda _: (first.run, first.rows), lambda _: None)
    found = first.run.protocol.analysis().fast(trials)
    assert found is not None
    assert len({float(one.published) for one in found}) == 4


def test_only_the_first_of_all_trials_has_a_standard_error_worked_out() -> None:
    """Where several processes share the trials, each would spend more on it than on everything else."""
    spec = next(spec for spec in specs().values() if spec.run.protocol == "gossip.average" and spec.run.nodes < 20)
    first = prepare(spec)
    known = []
    for begin in (0, 5):
        trials = Trials(first.run, first.rows, 3, 2, True, lambda _: (first.run, first.rows), lambda _: None, begin)
        known.append([one.deviation is not None for one in fast_averages(trials)])
    assert known == [[True, False], [False, False]]


@pytest.mark.parametrize("name", ["sample:walk_sgd", "sample:gossip_sgd"])
def test_only_the_first_trials_of_all_are_looked_at_on_the_way(name: str) -> None:
    first = prepare(specs()[name])
    run = replace(first.run, public=first.rows(0))
    trials = Trials(run, first.rows, 3, 2, True, lambda _: (run, first.rows), lambda _: None)
    fast = run.protocol.analysis().fast
    for begin in (0, COMPARED_MAX - 1, COMPARED_MAX):
        found = fast(replace(trials, begin=begin))
        assert found is not None
        assert [one.curve is not None for one in found] == [begin + number < COMPARED_MAX for number in range(2)]
