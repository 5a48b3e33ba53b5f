from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.mechanisms.clipping import Bounded, Bounds, clip, sensitivity

UNIT = Bounds(0.0, 1.0)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def test_numbers_outside_are_moved_to_the_nearer_bound_and_counted() -> None:
    bounded = clip([-5.0, 0.25, 1.0, 7.0], UNIT)
    assert bounded.rows.tolist() == [0.0, 0.25, 1.0, 1.0]
    assert bounded.clipped == 2
    assert bounded.bounds == UNIT


def test_a_table_keeps_its_shape() -> None:
    bounded = clip(np.array([[0.5, 2.0], [3.0, -1.0], [0.0, 1.0]]), UNIT)
    assert bounded.rows.tolist() == [[0.5, 1.0], [1.0, 0.0], [0.0, 1.0]]
    assert bounded.clipped == 3


def test_empty_data_is_answered() -> None:
    assert clip([], UNIT).rows.shape == (0,)
    assert clip(np.empty((0, 3)), UNIT).rows.shape == (0, 3)


def test_whole_numbers_and_truth_values_become_floats() -> None:
    assert clip([0, 1, 3], UNIT).rows.dtype == np.float64
    assert clip([True, False], UNIT).rows.tolist() == [1.0, 0.0]


@given(st.lists(FINITE), FINITE, FINITE)
def test_everything_ends_inside_the_bounds_and_what_was_inside_stays(
    values: list[float], low: float, high: float
) -> None:
    if not low < high or math.isinf(high - low):
        with pytest.raises(UsageError):
            Bounds(low, high)
        return
    bounded = clip(values, Bounds(low, high))
    inside = [low <= value <= high for value in values]
    assert bounded.clipped == inside.count(False)
    for value, row, was_inside in zip(values, bounded.rows.tolist(), inside, strict=True):
        assert low <= row <= high
        assert row == value or not was_inside


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, 1.0), (math.nan, 1.0), (0.0, math.inf), (-1e308, 1e308)])
def test_bad_bounds_are_refused(low: float, high: float) -> None:
    with pytest.raises(UsageError, match="bounds must"):
        Bounds(low, high)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused_by_place_and_not_by_value(bad: float) -> None:
    with pytest.raises(UsageError, match=r"^Row 2 of the data") as caught:
        clip([0.123, 0.456, bad], UNIT)
    with pytest.raises(UsageError, match=r"^Row 1, column 0 of the data"):
        clip(np.array([[0.1, 0.2], [bad, 0.3]]), UNIT)
    for secret in ("0.123", "0.456", "nan", "inf"):
        assert secret not in str(caught.value)


@pytest.mark.parametrize("bad", [["1.0"], [None], [1 + 2j], 3.0, [[[1.0]]], [[1.0], [1.0, 2.0]], [[], []]])
def test_what_is_no_list_or_table_of_numbers_is_refused(bad: Any) -> None:
    with pytest.raises(UsageError, match=r"The (rows of the )?data must"):
        clip(bad, UNIT)


def test_bounded_rows_cannot_be_changed_and_do_not_follow_the_source() -> None:
    source = np.array([0.5, 0.5])
    bounded = clip(source, UNIT)
    source[0] = 0.75
    assert bounded.rows.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        bounded.rows[0] = 5.0


def test_a_bounded_cannot_be_made_from_raw_numbers() -> None:
    with pytest.raises(UsageError, match="read-only"):
        Bounded(np.array([0.5]), UNIT, 0)
    for raw in (2.0, math.nan):
        rows = np.array([raw])
        rows.setflags(write=False)
        with pytest.raises(UsageError, match="within their bounds"):
            Bounded(rows, UNIT, 0)


def test_values_are_not_in_the_text() -> None:
    assert repr(clip([0.123, 9.0], UNIT)) == "Bounded(shape=(2,))"
    assert "0.123" not in str(clip([0.123], UNIT))


def test_sensitivity_is_the_diagonal_of_the_box() -> None:
    assert sensitivity(UNIT, 1) == 1.0
    assert sensitivity(Bounds(-1.0, 1.0), 4) == 4.0
    assert sensitivity(Bounds(-1.0, 2.0), 3) == pytest.approx(3 * math.sqrt(3), rel=1e-15)
    with pytest.raises(UsageError, match="dimensions"):
        sensitivity(UNIT, 0)
