from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.auditor import pairs
from p2pdp.auditor.audit import audit_run
from p2pdp.auditor.claims import gaussian_claim
from p2pdp.auditor.context import AccountResult, AuditContext
from p2pdp.auditor.exact import exact_account
from p2pdp.auditor.pairs import Gathering, PairTotals, blocks_of
from p2pdp.core.arrays import Floats
from p2pdp.core.claims import Claim, Observer, Protected, Unit
from p2pdp.privacy.gaussian_curve import epsilons_of
from p2pdp.protocols.gossip.analysis.account import gossip_account
from p2pdp.replay.evidence import Recorded
from tests.support.gossip_specs import LOSSY, shared
from tests.support.gossips import context_of, gossip
from tests.support.pairwise_world import pairwise
from tests.support.runs import DELTA, Run, quiet, run_of

PROTECTED = Protected(Unit.USER)


def test_blocks_have_all_observers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "BLOCK_PAIRS", 25)
    assert [list(range(7))[block] for block in blocks_of(7, 10)] == [[0, 1], [2, 3], [4, 5], [6]]
    assert [list(range(2))[block] for block in blocks_of(2, 100)] == [[0], [1]]
    assert list(blocks_of(0, 10)) == []


def summed_up(mu: Floats, observers: Sequence[int], size: int, more: float = 0.0) -> tuple[PairTotals, Claim]:
    gathering = Gathering(len(mu), DELTA)
    for start in range(0, len(observers), size):
        some = observers[start : start + size]
        gathering.add(some, mu[:, some], mu[:, some] + more)
    return gathering.totals(), gathering.claim(PROTECTED, "exact", ("said",))


LEAKS = st.sampled_from([0.0, 0.125, 0.25, 0.25, 1.0, 3.0, math.inf, math.nan])


@given(st.data(), st.integers(2, 6), st.integers(1, 4), st.sampled_from([0.0, 0.5]))
def test_totals_are_those_of_the_whole_matrix(data: st.DataObject, users: int, size: int, more: float) -> None:
    mu = np.array([[data.draw(LEAKS) for _ in range(users)] for _ in range(users)])
    np.fill_diagonal(mu, math.nan)
    mu[0, 1], observers = 0.25, sorted({1, *data.draw(st.sets(st.integers(0, users - 1)))})
    found, claim = summed_up(mu, observers, size, more)
    epsilon = epsilons_of(DELTA, mu + more)[:, observers]
    there = ~np.isnan(epsilon)
    assert (found.pairs, found.infinite) == (there.sum(), np.isinf(epsilon).sum())
    for user in range(users):
        given_ones = epsilon[user][there[user]]
        if not len(given_ones):
            assert math.isnan(found.epsilon[user])
            assert found.observer[user] == -1
            continue
        worst = int(np.nanargmax(epsilon[user]))
        assert found.epsilon[user] == pytest.approx(epsilon[user, worst], rel=1e-11)
        assert found.observer[user] == observers[worst]
        assert found.mu[user] == mu[user, observers[worst]]
        assert found.mean[user] == pytest.approx(given_ones.mean(), rel=1e-11)
    first, column = divmod(int(np.argmin(np.where(there, epsilon, math.inf))), len(observers))
    assert found.best[2] == pytest.approx(epsilon[first, column], rel=1e-11)
    if there.all() or found.best[2] < math.inf:
        assert found.best[:2] == (first, observers[column])
    whole = gaussian_claim(PROTECTED, Observer.NODE, "exact", DELTA, (mu + more)[:, observers], observers, ("said",))
    assert claim.epsilon_mean == pytest.approx(whole.epsilon_mean, rel=1e-11)
    assert claim.mu_mean == pytest.approx(whole.mu_mean, rel=1e-11)
    assert replace(claim, epsilon_mean=None, mu_mean=None) == replace(whole, epsilon_mean=None, mu_mean=None)


def test_the_best_of_infinite_pairs_is_a_pair() -> None:
    mu = np.full((3, 3), math.inf)
    np.fill_diagonal(mu, math.nan)
    found, _ = summed_up(mu, range(3), 1)
    assert found.best == (0, 1, math.inf, math.inf)


def test_another_mechanism_costs_every_pair_the_same_and_leaves_no_mu() -> None:
    found, _ = summed_up(np.array([[math.nan, 1.0], [0.5, math.nan]]), [0, 1], 1)
    dearer = found.with_cost(2.0)
    assert dearer.epsilon.tolist() == (found.epsilon + 2.0).tolist()
    assert dearer.mean.tolist() == (found.mean + 2.0).tolist()
    assert dearer.best[2] == found.best[2] + 2.0
    assert np.isnan([*dearer.mu, dearer.best[3]]).all()
    assert (dearer.pairs, dearer.best[:2]) == (found.pairs, found.best[:2])


def lossy() -> Run:
    return run_of(gossip(8, "ring", "rounds = 4"), **LOSSY)


@pytest.mark.parametrize("colluders", [(), (1,), (1, 2)])
@pytest.mark.parametrize(
    ("account", "run", "incomplete"),
    [
        (gossip_account, lambda: quiet(gossip(8, "ring", "rounds = 2")), ()),
        (gossip_account, lambda: quiet(gossip(8, "ring", "rounds = 2")), (5,)),
        (gossip_account, lossy, ()),
        (gossip_account, lambda: quiet(shared(gossip(6, "ring", noise='mechanism = "gaussian"\nsigma = 1.0'))), ()),
        (exact_account, lambda: quiet(pairwise(6)), ()),
        (exact_account, lambda: quiet(pairwise(6)), (4,)),
    ],
)
def test_accounts_claim_the_same_of_pairs_in_blocks(
    account: Callable[[AuditContext], AccountResult],
    run: Callable[[], Run],
    incomplete: Sequence[int],
    colluders: Sequence[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = context_of(run(), colluders, incomplete)
    held = account(context)
    monkeypatch.setattr(pairs, "BLOCK_PAIRS", 3 * context.run.n)
    found = account(replace(context, in_blocks=True))
    assert (found.mu, found.leak, found.epsilon, found.published) == (None,) * 4
    assert found.totals is not None
    assert held.epsilon is not None
    assert np.allclose(found.totals.epsilon, np.nanmax(held.epsilon, axis=1), rtol=1e-11)
    assert found.totals.pairs == np.count_nonzero(~np.isnan(held.epsilon))
    printed = [one for one in held.claims if one.method.startswith("published:") and one.observer == Observer.NODE]
    unprinted = [one for one in found.refusals if one.method.startswith("published:")]
    assert {one.method for one in unprinted} == {one.method for one in printed}
    assert [one for one in found.refusals if one not in unprinted] == held.refusals
    expected = [one for one in held.claims if one not in printed]
    assert len(found.claims) == len(expected)
    for one, other in zip(found.claims, expected, strict=True):
        assert one.epsilon_mean == pytest.approx(other.epsilon_mean, rel=1e-11)
        assert replace(one, epsilon_mean=None, mu_mean=None) == replace(other, epsilon_mean=None, mu_mean=None)
    if held.epsilon_coalition is not None:
        assert found.epsilon_coalition is not None
        assert np.array_equal(found.epsilon_coalition, held.epsilon_coalition, equal_nan=True)


@pytest.mark.parametrize("make", [lambda: gossip(8, "ring", "rounds = 2"), lambda: pairwise(6)])
def test_an_audit_in_blocks_has_what_belongs_to_colluders(
    make: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = quiet(make())
    given = run.plan, Recorded(run.plan, run.contents()), (), DELTA, (1, 2)
    held = audit_run(*given)
    monkeypatch.setattr(pairs, "BLOCK_PAIRS", 3 * run.plan.n)
    found = audit_run(*given, in_blocks=True)
    for name in ("mu_coalition", "leak_coalition", "epsilon_coalition"):
        assert np.array_equal(getattr(found, name), getattr(held, name), equal_nan=True)


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        (gossip(8, "ring", "rounds = 2"), True),
        (gossip(8, "regular", "rounds = 2").replace('"regular"', '"regular"\ndegree = 4\npublic = false'), False),
        (shared(gossip(6, "ring", noise='mechanism = "gaussian"\nsigma = 1.0')), False),
        (pairwise(6), True),
    ],
)
def test_pairs_are_in_blocks_where_nothing_else_has_a_number_for_each(text: str, blocks: bool) -> None:
    run = quiet(text).plan
    assert run.protocol.analysis().looks_in_blocks(run) is blocks
