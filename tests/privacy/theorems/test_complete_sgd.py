from __future__ import annotations

import math
from itertools import product

import pytest

from p2pdp.mechanisms import gaussian
from p2pdp.privacy.contract import account
from p2pdp.privacy.visits import most_visits

TERMS = {"sigma": 2.0, "lipschitz": 0.4, "n": 100, "hops": 1000, "delta": 1e-6}


def test_it_is_below_local_privacy_and_beside_the_published_value() -> None:
    found = account("complete_sgd", TERMS)
    assert found.bound
    assert found.outputs["visits"] == most_visits(1000, 100, 5e-7)
    local = gaussian.epsilon_of(5e-7, 0.4 * math.sqrt(found.outputs["visits"]))
    assert found.outputs["epsilon_local"] == pytest.approx(local)
    assert found.outputs["epsilon"] < local / 2
    assert 0.5 < found.outputs["epsilon_published"] / found.outputs["epsilon"] < 2.0


def test_only_the_ratio_of_lipschitz_and_sigma_counts() -> None:
    scaled = account("complete_sgd", {**TERMS, "sigma": 20.0, "lipschitz": 4.0})
    assert scaled.outputs == pytest.approx(dict(account("complete_sgd", TERMS).outputs))


@pytest.mark.parametrize("n", [2, 3])
def test_few_users_are_left_with_local_privacy(n: int) -> None:
    found = account("complete_sgd", {**TERMS, "n": n}).outputs
    assert found["epsilon"] <= found["epsilon_local"]


def test_more_users_at_as_many_visits_each_hide_more() -> None:
    answers = [account("complete_sgd", {**TERMS, "n": n, "hops": 10 * n}).outputs["epsilon"] for n in (10, 100, 10**5)]
    assert answers == sorted(answers, reverse=True)
    assert answers[2] < answers[0] / 5


def exact_delta(ratio: float, steps: int, epsilon: float) -> float:
    """Of a noised sum of constant gradients among three users, over all walks; v sees the gaps between its visits."""
    total = 0.0
    for walk in product("uvw", repeat=steps):
        gaps = "".join(walk).split("v")
        mu = math.sqrt(sum((2 * ratio * gap.count("u")) ** 2 / len(gap) for gap in gaps if gap))
        total += gaussian.delta_of(epsilon, mu)
    return total / 3**steps


@pytest.mark.parametrize("ratio", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-2])
def test_linear_losses_leak_less_than_the_bound(ratio: float, delta: float) -> None:
    asked = {"sigma": 1.0, "lipschitz": ratio, "n": 3, "hops": 7, "delta": delta}
    epsilon = account("complete_sgd", asked).outputs["epsilon"]
    assert exact_delta(ratio, 7, epsilon) <= delta
    assert exact_delta(ratio, 7, epsilon / 4) > delta, "and the bound is not idle"
