from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.privacy.renyi import best_epsilon
from p2pdp.protocols.gossip.analysis.account import gossip_account
from tests.support.gossips import gossip, ground_of
from tests.support.runs import DELTA, quiet


def test_violated_pairs_are_those_in_which_more_is_told_than_printed() -> None:
    finding = gossip_account(ground_of(quiet(gossip(3, "path", "rounds = 2"))))
    (claim,) = [one for one in finding.claims if one.method == "published:theorem-1"]
    assert finding.published is not None
    assert finding.leak is not None
    assert finding.published[2, 0] == pytest.approx(1 / 3), "guide/accounting.md, section 3"
    assert finding.leak[2, 0] == pytest.approx(1.0)
    assert claim.violated_pairs == 2, "from end to end, and back"
    assert claim.bound is False
    assert claim.mu_max is None


def test_epsilon_is_what_the_printed_divergence_converts_to() -> None:
    finding = gossip_account(ground_of(quiet(gossip(16, "ring", "rounds = 8"))))
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
        finding = gossip_account(ground_of(quiet(text)))
        assert np.nanmean(finding.leak) <= np.nanmean(finding.published) + 1e-9


def test_corollary_1_needs_fixed_weights() -> None:
    fixed = gossip_account(ground_of(quiet(gossip(6, "ring", "rounds = 3"))))
    pairs = gossip_account(ground_of(quiet(gossip(6, "ring", "activations = 14", protocol="randomized"))))
    assert "published:corollary-1" in {claim.method for claim in fixed.claims}
    assert "published:corollary-1" not in {claim.method for claim in pairs.claims}


def test_noise_on_messages_brings_far_pairs_towards_what_was_printed_and_is_not_in_the_formula() -> None:
    clean = gossip_account(ground_of(quiet(gossip(8, "ring", "rounds = 4"))))
    noised = gossip_account(ground_of(quiet(gossip(8, "ring", "rounds = 4\nmessage_sigma = 0.5"))))
    (claim,) = [one for one in noised.claims if one.method == "published:theorem-1"]
    (before,) = [one for one in clean.claims if one.method == "published:theorem-1"]
    assert any("knows of no noise" in said for said in claim.assumptions)
    assert noised.leak is not None
    assert clean.leak is not None
    assert noised.leak[4, 0] < 0.1 * clean.leak[4, 0]
    assert (claim.violated_pairs or 0) <= (before.violated_pairs or 0)
    assert claim.epsilon_max == pytest.approx(before.epsilon_max)
    assert math.isfinite(claim.epsilon_max or math.inf)
