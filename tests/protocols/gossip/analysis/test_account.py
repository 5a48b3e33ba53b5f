from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.auditor.context import COMPUTATIONAL, NO_KEYS
from p2pdp.auditor.local import local_account
from p2pdp.core.claims import Claim
from p2pdp.core.ids import CURATOR
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.renyi import best_epsilon
from p2pdp.protocols.gossip.analysis.account import gossip_account
from p2pdp.protocols.gossip.analysis.views import GossipViews
from p2pdp.sim.faults import Crash
from tests.support.gossips import context_of, gossip
from tests.support.replay_oracle import leaks, seen_by
from tests.support.runs import DELTA, quiet, ring, run_of


def named(claims: list[Claim], observer: str, method: str = "exact") -> Claim:
    (found,) = [one for one in claims if (one.observer, one.method) == (observer, method)]
    return found


def test_a_ring_is_told_from_both_sides_and_no_further() -> None:
    finding = gossip_account(context_of(quiet(gossip(8, "ring", "rounds = 2")), colluders=(0, 1)))
    assert finding.leak is not None
    assert finding.mu is not None
    assert finding.epsilon is not None
    assert np.all(np.isnan(np.diag(finding.leak)))
    around = [0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0]
    for user in range(8):
        for observer in set(range(8)) - {user}:
            told = around[(user - observer) % 8]
            assert finding.leak[user, observer] == pytest.approx(told, abs=1e-11)
            assert finding.mu[user, observer] == pytest.approx(told * 0.5, abs=1e-11)
    node = named(finding.claims, "node")
    assert (node.bound, node.conditioning, node.violated_pairs) == (True, "public", None)
    assert node.mu_max == pytest.approx(0.5)
    assert node.epsilon_max == pytest.approx(gaussian.epsilon_of(DELTA, 0.5))
    assert node.mu_mean == pytest.approx(0.5 * 4 / 7)
    assert node.epsilon_mean == pytest.approx(4 / 7 * gaussian.epsilon_of(DELTA, 0.5))
    assert finding.epsilon[3, 0] == 0.0
    assert any("proved for all 8 views" in said for said in node.assumptions)
    coalition = named(finding.claims, "coalition")
    assert coalition.worst_pair is not None
    assert coalition.worst_pair[1] == (0, 1)
    assert finding.leak_coalition is not None
    assert finding.epsilon_coalition is not None
    assert np.nanmax(finding.epsilon_coalition) == coalition.epsilon_max
    assert np.isnan(finding.leak_coalition[:2]).all()
    assert finding.leak_coalition[2:] == pytest.approx([1, 1, 0, 0, 1, 1], abs=1e-11)
    for name in ("curator", "public"):
        assert named(finding.claims, name).epsilon_max == 0.0


def test_no_exact_leak_exceeds_the_local_ceiling() -> None:
    for text in (gossip(6, "ring", "rounds = 9"), gossip(4, "complete", 'rounds = 2\npublish = "all"')):
        ground = context_of(quiet(text))
        (local,) = local_account(ground).claims
        assert local.mu_max is not None
        for claim in gossip_account(ground).claims:
            assert claim.method != "exact" or (claim.mu_max or 0.0) <= local.mu_max


def test_what_all_published_is_said_to_be_the_reason() -> None:
    finding = gossip_account(context_of(quiet(gossip(16, "hypercube", 'rounds = 1\npublish = "all"'))))
    for observer in ("node", "curator", "public"):
        claim = named(finding.claims, observer)
        assert claim.mu_max == pytest.approx(0.5)
        assert claim.mu_mean == pytest.approx(0.5)
        assert any("16 users published" in said for said in claim.assumptions)
        assert any("all that local noise allows" in said for said in claim.assumptions)


def test_less_than_full_rank_is_said_to_be_probabilistic() -> None:
    finding = gossip_account(context_of(quiet(gossip(16, "hypercube", "rounds = 6"))))
    assert any("probabilistic: three primes agree" in said for said in named(finding.claims, "node").assumptions)


def test_without_noise_what_arrives_is_told_without_end() -> None:
    finding = gossip_account(context_of(quiet(gossip(8, "ring", "rounds = 2", noise='mechanism = "none"'))))
    node = named(finding.claims, "node")
    assert node.epsilon_max == node.mu_max == math.inf
    assert finding.mu is not None
    assert finding.mu[3, 0] == 0.0
    assert finding.published is None
    assert [claim for claim in finding.claims if claim.method != "exact"] == []


def test_laplace_noise_has_no_exact_leak_here() -> None:
    text = gossip(4, "ring", noise='mechanism = "laplace"\nsigma = 2.0')
    finding = gossip_account(context_of(quiet(text)))
    assert finding.claims == []
    assert {one.observer for one in finding.refusals} == {"node", "curator", "public", "network"}


def test_walks_are_none_of_its_business() -> None:
    finding = gossip_account(context_of(quiet(ring(4, 1))))
    assert (finding.claims, finding.refusals, finding.mu) == ([], [], None)


def test_observers_whose_ledgers_are_not_whole_are_refused_by_name() -> None:
    finding = gossip_account(context_of(quiet(gossip(8, "ring", "rounds = 2")), (2, 5), incomplete=(5, CURATOR)))
    reasons = [(one.observer, one.reason.split(":")[0]) for one in finding.refusals]
    assert ("node", "user 5") in reasons
    assert ("coalition", "user 5") in reasons
    assert "curator" in [observer for observer, _ in reasons]
    assert finding.leak is not None
    assert np.isnan(finding.leak[:, 5]).all()
    assert not np.isnan(finding.leak[0, 4])


def test_a_single_user_has_nobody_to_learn_about_it() -> None:
    finding = gossip_account(context_of(quiet(gossip(1, "complete", "rounds = 2"))))
    assert {claim.observer for claim in finding.claims} == {"curator", "public"}


def test_the_whole_audit_has_all_accounts_and_the_arrays() -> None:
    audit = quiet(gossip(8, "ring", "rounds = 2")).audit(colluders=(0, 1))
    assert audit.claims[0].observer == "node"
    assert audit.published is not None
    assert audit.mu is not None
    assert audit.epsilon is not None
    assert audit.epsilon_conditioning == "public"
    assert audit.leak_coalition is not None
    assert {claim.method for claim in audit.claims} == {
        "exact", "local", "published:theorem-1", "published:corollary-1", "published:theorem-12",
        "published:corollary-3",
    }  # fmt: skip


def test_a_result_that_was_sent_and_never_recorded_counts_as_seen_by_the_curator() -> None:
    """User 0 alone publishes, and is put out: nothing is published, but the curator may have had its result."""
    run = run_of(gossip(4, "ring", 'rounds = 3\npublish = "one"'), Crash(peer=0, at_record=24, down_s=None))
    transcript = run.transcript()
    assert transcript.published == ()
    claims = run.audit().claims
    assert named(claims, "public").mu_max == 0.0
    step, sensitivity = run.plan.plan.step, context_of(run).sensitivity
    told = np.sqrt(leaks(transcript, 4, seen_by(transcript, "curator")).max()) * sensitivity * step
    assert told < named(claims, "curator").mu_max < told * (1.0 + 1e-4), "rounding is in it"
    assert told > 0.1


def test_violated_pairs_are_those_in_which_more_is_told_than_printed() -> None:
    finding = gossip_account(context_of(quiet(gossip(3, "path", "rounds = 2"))))
    (claim,) = [one for one in finding.claims if one.method == "published:theorem-1"]
    assert finding.published is not None
    assert finding.leak is not None
    assert finding.published[2, 0] == pytest.approx(1 / 3), "guide/accounting.md, section 3"
    assert finding.leak[2, 0] == pytest.approx(1.0)
    assert claim.violated_pairs == 2, "from end to end, and back"
    assert claim.bound is False
    assert claim.mu_max is None


def test_epsilon_is_what_the_printed_divergence_converts_to() -> None:
    finding = gossip_account(context_of(quiet(gossip(16, "ring", "rounds = 8"))))
    (claim,) = [one for one in finding.claims if one.method == "published:theorem-1"]
    assert finding.published is not None
    most, mu = float(np.nanmax(finding.published)), 0.5
    expected = best_epsilon(lambda excess: (1.0 + excess) * mu**2 * most / 2.0, DELTA)
    assert claim.epsilon_max == pytest.approx(expected, rel=1e-6)
    assert claim.epsilon_mean is not None
    assert 0.0 < claim.epsilon_mean < expected
    assert finding.published[8, 0] == pytest.approx(3.2e-6, rel=0.02)
    assert any(f"{np.nanmean(finding.published):.4g} of local" in said for said in claim.assumptions)


def test_the_mean_of_what_is_told_respects_the_printed_mean() -> None:
    for text in (gossip(16, "hypercube", "rounds = 5"), gossip(6, "ring", "activations = 20", protocol="randomized")):
        finding = gossip_account(context_of(quiet(text)))
        assert np.nanmean(finding.leak) <= np.nanmean(finding.published) + 1e-9


def test_corollary_1_needs_fixed_weights() -> None:
    fixed = gossip_account(context_of(quiet(gossip(6, "ring", "rounds = 3"))))
    pairs = gossip_account(context_of(quiet(gossip(6, "ring", "activations = 14", protocol="randomized"))))
    assert "published:corollary-1" in {claim.method for claim in fixed.claims}
    assert "published:corollary-1" not in {claim.method for claim in pairs.claims}


def test_noise_on_messages_brings_far_pairs_towards_what_was_printed_and_is_not_in_the_formula() -> None:
    clean = gossip_account(context_of(quiet(gossip(8, "ring", "rounds = 4"))))
    noised = gossip_account(context_of(quiet(gossip(8, "ring", "rounds = 4\nmessage_sigma = 0.5"))))
    (claim,) = [one for one in noised.claims if one.method == "published:theorem-1"]
    (before,) = [one for one in clean.claims if one.method == "published:theorem-1"]
    assert any("knows of no noise" in said for said in claim.assumptions)
    assert noised.leak is not None
    assert clean.leak is not None
    assert noised.leak[4, 0] < 0.1 * clean.leak[4, 0]
    assert (claim.violated_pairs or 0) <= (before.violated_pairs or 0)
    assert claim.epsilon_max == pytest.approx(before.epsilon_max)
    assert math.isfinite(claim.epsilon_max or math.inf)


SHARED = 'mechanism = "gaussian"\nsigma = {}\npair_sigma = {}'


@pytest.mark.parametrize(
    ("kind", "n", "sigma", "pair_sigma", "alone", "pooled"),
    [  # accounting.md, section 7, for an observer of all messages
        ("ring", 8, 1.0, 3.0, 0.189274966583, 0.295222696572),
        ("ring", 8, 0.5, 10.0, 0.506542072055, 0.681829606119),
        ("complete", 8, 1.0, 3.0, 0.13698630137, 0.181818181818),
        ("complete", 8, 0.5, 10.0, 0.50109340831, 0.668054977093),
        ("star", 6, 1.0, 3.0, 0.247272727273, 1.0),
        ("star", 6, 0.5, 10.0, 0.674702248959, 4.0),
    ],
)
def test_noise_of_pairs_hides_values_from_an_observer_of_all_messages(
    kind: str, n: int, sigma: float, pair_sigma: float, alone: float, pooled: float
) -> None:
    run = quiet(gossip(n, kind, "rounds = 8", noise=SHARED.format(sigma, pair_sigma)))
    context = context_of(run, (0, 1))
    views = GossipViews(context)
    seen = views.network()
    assert seen is not None
    assert views.spans([seen]).spans[0].leaks.max() / sigma**2 == pytest.approx(alone, rel=1e-9)
    together = views.most([0, 1])
    assert np.delete(together, [0, 1]).max() / sigma**2 == pytest.approx(pooled, rel=1e-9)
    found = gossip_account(context)
    network, coalition = named(found.claims, "network"), named(found.claims, "coalition")
    assert network.mu_max == pytest.approx(math.sqrt(alone), abs=3e-5)
    assert coalition.mu_max is not None
    assert coalition.mu_max <= math.sqrt(pooled) + 3e-5, "who sees all of it"
    assert coalition.mu_max == pytest.approx(math.sqrt(pooled), abs=3e-5) or kind == "ring"
    assert all(COMPUTATIONAL in claim.assumptions for claim in found.claims)
    assert NO_KEYS in network.assumptions
    assert not any(claim.method.startswith("published") for claim in found.claims), "formulas know of no such noise"
    assert [one for one in found.refusals if one.observer == "network"] == []
