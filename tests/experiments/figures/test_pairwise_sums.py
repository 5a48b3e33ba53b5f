from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.experiments.figures.pairwise_sums import PAIRWISE_SUMS, after_vanishing, pairwise_errors
from p2pdp.experiments.pairwise import SEED, pair_noise_of, regular
from p2pdp.mechanisms import gaussian
from p2pdp.topology.components import taken_out
from tests.support.quick_figures import line, quick


def test_the_quick_form() -> None:
    made, answers = quick(PAIRWISE_SUMS)
    assert answers["gossip"]["error"] == pytest.approx(1 / math.sqrt(24), rel=0.1)
    assert answers["walk-0"]["error"] < 1 / (gaussian.mu_of_curve(1.0, 1e-5) * math.sqrt(24))
    assert answers["colluders-20"]["middle"][0] == 1.0
    assert line(made, "gossip over local noise").verdict == "differs"
    assert line(made, "walk over local noise").verdict == "agrees"


def test_a_mean_of_256_users_against_25_colluders() -> None:
    """At epsilon 4.377, which is mu = 1; local noise has 0.0625 and a curator 0.0039."""
    found = pairwise_errors(256)
    assert found["hidden"] == 231
    assert found["masks"] == pytest.approx(1 / math.sqrt(231 * 256), rel=1e-9)
    assert found["masks"] <= found["gaussian"] <= 0.0045
    assert found["mu"] == pytest.approx(1.0, rel=1e-9)


def test_unsettled_pair_noise_stays_in_the_sum() -> None:
    """Against draws of all noise of 60 users of whom 20 vanish, each edge between the two kinds counted once."""
    found = after_vanishing(60)
    own = found["settled"][0] * math.sqrt(60)
    assert found["settled"] == pytest.approx([own / math.sqrt(60 - count) for count in found["counts"]])
    noise = pair_noise_of(60, 10, 6, gaussian.mu_of_curve(1.0, 1e-5), 0.1)
    gone = set(taken_out(range(60), 20, SEED + 1, 0))
    random = np.random.default_rng(1)
    sums = np.zeros(4000)
    for _user in set(range(60)) - gone:
        sums += noise.sigma * random.standard_normal(4000)
    for edge in regular(60, 10).edges():
        pair = noise.pair_sigma * random.standard_normal(4000)
        sums += pair * ((edge[0] not in gone) - int(edge[1] not in gone))
    assert found["counts"][-1] == 20
    assert found["unsettled"][-1] == pytest.approx(sums.std() / 40, rel=0.05)
    assert found["unsettled"][-1] > found["settled"][-1] > found["curator"][-1]
