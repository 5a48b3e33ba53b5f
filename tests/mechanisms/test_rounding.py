from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.mechanisms.rounding import diagonal_upper, inside, positive, ratio_upper, whole

MODERATE = st.floats(1e-100, 1e100)


@given(MODERATE, MODERATE)
def test_a_ratio_is_never_below_the_exact_one_and_at_most_one_float_above(numerator: float, denominator: float) -> None:
    exact = Fraction(numerator) / Fraction(denominator)
    ratio = ratio_upper(numerator, denominator)
    assert Fraction(ratio) >= exact > Fraction(math.nextafter(ratio, 0.0))


def test_a_ratio_that_a_float_holds_is_exact() -> None:
    assert ratio_upper(1.0, 4.0) == 0.25
    assert ratio_upper(1e300, 1e-300) == math.inf


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=10**6), st.integers(1, 10**6))
def test_a_diagonal_is_never_short(side: Fraction, dimensions: int) -> None:
    diagonal = diagonal_upper(side, dimensions)
    assert Fraction(diagonal) ** 2 >= dimensions * side**2
    assert diagonal <= math.sqrt(dimensions) * float(side) * (1 + 1e-15)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, -math.inf])
def test_what_is_not_positive_is_refused_by_name(value: float) -> None:
    with pytest.raises(UsageError, match="The width must be"):
        positive("The width", value)


@pytest.mark.parametrize("value", [1, -3, 2.0, math.nan, "2", None])
def test_what_is_not_whole_or_too_small_is_refused_by_name(value: object) -> None:
    with pytest.raises(UsageError, match="The count must be a whole number of at least 2"):
        whole("The count", value, 2)


def test_good_values_come_back() -> None:
    assert positive("x", 0.5) == 0.5
    assert whole("x", 2, 2) == 2


@pytest.mark.parametrize("value", [0.0, 1.0, -1e-9, 1.5, math.nan, math.inf])
def test_what_is_not_between_0_and_1_is_refused_by_name(value: float) -> None:
    assert inside("delta", 5e-324) == 5e-324
    with pytest.raises(UsageError, match="delta"):
        inside("delta", value)
