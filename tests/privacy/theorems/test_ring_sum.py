from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.core.errors import Refused
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.contract import account
from tests.support.leaks import general_leak

TERMS = {"epsilon": 1.0, "delta": 1e-6, "laps": 3, "delta_prime": 1e-7}


def test_it_is_theorem_1() -> None:
    """[CB20, Theorem 1] as printed."""
    found = account("ring_sum", TERMS)
    printed = math.sqrt(2 * 3 * math.log(1e7)) + 3 * (math.e - 1)
    assert found.outputs["epsilon"] == pytest.approx(printed, rel=1e-14)
    assert found.outputs["delta"] == pytest.approx(3.1e-6)
    assert found.bound


def leak(n: int, laps: int, u: int, v: int) -> float:
    """Leak of u to v with the closing draw, by the rows that v sees, sigma and sensitivity 1.

    The published total tells the last holder nothing more: it drew the closing noise itself.
    """
    hops = laps * n
    drawn = [hop for hop in range(hops) if hop % max(1, n - 1) == 0]
    rows, inputs = [], []
    for seen in [*range(v, hops, n), *([hops] if v < n - 1 else [])]:
        rows.append([float(hop < seen and hop % n != v) for hop in drawn] + [float(seen == hops)])
        inputs.append([float(hop < seen) for hop in range(u, hops, n)])
    return general_leak(np.array(rows), np.array(inputs))


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("laps", [1, 2, 4])
def test_no_pair_of_a_gaussian_ring_leaks_more(n: int, laps: int) -> None:
    """[CB20, Theorem 1] with a closing draw holds.

    Exact leaks of every pair, by the auditor's own means; its last row is the published total.
    """
    sigma = gaussian.sigma_of(1.0, 1e-6)
    outputs = account("ring_sum", {**TERMS, "laps": laps}).outputs
    exact = [
        gaussian.epsilon_of(outputs["delta"], math.sqrt(leak(n, laps, u, v)) / sigma)
        for u in range(n)
        for v in range(n)
        if u != v
    ]
    assert max(exact) == pytest.approx(outputs["epsilon_gaussian"], rel=1e-6)
    assert outputs["epsilon_gaussian"] <= outputs["epsilon"]


def test_without_the_closing_draw_the_theorem_is_refused() -> None:
    with pytest.raises(Refused, match="closing draw"):
        account("ring_sum", {**TERMS, "closing": "no"})


def test_pure_mechanisms_have_no_gaussian_value() -> None:
    found = account("ring_sum", {**TERMS, "delta": 0.0}).outputs
    assert set(found) == {"epsilon", "delta"}
    assert found["delta"] == 1e-7
