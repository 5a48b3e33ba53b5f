from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.mechanisms.clipping import Bounds, sensitivity
from p2pdp.mechanisms.grid import Grid, choose_grid

MODERATE = st.floats(-1e6, 1e6)


def test_numbers_go_to_the_step_below() -> None:
    grid = Grid(-2)
    assert grid.step == 0.25
    assert grid.to_grid(0.74) == 2
    assert grid.to_grid(-0.01) == -1
    assert grid.to_grid(np.array([0.74, -0.01, 0.75])).tolist() == [2, -1, 3]
    assert grid.from_grid(3) == 0.75
    assert grid.from_grid(np.array([3, -1])).tolist() == [0.75, -0.25]


@given(MODERATE, st.integers(-40, 40))
def test_the_grid_is_the_exact_floor_for_numbers_and_arrays(value: float, exponent: int) -> None:
    grid = Grid(exponent)
    exact = math.floor(Fraction(value) / Fraction(2) ** exponent)
    if abs(exact) >= 2**63:
        with pytest.raises(UsageError):
            grid.to_grid(value)
        return
    assert grid.to_grid(value) == exact
    on_grid = grid.to_grid(np.array([value]))
    assert on_grid.dtype == np.int64
    assert on_grid.tolist() == [exact]
    assert type(grid.to_grid(value)) is int


@given(st.integers(-(2**53), 2**53), st.integers(-100, 100))
def test_whole_steps_survive_the_way_out_and_back(count: int, exponent: int) -> None:
    grid = Grid(exponent)
    assert grid.to_grid(grid.from_grid(count)) == count


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 2.0**63, -(2.0**63), 1e300])
def test_what_does_not_fit_is_refused(bad: float) -> None:
    with pytest.raises(UsageError, match="fit on the grid"):
        Grid(0).to_grid(bad)
    with pytest.raises(UsageError, match="fit on the grid"):
        Grid(0).to_grid(np.array([0.0, bad]))
    with pytest.raises(UsageError, match="fit on the grid"):
        Grid(-1000).to_grid(np.array([1e100]))


def test_a_tiny_negative_number_is_below_zero_on_the_coarsest_grid() -> None:
    assert Grid(1000).to_grid(-5e-324) == -1
    assert Grid(1000).to_grid(np.array([-5e-324])).tolist() == [-1]


@pytest.mark.parametrize("exponent", [1001, -1001, 0.5, None])
def test_exponents_out_of_range_are_refused(exponent: int) -> None:
    with pytest.raises(UsageError, match="grid exponent"):
        Grid(exponent)


def test_lengths_are_rounded_up() -> None:
    assert Grid(-2).grid_units_up(1.0) == 4
    assert Grid(-2).grid_units_up(1.01) == 5
    assert Grid(1000).grid_units_up(1e-300) == 1
    with pytest.raises(UsageError, match="length"):
        Grid(0).grid_units_up(math.inf)


@given(
    st.lists(st.floats(-1.0, 2.0), min_size=1, max_size=6),
    st.lists(st.floats(-1.0, 2.0), min_size=6, max_size=6),
    st.integers(-6, 3),
)
def test_no_replaced_row_moves_further_on_the_grid_than_its_sensitivity(
    row: list[float], other: list[float], exponent: int
) -> None:
    grid = Grid(exponent)
    moved = grid.to_grid(np.array(row)) - grid.to_grid(np.array(other[: len(row)]))
    bounds = Bounds(-1.0, 2.0)
    limit = grid.sensitivity(bounds, len(row))
    assert int((moved**2).sum()) <= Fraction(limit) ** 2
    assert limit * grid.step >= sensitivity(bounds, len(row))


def test_each_coordinate_is_rounded_by_itself() -> None:
    """100 numbers of 1.5 steps can move 2 steps each: 20 in all, where rounding the diagonal gives only 15."""
    bounds = Bounds(0.75, 2.25)
    moved = Grid(0).to_grid(np.full(100, 2.25)) - Grid(0).to_grid(np.full(100, 0.75))
    assert math.sqrt(int((moved**2).sum())) == 20 == Grid(0).sensitivity(bounds, 100)
    assert Grid(0).grid_units_up(sensitivity(bounds, 100)) == 15


def test_known_grids() -> None:
    assert choose_grid(1.0, 1.0, 1000.0) == Grid(-30)
    assert choose_grid(1.5, 1.0, 1000.0) == Grid(-29)
    assert choose_grid(1.0, 1.0, 2.0**31) == Grid(-29)  # 2**31 itself would be 2**61 steps of 2**-30
    assert choose_grid(1.0, 1.0, math.nextafter(2.0**31, 0)) == Grid(-30)
    assert choose_grid(None, 1.0, 1000.0) == Grid(-32)
    assert choose_grid(None, 1.0, 2.0**35) == Grid(-25)


@given(st.one_of(st.none(), st.floats(1e-30, 1e30)), st.floats(1e-30, 1e30), st.floats(1e-30, 1e30))
def test_the_grid_is_the_finest_allowed(scale_min: float | None, span: float, magnitude_max: float) -> None:
    scale = Fraction(span if scale_min is None else scale_min)
    most = 2**32 if scale_min is None else 2**30

    def allowed(exponent: int) -> bool:
        step = Fraction(2) ** exponent
        return 2**20 <= scale / step <= most and magnitude_max / step < 2**61

    exponents = [exponent for exponent in range(-150, 150) if allowed(exponent)]
    if exponents:
        assert choose_grid(scale_min, span, magnitude_max) == Grid(exponents[0])
    else:
        with pytest.raises(UsageError, match=r"\[noise\], \[data\] clip"):
            choose_grid(scale_min, span, magnitude_max)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_scales_spans_and_magnitudes_are_refused(bad: float) -> None:
    for arguments in ((bad, 1.0, 1.0), (1.0, bad, 1.0), (1.0, 1.0, bad), (None, bad, 1.0)):
        too_far = arguments[2] == math.inf  # sums of noise beyond all floats: the keys are named that lead there
        with pytest.raises(UsageError, match=r"^\[noise\]" if too_far else "must be a finite number above 0"):
            choose_grid(*arguments)
