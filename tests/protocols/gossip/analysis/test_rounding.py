from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from p2pdp.audit.ground import Ground
from p2pdp.core.draws import DITHER
from p2pdp.protocols.gossip.analysis import rounding as gossip_rounding
from p2pdp.protocols.gossip.analysis.account import gossip_account
from p2pdp.protocols.gossip.analysis.rounding import foreseen, rounding_of
from p2pdp.protocols.gossip.analysis.views import graph_of
from p2pdp.sim.faults import Partition
from tests.support.gossips import gossip, ground_of
from tests.support.runs import quiet, run_of

TEXTS = {
    "ring": gossip(8, "ring", "rounds = 6"),
    "star": gossip(5, "star", "rounds = 9"),
    "accelerated": gossip(8, "hypercube", "rounds = 5\naccelerated = true"),
    "noised": gossip(6, "ring", "rounds = 4\nmessage_sigma = 0.5"),
    "published": gossip(6, "path", 'rounds = 4\npublish = "one"'),
}


def nu_of(ground: Ground, *, by_machines: bool = False) -> float:
    return rounding_of(ground, None if by_machines else graph_of(ground)).nu


@pytest.mark.parametrize("name", TEXTS)
def test_both_ways_to_errors_agree_within_a_factor(name: str) -> None:
    ground = ground_of(quiet(TEXTS[name]))
    weights, machines = nu_of(ground), nu_of(ground, by_machines=True)
    assert (1e-14 if name == "noised" else 1e-8) < weights < 1e-4
    assert 0.3 < machines / weights < 3.0
    graph = graph_of(ground)
    assert graph is not None
    assert foreseen(ground.run, graph).nu == pytest.approx(weights, rel=1e-12)


def test_other_runs_have_bounds_of_their_own() -> None:
    late = TEXTS["accelerated"]
    run = run_of(late, partitions=(Partition(0.6, 4.6, frozenset({3, -1, -2})),), delay_s=0.1)
    found = rounding_of(ground_of(run), graph_of(ground_of(run)))
    assert 1e-8 < found.nu < 1e-3
    assert len(found.said) == 2, "that states stay in range is then an assumption"
    for text in (
        gossip(6, "ring", "activations = 40", protocol="randomized"),
        gossip(6, "erdos_renyi", "rounds = 5", extra="changing = true\nprobability = 0.6"),
    ):
        assert 1e-8 < nu_of(ground_of(quiet(text))) < 1e-4


def test_scales_are_those_of_the_records() -> None:
    ground = ground_of(quiet(TEXTS["ring"]))
    before, draws = nu_of(ground), ground.transcript.draws

    def weaker(one: Any, times: float) -> Any:
        return one._replace(scale=one.scale * times) if one.name == DITHER else one

    for user in draws:
        draws[user] = [weaker(one, 1e-3) for one in draws[user]]
    assert nu_of(ground) == pytest.approx(1000.0 * before)
    draws[2] = [one for one in draws[2] if one.name != DITHER]
    assert math.isinf(nu_of(ground))
    claims = gossip_account(ground).claims
    local = ground.sensitivity / ground.run.plan.noise.scale
    assert claims[0].mu_mean == pytest.approx(local * 12 / 14, rel=0.2), "all that is told is then told wholly"


def test_rounding_is_in_claims_and_in_epsilon_and_not_in_mu_of_pairs() -> None:
    ground = ground_of(quiet(gossip(16, "hypercube", "rounds = 4")))
    found, nu = gossip_account(ground), nu_of(ground)
    assert found.mu is not None
    assert found.epsilon is not None
    claim = found.claims[0]
    local = ground.sensitivity / ground.run.plan.noise.scale
    assert claim.mu_max == pytest.approx(local, rel=1e-11), "nobody is told more than the noised value"
    partial = found.mu[(found.mu > 0) & (found.mu < 0.99 * local)]
    assert len(partial)
    mean = np.nanmean(found.mu) + 2.0 * nu * len(partial) / np.sum(~np.isnan(found.mu))
    assert claim.mu_mean == pytest.approx(mean, rel=1e-9)
    leak = found.leak
    assert leak is not None
    np.testing.assert_allclose(found.mu[~np.isnan(leak)], local * np.sqrt(leak[~np.isnan(leak)]), rtol=1e-11)


def test_without_noise_nothing_is_added() -> None:
    text = gossip(5, "ring", "rounds = 3", noise='mechanism = "none"')
    ground = ground_of(quiet(text))
    assert nu_of(ground) == 0.0
    mu = np.array([0.0, 0.5, math.nan, math.inf])
    added = replace(rounding_of(ground, None), nu=0.1).added_to(mu, 1.0)
    np.testing.assert_array_equal(added, [0.0, 0.7, math.nan, math.inf])
    assert gossip_rounding.Rounding(1.0, ()).added_to(np.array([0.5]), 1.0)[0] == 1.0
