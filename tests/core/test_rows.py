from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.rows import ROWS, ROWS_MAX, count_problem, rows_in, rows_text


@given(st.lists(st.integers(1, ROWS_MAX), min_size=1, max_size=20))
def test_numbers_of_rows_round_trip(counts: list[int]) -> None:
    assert rows_in({ROWS: rows_text(counts), "n": len(counts)}) == tuple(counts)
    assert all(count_problem(count) is None for count in counts)


def test_without_the_fact_there_are_none() -> None:
    assert rows_in({"n": 3}) is None


@pytest.mark.parametrize("text", ["", ",", "1,", "0", "-1", "1.5", "1 ,2", "\u0663", str(ROWS_MAX + 1), 3])
def test_other_forms_are_refused(text: object) -> None:
    with pytest.raises(ValueError, match="rows"):
        rows_in({ROWS: text})


@pytest.mark.parametrize("count", [0, -1, ROWS_MAX + 1])
def test_nobody_has_so_many_rows(count: int) -> None:
    assert count_problem(count) is not None
