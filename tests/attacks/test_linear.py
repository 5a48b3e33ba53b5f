from __future__ import annotations

import pytest

from p2pdp.attacks.linear import read_linear, readings
from p2pdp.core.errors import Refused
from p2pdp.files.spec import parse_spec
from p2pdp.protocols.gossip.analysis.decoding import read_gossip
from p2pdp.protocols.run_plan import plan_run
from p2pdp.replay.foreseen import Foreseen, foresee
from tests.support.gossips import gossip
from tests.support.runs import Run, run_of


def foreseen(run: Run) -> Foreseen:
    spec = run.evidence.spec
    return foresee(plan_run(spec, spec.run.nodes, 1))


@pytest.mark.parametrize(("n", "rounds"), [(4, 1), (5, 2), (6, 3)])
def test_it_reads_whom_the_attack_on_gossip_reads(n: int, rounds: int) -> None:
    run = run_of(gossip(n, "path", f"rounds = {rounds}"), reordering=False)
    ahead = foreseen(run)
    for observer in range(n):
        contents = run.contents()[observer]
        found = read_linear(run.plan, observer, contents, ahead)
        known = {users[0]: total for users, total, _ in read_gossip(run.plan, observer, contents)}
        assert found.keys() == known.keys()
        assert found == pytest.approx(known, rel=1e-3)
        assert [users for users, _, _ in readings(found)] == [(user,) for user in sorted(found)]


def test_it_does_not_read_what_went_otherwise() -> None:
    run = run_of(gossip(4, "ring", "rounds = 2"), reordering=False)
    spec = parse_spec(gossip(4, "ring", "rounds = 1"), None)
    other = foresee(plan_run(spec, 4, 1))
    with pytest.raises(Refused, match="late or lost"):
        read_linear(run.plan, 0, run.contents()[0], other)
