from __future__ import annotations

import math
from dataclasses import replace

import pytest

from p2pdp.audit.ground import Ground
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.linear.published import theorem_4_alpha_most
from p2pdp.privacy.renyi import best_epsilon
from p2pdp.protocols.gossip.analysis import hidden_graph as gossip_hidden_graph
from p2pdp.protocols.gossip.analysis.hidden_graph import hidden_graph_account
from p2pdp.protocols.gossip.analysis.rounding import Rounding
from tests.support.gossips import gossip, ground_of
from tests.support.runs import DELTA, quiet, ring


@pytest.fixture(autouse=True)
def rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grounds are made up here, so no machine can be run again on them."""
    monkeypatch.setattr(gossip_hidden_graph, "rounding_of", lambda ground, graph: Rounding(0.0, ("rounding",)))


RANDOM = gossip(20, "regular", "rounds = 3", extra="degree = 3")


def secret(ground: Ground) -> Ground:
    """The same run as if pairs had tossed for its edges."""
    return replace(ground, run=replace(ground.run, plan=replace(ground.run.plan, coin=0.1)))


def test_a_graph_from_the_seed_in_the_spec_is_known_so_nothing_is_bounded() -> None:
    (claim,) = hidden_graph_account(ground_of(quiet(RANDOM))).claims
    assert claim.bound is False
    assert any("seed in the spec" in said for said in claim.assumptions)


def test_whom_one_met_tells_all_and_the_others_share_the_rest() -> None:
    ground = secret(ground_of(quiet(RANDOM)))
    (claim,) = hidden_graph_account(ground).claims
    local = gaussian.epsilon_of(DELTA, 0.5)
    assert claim.bound is True
    assert claim.conditioning == "view"
    assert claim.epsilon_max == pytest.approx(local)
    assert claim.epsilon_mean == pytest.approx(local), "at small deltas the orders allowed are too small to beat it"


def test_others_than_those_it_met_have_the_lesser_of_theorem_and_ceiling() -> None:
    """[CEBM22, Theorem 4].

    16 of 19 are not met: 2 * 3 * 2 / 16 of local noise, as a divergence at orders up to that of sigma = 2 Delta.
    """
    delta = 0.14
    ground = replace(secret(ground_of(quiet(RANDOM))), delta=delta)
    (claim,) = hidden_graph_account(ground).claims
    far = best_epsilon(
        lambda excess: (1.0 + excess) * 0.25 * 0.75 / 2.0, delta, excess_most=theorem_4_alpha_most(0.5) - 1.0
    )
    local = gaussian.epsilon_of(delta, 0.5)
    assert claim.epsilon_mean == pytest.approx((3 * local + 16 * min(far, local)) / 19)


def test_where_the_order_may_not_exceed_little_the_local_ceiling_is_less() -> None:
    ground = secret(ground_of(quiet(RANDOM.replace("sigma = 2.0", "sigma = 0.2"))))
    (claim,) = hidden_graph_account(ground).claims
    assert claim.epsilon_mean == pytest.approx(gaussian.epsilon_of(DELTA, 5.0))


def test_it_has_nothing_to_say_about_known_graphs_walks_and_other_noise() -> None:
    for text in (gossip(8, "ring"), ring(4, 1), gossip(8, "regular", extra="degree = 3\npublic = true"),
                 gossip(8, "regular", extra="degree = 3", noise='mechanism = "none"')):  # fmt: skip
        finding = hidden_graph_account(ground_of(quiet(text)))
        assert (finding.claims, finding.refusals) == ([], [])


def test_published_values_and_missing_ledgers_are_refused() -> None:
    text = gossip(8, "regular", 'rounds = 2\npublish = "all"', extra="degree = 3")
    published = hidden_graph_account(ground_of(quiet(text)))
    assert published.claims == []
    assert "published" in published.refusals[0].reason
    finding = hidden_graph_account(ground_of(quiet(RANDOM), incomplete=(4,)))
    assert [one.reason.split(":")[0] for one in finding.refusals] == ["user 4"]
    assert len(finding.claims) == 1


def test_rounding_is_beside_the_theorem(monkeypatch: pytest.MonkeyPatch) -> None:
    ground = replace(secret(ground_of(quiet(RANDOM))), delta=0.14)
    (exact,) = hidden_graph_account(ground).claims
    means = []
    for nu in (1e-6, 1e-5, math.inf):
        monkeypatch.setattr(gossip_hidden_graph, "rounding_of", lambda ground, graph, nu=nu: Rounding(nu, ("said",)))
        (claim,) = hidden_graph_account(ground).claims
        assert "said" in claim.assumptions
        means.append(claim.epsilon_mean)
    assert exact.epsilon_mean is not None
    assert exact.epsilon_mean <= means[0] <= means[1] <= exact.epsilon_mean * 1.01 <= means[2] * 1.01
