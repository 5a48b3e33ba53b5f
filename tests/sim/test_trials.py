from __future__ import annotations

import pytest

from p2pdp.files.spec import parse_spec
from p2pdp.protocols import names
from p2pdp.runs.prepared import prepare
from p2pdp.sim.trials import Trials
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
