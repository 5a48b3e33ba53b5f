from __future__ import annotations

import numpy as np
import pytest

from p2pdp.core.rows import ROWS
from p2pdp.files.spec import parse_spec
from p2pdp.mechanisms.grid import Grid
from p2pdp.protocols.records import Records, counts_of, records_of, sum_on_grid
from tests.support.small import RING


def test_a_spec_says_whether_there_are_any() -> None:
    assert records_of(parse_spec(RING, None), {ROWS: "1,2,3,4"}) is None
    spec = parse_spec(RING, None, ['privacy.unit="record"'])
    assert records_of(spec, {}) == Records(None)
    assert records_of(spec, {ROWS: "1,2,3,4"}) == Records((1, 2, 3, 4))


def test_counts_are_of_all_users_or_of_some() -> None:
    records = Records((4, 1, 5))
    assert (records.most, records.total, records.of([0, 2]), records.alike) == (5, 10, 9, None)
    assert Records((3, 3)).alike == 3
    unknown = Records(None)
    assert (unknown.most, unknown.total, unknown.of([0]), unknown.alike, unknown.per_row()) == (1, 0, 0, None, None)


def test_a_mean_over_users_becomes_one_over_rows() -> None:
    records = Records((4, 1, 5))
    assert records.per_row() == pytest.approx(3 / 10)
    assert records.per_row(absent=[2]) == pytest.approx(2 / 5)


def test_sums_are_no_further_apart_than_their_bounds_say() -> None:
    assert Records((4, 1)).spread(-1.0, 2.0) == 8.0 + 4.0
    assert Records((4, 1)).spread(1.0, 2.0) == 8.0 - 1.0
    assert Records(None).spread(1.0, 2.0) == 1.0


def test_one_row_moves_a_sum_on_the_grid_as_far_as_it_moves_alone() -> None:
    """Each row is rounded by itself, so the sensitivity is that of one row, whatever the others are."""
    grid, chance = Grid(-3), np.random.default_rng(1)
    others = chance.uniform(-1.0, 2.0, 50)
    reach = grid.grid_units_up(3.0)
    for low, high in ((-1.0, 2.0), (0.1, 0.3), (-0.99, 1.99)):
        one, other = (int(sum_on_grid(grid, np.append(others, value))) for value in (low, high))
        assert other - one == int(grid.to_grid(high)) - int(grid.to_grid(low))
        assert abs(other - one) <= reach


def test_rows_are_counted_by_category() -> None:
    assert counts_of([0, 2, 2, 3], 5).tolist() == [1, 0, 2, 1, 0]
