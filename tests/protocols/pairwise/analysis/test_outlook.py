from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.mechanisms import gaussian
from p2pdp.privacy.pairwise import pair_leaks
from p2pdp.protocols.pairwise.analysis.outlook import outlook_of, warnings_of
from p2pdp.topology.components import taken_out
from tests.support.pairwise_world import pairwise, planned

DELTA = 1e-5
MU = gaussian.mu_of_curve(1.0, DELTA)
TARGET = 'mechanism = "gaussian"\nepsilon = 1.0\ndelta = 1e-5'
REGULAR = '"regular"\ndegree = 10'
MEAN = '[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n[task]\nkind = "mean"'


def told(text: str) -> dict[str, float]:
    return {fact.name: fact.value for fact in outlook_of(planned(text), DELTA)}


def test_it_says_who_hides_whom_and_what_the_sum_costs() -> None:
    found = told(pairwise(60, REGULAR, noise=TARGET, privacy="colluders_max = 5"))
    sigma = 1.0 / (MU * math.sqrt(35))
    assert (found["hidden"], found["honest_left"]) == (35, 35)
    assert found["component_min"] <= 35
    assert 0.0 <= found["broken"] < 0.2
    assert found["sigma"] == pytest.approx(sigma, rel=1e-6)
    assert found["error_least"] == pytest.approx(sigma * math.sqrt(40), rel=1e-6)
    assert found["error_gossip"] == pytest.approx(math.sqrt(60) / MU, rel=1e-6)
    assert "error_unsettled" not in found


def test_errors_of_a_mean_are_over_those_who_are_left() -> None:
    found = told(pairwise(60, REGULAR, noise=TARGET, data=MEAN))
    assert found["error_least"] == pytest.approx(1.0 / (MU * math.sqrt(40) * math.sqrt(40)), rel=1e-6)
    assert found["error_gossip"] == pytest.approx(1.0 / (MU * math.sqrt(60)), rel=1e-6)


def test_gaussian_noise_that_it_names_is_enough_in_the_placements_that_it_tried() -> None:
    run = planned(pairwise(60, REGULAR, noise=TARGET, privacy="colluders_max = 5"))
    found = {fact.name: fact.value for fact in outlook_of(run, DELTA)}
    assert run.graph is not None
    assert found["gaussian_sigma"] == pytest.approx(math.sqrt(1.1) / (MU * math.sqrt(35)), rel=1e-6)
    reached = [
        np.nanmax(pair_leaks(run.graph, found["gaussian_sigma"], found["gaussian_pair_sigma"], away))
        for away in (taken_out(range(60), 25, 3, number) for number in range(12))
    ]
    assert np.mean([leak <= MU**2 * (1.0 + 1e-9) for leak in reached]) >= 0.5


def test_pair_noise_that_is_not_settled_stays_in_the_sum() -> None:
    """By drawing who vanishes, again and again."""
    noise = 'mechanism = "gaussian"\nsigma = 0.5\npair_sigma = 4.0'
    run = planned(pairwise(30, '"regular"\ndegree = 4', 'masks = "gaussian"\nsettle = "none"', noise=noise))
    found = {fact.name: fact.value for fact in outlook_of(run, DELTA)}
    assert run.graph is not None
    edges = np.array(list(run.graph.edges()))
    random = np.random.default_rng(1)
    variances = []
    for _ in range(3000):
        gone = np.zeros(30, dtype=bool)
        gone[random.permutation(30)[:10]] = True
        variances.append(20 * 0.25 + 16.0 * np.count_nonzero(gone[edges[:, 0]] != gone[edges[:, 1]]))
    assert found["error_unsettled"] == pytest.approx(math.sqrt(np.mean(variances)), rel=0.01)
    assert found["error_least"] == pytest.approx(0.5 * math.sqrt(20), rel=1e-6)


def test_without_own_noise_nothing_is_compared() -> None:
    found = told(pairwise(12, noise='mechanism = "none"'))
    assert found["sigma"] == 0.0
    assert "error_gossip" not in found


def test_a_graph_that_breaks_is_warned_of() -> None:
    terms = {"terms": "survivors_min = 30", "privacy": "colluders_max = 4"}
    (warning,) = warnings_of(planned(pairwise(40, '"ring"', **terms)))
    assert warning.startswith("[graph]: once 10 users vanish and 4 collude, only 1 of 26")
    assert warnings_of(planned(pairwise(40, REGULAR, **terms))) == []


def test_it_is_said_from_when_on_unsettled_noise_is_worse_than_local() -> None:
    """30 users of degree 4, own noise 0.5: local noise for mu = 1 / (0.5 sqrt 20) has an error of 0.5 sqrt(600)."""
    noise = 'mechanism = "gaussian"\nsigma = 0.5\npair_sigma = 3.0'
    run = planned(pairwise(30, '"regular"\ndegree = 4', 'masks = "gaussian"\nsettle = "none"', noise=noise))
    errors = [math.sqrt((30 - count) * 0.25 + 9.0 * 60 * 2 * (30 - count) / 30 * count / 29) for count in range(11)]
    first = next(count for count, error in enumerate(errors) if error > 0.5 * math.sqrt(600))
    (warning,) = warnings_of(run)
    assert f"with {first} users gone" in warning
    settled = planned(pairwise(30, '"regular"\ndegree = 4', 'masks = "gaussian"', noise=noise))
    (forecast,) = warnings_of(settled)
    assert forecast.startswith("[pairwise] masks")


def test_it_warns_of_colluders_who_open_late_values() -> None:
    """On a ring user 1 has both neighbours among those who are named."""
    run = planned(pairwise(8, '"ring"', privacy="colluders = [0, 2]"))
    assert any("put out" in one for one in warnings_of(run))
    assert told(pairwise(8, '"ring"', privacy="delta = 1e-5\ncolluders = [0, 2]"))["opened"] == 1.0
    apart = pairwise(8, '"ring"', privacy="colluders = [0, 1]")
    assert told(apart)["opened"] == 0.0
    assert not any("put out" in one for one in warnings_of(planned(apart)))
