from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.privacy.pld.crossing import crossing, refined


@given(delta=st.floats(1e-12, 0.9), rate=st.floats(0.1, 1e6))
def test_both_sides_of_the_crossing(delta: float, rate: float) -> None:
    def curve(epsilon: float) -> float:
        return math.exp(-rate * epsilon)

    most = 800.0
    low, high = crossing(curve, delta, most)
    assert high >= -math.log(delta) / rate * (1.0 - 1e-12) or high == most
    assert low <= -math.log(delta) / rate * (1.0 + 1e-12)
    assert high == most or high - low <= 1e-8 * high + most * 2.0**-59


def test_a_curve_below_delta_from_the_start_on() -> None:
    assert crossing(lambda _: 1e-7, 1e-6, 3.0) == (0.0, 0.0)


def test_a_curve_that_falls_to_nothing_at_once() -> None:
    low, high = crossing(lambda epsilon: float(epsilon < 0.3), 1e-6, 3.0)
    assert low < 0.3 <= high
    assert high - low <= 1e-8


def test_a_curve_that_never_falls_gives_the_most() -> None:
    low, high = crossing(lambda _: 0.5, 1e-6, 3.0)
    assert high == 3.0
    assert low > 2.99


def test_only_values_that_were_asked_for_decide() -> None:
    asked: dict[float, float] = {}

    def uneven(epsilon: float) -> float:
        asked[epsilon] = math.exp(-epsilon) * (1.0 + 0.01 * math.sin(1e5 * epsilon))
        return asked[epsilon]

    low, high = crossing(uneven, 0.01, 20.0, 1e-6)
    assert asked[low] > 0.01 >= asked[high]


@pytest.mark.parametrize("start", [2.0, 2.3, 2.303, 2.31, 2.33, 5.0])
def test_a_finer_curve_only_improves_what_it_confirms(start: float) -> None:
    def curve(epsilon: float) -> float:
        return math.exp(-epsilon)

    found = refined(curve, 0.1, start, 9.0, 0.03, 1e-6)
    if curve(start) > 0.1:
        assert found == 9.0
    else:
        assert curve(found) <= 0.1
        assert found <= start
        assert found == pytest.approx(max(math.log(10.0), start * 0.97), rel=1e-5)
