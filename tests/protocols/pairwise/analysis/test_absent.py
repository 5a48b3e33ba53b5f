"""Claims of a run without the ledgers of some users are those with them, for all observers that are at hand."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from p2pdp.auditor.audit import Audit, audit_run
from p2pdp.core.claims import Observer
from p2pdp.core.ids import Peer
from p2pdp.core.step import Message
from p2pdp.protocols.pairwise.analysis.absent import AbsentFromSum
from p2pdp.protocols.pairwise.plan import MASKED, SHARE
from p2pdp.replay.evidence import Recorded
from p2pdp.sim.faults import Crash
from tests.support.pairwise_runs import Ran, simulated
from tests.support.pairwise_world import COUNTS, pairwise

DELTA = 1e-5
SPARSE = '"regular"\ndegree = 4'
GAUSSIAN = 'mechanism = "gaussian"\nsigma = 1.0\npair_sigma = 3.0'


def audited(
    ran: Ran, missing: Collection[Peer], colluders: Collection[Peer] = (), gone: Collection[Peer] = ()
) -> Audit:
    views = {peer: view for peer, view in ran.recorded.views.items() if peer not in missing}
    incomplete = sorted({*missing, *gone})
    return audit_run(ran.run, Recorded(ran.run, views), incomplete, DELTA, sorted(colluders))


def mu_of(audit: Audit) -> dict[str, float | None]:
    return {one.observer: one.mu_max for one in audit.claims if one.method == "exact" and one.observer != Observer.NODE}


@pytest.mark.parametrize(
    "text",
    [
        pairwise(6, SPARSE, privacy="colluders_max = 1"),
        pairwise(6, SPARSE, terms='masks = "gaussian"', noise=GAUSSIAN),
        pairwise(6, SPARSE, terms='masks = "gaussian"\nsettle = "none"', noise=GAUSSIAN),
        pairwise(5, data=COUNTS),
    ],
)
@pytest.mark.parametrize("missing", [(2,), (0, 3)])
def test_what_absent_users_sent_is_rebuilt(text: str, missing: tuple[Peer, ...]) -> None:
    ran = simulated(text, 1)
    whole, less = audited(ran, (), (1, 4)), audited(ran, missing, (1, 4))
    known = mu_of(less)
    assert {"curator", "curator+coalition", "coalition", "public"} <= known.keys()
    assert known == {observer: pytest.approx(mu_of(whole)[observer], rel=1e-9) for observer in known}
    claim = next(one for one in less.claims if one.observer == "curator")
    assert all(any(f"user {user}," in said for said in claim.assumptions) for user in missing)
    assert whole.mu is not None
    assert less.mu is not None
    at_hand = [user for user in range(ran.run.n) if user not in missing]
    for observer in at_hand:
        for user in set(range(ran.run.n)) - {observer}:
            assert less.mu[user, observer] == pytest.approx(whole.mu[user, observer], rel=1e-9)


@pytest.mark.parametrize("records", [12, 16, 20, 24, 28])
def test_a_user_that_was_put_out_is_rebuilt_too(records: int) -> None:
    text = pairwise(6, SPARSE, terms="survivors_min = 4").replace("seed = 3\n", "seed = 3\npatience_s = 2.0\n")
    ran = simulated(text, 1, Crash(3, at_record=records, down_s=None))
    assert ran.world.out == [3]
    whole, less = audited(ran, (), (1,), (3,)), audited(ran, (3,), (1,))
    assert mu_of(whole)
    assert mu_of(less) == {observer: pytest.approx(mu, rel=1e-9) for observer, mu in mu_of(whole).items()}


def test_the_scale_that_the_end_at_hand_recorded_counts_and_not_that_of_the_plan() -> None:
    ran = simulated(pairwise(6, SPARSE, terms='masks = "gaussian"', noise=GAUSSIAN), 1)
    plan = ran.run.plan
    stronger = replace(ran.run, plan=replace(plan, mask=plan.mask._replace(scale=2 * plan.mask.scale)))
    built = AbsentFromSum(stronger, {peer: view for peer, view in ran.recorded.views.items() if peer != 2})
    built.sent(2, -2, Message(MASKED, (sorted(built._around[2]),)))
    recorded = Recorded(ran.run, {peer: view for peer, view in ran.recorded.views.items() if peer != 2})
    assert set(built.pairs.values()) == {stronger.plan.mask}
    assert set(recorded.transcript.pairs.values()) == {plan.mask}


def test_a_user_of_whom_only_parts_of_keys_arrived_is_named_as_rebuilt_too() -> None:
    ran = simulated(pairwise(6, SPARSE), 1)
    built = AbsentFromSum(ran.run, {peer: view for peer, view in ran.recorded.views.items() if peer != 2})
    assert built.sent(2, 1, Message(SHARE)) is not None
    assert built.rebuilt == {2}
