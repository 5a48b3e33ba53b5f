"""Random walks beforehand: ends that an average over many simulated routes respects, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from p2pdp.mechanisms import gaussian
from tests.support import runs
from tests.support.plans import DELTA, claims, one

MU = 0.5


def average(chances: list[tuple[float, float]], epsilon: float) -> float:
    return math.fsum(chance * gaussian.delta_of(epsilon, mu) for chance, mu in chances)


@pytest.mark.parametrize(("observer", "noises"), [("public", 60), ("curator", 60), ("network", None)])
def test_averages_over_visits_are_exact_for_the_law_of_visits(observer: str, noises: int | None) -> None:
    """The worst is user 0, who begins: one visit for sure, 59 more by chance."""
    claim = one(claims(runs.walk(6, 60)), observer)
    chances = []
    for more in range(60):
        count = more + 1
        mu = MU * (math.sqrt(count) if noises is None else count / math.sqrt(noises))
        chances.append((float(binom.pmf(more, 59, 1 / 6)), mu))
    assert claim.epsilon_max is not None
    assert average(chances, claim.epsilon_max) <= DELTA
    assert average(chances, claim.epsilon_max * (1 - 1e-4)) > DELTA
    assert (claim.worst_pair, claim.bound, claim.mu_max) == ((0, observer), True, None)
    assert claim.epsilon_mean is not None
    assert claim.epsilon_mean < claim.epsilon_max


def test_observers_who_see_more_learn_more() -> None:
    found = claims(runs.walk(6, 60))
    node, public, network = (one(found, observer).epsilon_max or 0.0 for observer in ("node", "public", "network"))
    assert public < network
    assert node < network
    two = claims(runs.walk(6, 60, tokens=2))
    assert (one(two, "public").epsilon_max or 0.0) < (one(two, "curator").epsilon_max or 0.0)


def test_totals_of_several_tokens_count_one_by_one() -> None:
    """Drawn at random: the curator's mu^2 is the sum over tokens of c^2 / T."""
    claim = one(claims(runs.walk(4, 20, tokens=3)), "curator")
    counts = np.random.default_rng(1).binomial(20, 0.25, size=(4000, 3)).astype(float)
    mus = MU * np.sqrt((counts**2).sum(axis=1) / 20)
    assert claim.epsilon_max is not None
    mean = float(np.mean([gaussian.delta_of(claim.epsilon_max, mu) for mu in mus]))
    assert 0.3 * DELTA < mean < 1.5 * DELTA


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (runs.walk(6, 30, "ring"), "complete graph only"),
        (runs.walk(6, 30, noise='[noise]\nmechanism = "none"\n'), "hidden path does not protect"),
        (runs.walk(6, 30, noise='[noise]\nmechanism = "gaussian"\nsigma = 0.001\n'), "hidden path does not protect"),
        (runs.walk(6, 30, noise='[noise]\nmechanism = "laplace"\nsigma = 2.0\n'), "laplace"),
        (runs.walk(6, 30, **runs.HISTOGRAM), "reports"),
    ],
)
def test_what_a_hidden_path_adds_is_refused_with_its_reason(text: str, why: str) -> None:
    found = claims(text)
    assert not any(claim.observer == "node" and claim.bound for claim in found.claims)
    assert any(refusal.observer == "node" and why in refusal.reason for refusal in found.refusals)
    assert one(found, "network").method == "local"


def test_users_with_several_values_are_refused_a_hidden_path() -> None:
    found = claims(runs.walk(6, 30), one_value=False)
    assert [r.reason for r in found.refusals if r.method == "hidden-path"] == [
        "some user contributes several values in turn; the law of a path is for one value a user"
    ]


def test_without_noise_everything_is_told() -> None:
    found = claims(runs.walk(4, 12, noise='[noise]\nmechanism = "none"\n'))
    assert {one(found, observer).epsilon_max for observer in ("curator", "public", "network")} == {math.inf}


def test_pure_reports_count_as_often_as_is_hardly_ever_exceeded() -> None:
    claim = one(claims(runs.walk(6, 60, **runs.HISTOGRAM)), "network")
    assert claim.epsilon_max == pytest.approx(1 + binom.isf(DELTA, 59, 1 / 6), abs=1.01)


def test_somebody_alone_has_no_other_node() -> None:
    found = claims(runs.walk(1, 4))
    assert [claim.observer for claim in found.claims] == ["curator", "public", "network"]
