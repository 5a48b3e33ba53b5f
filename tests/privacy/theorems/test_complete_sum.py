from __future__ import annotations

import math

import pytest

from p2pdp.privacy.composition import advanced
from p2pdp.privacy.contract import account

TERMS = {"epsilon": 0.1, "delta": 1e-10, "n": 1000, "hops": 100_000, "delta_prime": 1e-7, "delta_hat": 1e-7}


def test_it_composes_cycles_of_n_steps() -> None:
    """[CB22, Theorem 3], with the constants of the authors' code."""
    found = account("complete_sum", TERMS)
    cycles = 200 + math.sqrt(1.5 * 100_000 * math.log(1e7))
    cost = 0.3 / math.sqrt(1000)
    printed = math.sqrt(2 * cycles * math.log(1e7)) * cost + cycles * cost * (math.exp(cost) - 1)
    assert found.outputs["epsilon"] == pytest.approx(printed, rel=1e-12)
    assert found.outputs["cycles"] == pytest.approx(cycles)
    assert found.outputs["delta"] == pytest.approx(cycles * 1e-10 + 2e-7)
    assert not found.bound


def test_few_cycles_are_added_up() -> None:
    found = account("complete_sum", {**TERMS, "hops": 1, "n": 100, "delta_prime": 1e-12, "delta_hat": 0.9}).outputs
    assert found["epsilon"] == pytest.approx(found["cycles"] * 0.03)


def test_it_is_better_than_local_privacy_from_20_users_on() -> None:
    """By the same count of visits and the same composition, as the authors' figure compares them."""

    def improves(n: int) -> bool:
        found = account("complete_sum", {**TERMS, "n": n, "hops": 100 * n}).outputs
        local = min(found["visits"] * 0.1, advanced(0.1, found["visits"], 1e-7))
        return found["epsilon"] < local

    assert [n for n in range(2, 40) if improves(n)] == list(range(min(filter(improves, range(2, 40))), 40))
    assert improves(20)
    assert not improves(8)
