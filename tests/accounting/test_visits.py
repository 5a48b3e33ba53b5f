from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from p2pdp.accounting.visits import most_visits, printed_visits


def test_known_answers() -> None:
    assert most_visits(100_000, 1000, 1e-7) == 156
    assert int(printed_visits(100_000, 1000, 1e-7) + 0.5) == 1655


@given(hops=st.integers(1, 10**6), n=st.integers(1, 10**5), power=st.floats(-12.0, -0.001))
def test_it_is_the_quantile(hops: int, n: int, power: float) -> None:
    delta_hat = 10.0**power
    found = most_visits(hops, n, delta_hat)
    assert 0 <= found <= hops
    assert binom.sf(found, hops, 1.0 / n) <= delta_hat
    assert found == 0 or binom.sf(found - 1, hops, 1.0 / n) > delta_hat * (1 - 1e-6)
    assert found <= printed_visits(hops, n, delta_hat) + 1, "Hoeffding's inequality, with room"


@pytest.mark.parametrize(("hops", "n"), [(1, 1), (7, 1), (1, 2), (1, 10**9), (10**12, 10**9)])
def test_extremes_are_answered(hops: int, n: int) -> None:
    for delta_hat in (1e-300, 1e-12, 0.5, math.nextafter(1.0, 0.0)):
        assert 0 <= most_visits(hops, n, delta_hat) <= hops
    assert most_visits(7, 1, 0.5) == 7
