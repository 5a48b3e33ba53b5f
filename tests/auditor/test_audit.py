from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from p2pdp.auditor.audit import Audit, audit_run
from p2pdp.auditor.context import AuditContext, sensitivity_of
from p2pdp.cluster import blocks
from p2pdp.cluster.blocks import Cores
from p2pdp.core.claims import Claim
from p2pdp.core.errors import Refused, UsageError
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.mechanisms import gaussian
from p2pdp.replay.evidence import Recorded
from p2pdp.sim.faults import Crash
from tests.support.runs import DELTA, HISTOGRAM, Run, judged, quiet, ring, run_of, walk


def claim(audit: Audit, observer: str, method: str = "exact") -> Claim:
    return next(one for one in audit.claims if (one.observer, one.method) == (observer, method))


def observers(audit: Audit) -> list[tuple[str, str]]:
    return [(one.observer, one.method) for one in audit.claims if one.bound]


EXACT = [("node", "exact"), ("curator", "exact"), ("public", "exact"), ("network", "exact")]
HIDDEN = ("node", "hidden-path")


def test_a_whole_run_has_a_claim_for_every_observer() -> None:
    audit = quiet(walk(5, 40)).audit()
    assert observers(audit) == [*EXACT, HIDDEN, ("network", "local")]
    assert [one.method for one in audit.claims[-2:]] == ["published:complete_sum", "published:complete_sum_v1"]
    assert [(one.observer, one.method) for one in audit.refusals] == [("network", "hidden-path")]
    for one in audit.claims[:-2]:
        if one.method == "hidden-path":
            continue
        assert (one.unit, one.relation, one.conditioning, one.delta) == ("user", "replace", "public", DELTA)
        assert one.bound
        assert one.mu_max is not None
        assert one.epsilon_max == pytest.approx(gaussian.epsilon_of(DELTA, one.mu_max), rel=2e-9)
        assert any("hypothetical" in text for text in one.assumptions)


def test_other_accounts_are_looked_at_while_all_cores_compute_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found, and its order, are the same; each account is looked at once."""
    run = quiet(walk(5, 40))
    recorded, analysis = run.evidence.recorded(run.evidence.begun), run.plan.protocol.analysis()
    looked_at: list[str] = []
    accounts = analysis.accounts()

    def counting(account: Any) -> Any:
        def looked(context: AuditContext) -> Any:
            looked_at.append(account.__name__)
            return account(context)

        return looked

    counted = [counting(account) for account in accounts]
    monkeypatch.setattr(type(analysis), "accounts", lambda _self: counted)
    names = [account.__name__ for account in accounts]
    monkeypatch.setattr(type(analysis), "first_account", staticmethod(counted[names.index("hidden_path_account")]))
    alone = audit_run(run.plan, recorded, (), DELTA, ())
    assert looked_at[0] == "hidden_path_account"
    assert sorted(looked_at) == sorted(names)
    monkeypatch.setattr(blocks, "ALONE_S", 0.0)  # so that work is dealt out however little it is
    looked_at.clear()
    shared = audit_run(run.plan, recorded, (), DELTA, (), Cores(2, ahead=True))
    assert sorted(looked_at) == sorted(names)
    assert shared.claims == alone.claims
    assert shared.refusals == alone.refusals
    for name in ("mu", "leak", "epsilon", "variation"):
        np.testing.assert_array_equal(getattr(shared, name), getattr(alone, name))
    assert (names[0], alone.claims[0].method) == ("exact_account", "exact")


def test_the_claim_about_nodes_is_that_of_all_ordered_pairs() -> None:
    audit = quiet(walk(5, 40)).audit()
    assert audit.mu is not None
    assert audit.epsilon is not None
    node, pairs = claim(audit, "node"), ~np.eye(5, dtype=bool)
    assert node.worst_pair is not None
    user, observer = node.worst_pair
    assert isinstance(observer, int)
    assert audit.mu[user, observer] == node.mu_max == np.nanmax(audit.mu)
    assert node.mu_mean == pytest.approx(audit.mu[pairs].mean())
    assert claim(audit, *HIDDEN).epsilon_mean == pytest.approx(audit.epsilon[pairs].mean())
    assert np.isnan(audit.mu[~pairs]).all()
    assert claim(audit, "public").worst_pair in [(user, "public") for user in range(5)]


def test_knowing_more_is_never_claimed_to_tell_less() -> None:
    audit = quiet(walk(5, 40, tokens=2)).audit(colluders=(1, 3))
    mus = {one: claim(audit, *one).mu_max or 0.0 for one in observers(audit)}
    assert mus["public", "exact"] <= mus["curator", "exact"] <= mus["network", "exact"]
    assert mus["public", "exact"] <= mus["node", "exact"] <= mus["network", "local"]
    assert mus["network", "exact"] <= mus["network", "local"] + 1e-9
    assert mus["coalition", "exact"] <= mus["network", "local"] + 1e-9
    assert claim(audit, "coalition").worst_pair is not None


def test_delta_decides_epsilon_only() -> None:
    strict, lax = quiet(ring(4, 2)).audit(delta=1e-9), quiet(ring(4, 2)).audit(delta=0.3)
    assert claim(strict, "node").mu_max == claim(lax, "node").mu_max
    assert (claim(strict, "node").epsilon_max or 0) > (claim(lax, "node").epsilon_max or 0)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, 2.0, math.nan, math.inf])
def test_impossible_deltas_are_refused(delta: float) -> None:
    with pytest.raises(UsageError, match="delta"):
        quiet(ring(3, 1)).audit(delta=delta)


@pytest.mark.parametrize("colluders", [(0, 0), (3,), (-1,), (0, CURATOR), (0, 1, 2)])
def test_impossible_coalitions_are_refused(colluders: Sequence[int]) -> None:
    with pytest.raises(UsageError, match="colluders"):
        quiet(ring(3, 1)).audit(colluders=colluders)


def test_one_alone_has_nobody_to_collude_with() -> None:
    with pytest.raises(UsageError, match=r"^colluders: at least one"):
        quiet(ring(1, 1)).audit(colluders=(0,))


def test_a_coalition_of_one_is_that_node() -> None:
    audit = quiet(walk(5, 40)).audit(colluders=(3,))
    assert audit.mu is not None
    np.testing.assert_array_equal(audit.mu_coalition, audit.mu[:, 3])
    expected = [math.nan if user == 3 else gaussian.epsilon_of(1e-5, mu) for user, mu in enumerate(audit.mu[:, 3])]
    np.testing.assert_array_equal(audit.epsilon_coalition, expected)


# Other mechanisms.


@pytest.mark.parametrize(
    ("text", "mechanism"),
    [
        (walk(4, 20, noise='[noise]\nmechanism = "laplace"\nsigma = 2.0\n'), "laplace"),
        (walk(4, 20, **HISTOGRAM), "randomized_response"),
        (ring(4, 2, **HISTOGRAM), "randomized_response"),
    ],
)
def test_what_has_no_exact_gaussian_leak_is_refused_with_the_reason(text: str, mechanism: str) -> None:
    audit = quiet(text).audit()
    assert ("network", "local") in observers(audit)
    refused = [one for one in audit.refusals if one.method == "exact"]
    assert [one.observer for one in refused] == ["node", "curator", "public", "network"]
    assert all(mechanism in one.reason for one in refused)
    assert audit.mu is audit.leak is None
    assert (audit.epsilon is None) == (mechanism == "laplace")


@pytest.mark.parametrize("parts", [{}, {**HISTOGRAM, "noise": '[noise]\nmechanism = "none"\n'}])
def test_without_noise_what_is_seen_is_known(parts: dict[str, Any]) -> None:
    noise = parts.pop("noise", '[noise]\nmechanism = "none"\n')
    audit = quiet(walk(3, 12, noise=noise, **parts)).audit()
    for one in audit.claims:
        assert one.epsilon_max == one.mu_max == math.inf
    assert audit.leak is not None
    off = ~np.eye(3, dtype=bool)
    assert np.isinf(audit.leak[off]).all()


def test_who_did_not_contribute_leaks_nothing_even_without_noise() -> None:
    audit = quiet(walk(6, 2, noise='[noise]\nmechanism = "none"\n')).audit()
    assert audit.leak is not None
    assert audit.mu is not None
    assert set(audit.leak[~np.isnan(audit.leak)]) == {0.0, math.inf}
    assert np.array_equal(audit.leak == 0.0, audit.mu == 0.0)


def test_sensitivity_is_in_grid_steps_and_rounded_up() -> None:
    plan = quiet(ring(3, 1)).plan
    assert sensitivity_of(plan) >= math.ldexp(1.0, -plan.plan.grid_exponent)
    assert sensitivity_of(plan) <= math.ldexp(1.0, -plan.plan.grid_exponent) * (1 + 1e-6) + 2
    counts = quiet(walk(3, 12, **HISTOGRAM)).plan
    assert math.sqrt(2.0) < sensitivity_of(counts) < 1.4142136


def test_a_float_sampler_is_an_assumption() -> None:
    run = quiet(ring(3, 1))
    assert run.plan.sampler == "seeded"
    for sampler, text in (("fast", "floating-point"), ("seeded", "hypothetical")):
        plan = replace(run.plan, sampler=sampler)
        audit = audit_run(plan, Recorded(plan, run.contents()), [], DELTA, ())
        assert all(any(text in said for said in one.assumptions) for one in audit.claims)


# What is missing.


@pytest.mark.parametrize("gone", range(4))
@pytest.mark.parametrize("text", [ring(4, 2), walk(4, 30)])
def test_a_missing_user_is_refused_by_name_and_the_others_are_not(text: str, gone: int) -> None:
    run = quiet(text)
    whole, audit = run.audit(), judged(run.without(gone), lenient=True)
    assert observers(audit) == EXACT[:3]
    assert [(one.observer, one.method) for one in audit.refusals] == [
        ("node", "exact"),
        ("network", "exact"),
        HIDDEN,
        ("network", "local"),
    ]
    assert f"user {gone}:" in audit.refusals[0].reason
    assert whole.mu is not None
    assert audit.mu is not None
    left = [user for user in range(4) if user != gone]
    np.testing.assert_allclose(audit.mu[:, left], whole.mu[:, left], rtol=1e-9)
    assert np.isnan(audit.mu[:, gone]).all()
    assert all(any(f"user {gone}," in text for text in one.assumptions) for one in audit.claims)
    assert claim(audit, "public").mu_max == pytest.approx(claim(whole, "public").mu_max)


def test_a_coalition_with_a_missing_member_is_refused() -> None:
    audit = judged(quiet(ring(4, 2)).without(2), (1, 2), lenient=True)
    assert ("coalition", "user 2: its ledger is not whole or not at hand") in [
        (one.observer, one.reason) for one in audit.refusals
    ]
    assert audit.mu_coalition is None


def test_a_missing_curator_hides_nothing_that_was_published() -> None:
    """Were its ledger taken for all there was to see, everybody would seem to know less."""
    run = quiet(ring(5, 2))
    whole, audit = run.audit(), judged(run.without(CURATOR), lenient=True)
    assert observers(audit) == [("node", "exact"), ("public", "exact"), ("network", "local")]
    np.testing.assert_allclose(audit.mu, whole.mu)
    assert claim(audit, "public").mu_max == claim(whole, "public").mu_max
    assert "curator" in [one.observer for one in audit.refusals]


def test_a_missing_bootstrap_hides_nothing() -> None:
    run = quiet(ring(5, 2))
    whole, audit = run.audit(), judged(run.without(BOOTSTRAP), lenient=True)
    np.testing.assert_allclose(audit.mu, whole.mu)
    assert ("network", "exact") not in observers(audit)


def test_where_nothing_can_be_told_the_audit_is_refused() -> None:
    run = quiet(ring(3, 2))
    with pytest.raises(Refused, match="ledgers are not at hand"):
        judged(run.without(CURATOR, 2), lenient=True)


@pytest.fixture(scope="module")
def gone() -> Run:
    run = run_of(walk(5, 60, seed=2), Crash(peer=2, at_record=30, down_s=None))
    assert run.world.out == [2]
    published = run.transcript().published
    assert published is not None
    assert any(source.peer == 2 for source in published[0].expand()), "it had contributed"
    return run


@pytest.mark.parametrize("how", ["as it is", "absent"])
def test_who_is_out_is_refused_as_an_observer_and_its_own_leaks_are_claimed(gone: Run, how: str) -> None:
    audit = judged(gone.evidence if how == "as it is" else gone.without(2))
    assert audit.mu is not None
    left = [0, 1, 3, 4]
    assert np.isnan(audit.mu[:, 2]).all()
    assert np.isfinite(audit.mu[2, left]).all()
    assert (audit.mu[2, left] > 0).any()
    assert [(one.observer, one.method) for one in audit.refusals[:2]] == [("node", "exact"), ("network", "exact")]
    assert "user 2" in audit.refusals[0].reason
    assert (("network", "local") in observers(audit)) == (how == "as it is")
