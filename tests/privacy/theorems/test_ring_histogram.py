from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import Refused
from p2pdp.privacy.contract import account
from p2pdp.privacy.theorems.ring_histogram import gap_delta

TERMS = {"epsilon": 0.1, "delta": 1e-5, "n": 10_000, "categories": 10, "laps": 3, "delta_prime": 1e-6}


def test_gamma_is_the_right_way_round() -> None:
    """[CB20, Theorem 2] prints gamma the other way round."""
    found = account("ring_histogram", TERMS).outputs
    epsilon_0 = 0.1 / 12 * math.sqrt(10_000 / math.log(1e5))
    assert found["epsilon_report"] == pytest.approx(epsilon_0)
    assert 12 * epsilon_0 * math.sqrt(math.log(1e5) / 10_000) == pytest.approx(0.1)
    assert found["gamma"] == pytest.approx(10 / (math.exp(epsilon_0) + 9))
    assert found["uniform_elements"] == math.ceil(found["gamma"] * 10_000)
    assert found["gamma_published"] == pytest.approx(10 / (math.exp(1.2 * math.sqrt(math.log(1e5) / 10_000)) + 9))
    assert found["epsilon"] == pytest.approx(math.sqrt(6 * math.log(1e6)) * 0.1 + 0.3 * math.expm1(0.1))
    assert found["delta"] == pytest.approx(3.1e-5)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"epsilon": 0.5}, "epsilon below 1/2"),
        ({"delta": 0.01}, "delta below 1/100"),
        ({"n": 1000}, "n above 1000"),
        ({"epsilon": 0.4, "n": 1_000_000}, "at most 1/2"),
    ],
)
def test_assumptions_that_do_not_hold_are_named(changed: dict[str, float], said: str) -> None:
    with pytest.raises(Refused, match=said):
        account("ring_histogram", {**TERMS, **changed})


def exact_delta(epsilon: float, epsilon_0: float, categories: int, fixed: int, others: int) -> float:
    """All outcomes of a gap: u's report, `others` reports of the third value and uniform elements, as a histogram."""
    growth_0 = math.expm1(epsilon_0)
    gamma = categories / (growth_0 + categories)

    def report(value: int) -> list[float]:
        return [gamma / categories + (1 - gamma) * (place == value) for place in range(categories)]

    worlds: list[dict[tuple[int, ...], float]] = []
    for value in (0, 1):
        laws = [report(value), *[report(2)] * others, *[[1 / categories] * categories] * fixed]
        world: dict[tuple[int, ...], float] = {}
        for outcome in product(range(categories), repeat=len(laws)):
            counts = tuple(outcome.count(place) for place in range(categories))
            chance = math.prod(law[place] for law, place in zip(laws, outcome, strict=True))
            world[counts] = world.get(counts, 0.0) + chance
        worlds.append(world)
    return sum(max(0.0, p - math.exp(epsilon) * worlds[1][counts]) for counts, p in worlds[0].items())


@pytest.mark.parametrize(("fixed", "others"), [(0, 4), (5, 0), (2, 3), (0, 0)])
@pytest.mark.parametrize("epsilon_0", [0.1, 0.5])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
def test_the_bound_of_a_gap_is_above_the_truth(fixed: int, others: int, epsilon_0: float, share: float) -> None:
    """[CB20, Theorem 2] for one gap, against all outcomes."""
    epsilon = share * epsilon_0
    assert exact_delta(epsilon, epsilon_0, 3, fixed, others) <= gap_delta(epsilon, epsilon_0, 3, fixed, others)


@given(
    epsilon=st.floats(1e-6, 0.4999),
    n=st.integers(1001, 10**6),
    power=st.floats(-12.0, -2.01),
    categories=st.integers(2, 10**4),
)
def test_every_gap_of_an_answer_is_shown_to_keep_its_epsilon_and_delta(
    epsilon: float, n: int, power: float, categories: int
) -> None:
    asked = {**TERMS, "epsilon": epsilon, "n": n, "delta": 10.0**power, "categories": categories}
    try:
        found = account("ring_histogram", asked).outputs
    except Refused as error:
        assert "at most 1/2" in str(error)  # noqa: PT017 - with these inputs nothing else may be refused
        return
    assert found["epsilon_report"] <= 0.5
    for others in (n - 2, n - 1):
        assert gap_delta(epsilon, found["epsilon_report"], categories, 0, others) <= 10.0**power
