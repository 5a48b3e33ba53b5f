"""The combinations of rows in which masks cancel, against all weights modulo 4 by enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.privacy.linear.masks import combined

MODULUS = 4


def of(rows: int, entries: list[tuple[int, int, float]]) -> tuple[int, list[int], list[float]]:
    columns = list(zip(*entries, strict=True)) or [(), (), ()]
    found = combined(
        rows, *(np.array(column, dtype=kind) for column, kind in zip(columns, (int, int, float), strict=True))
    )
    return found.rows, found.of_row.tolist(), found.sign.tolist()


def test_a_row_with_a_mask_of_its_own_tells_nothing_and_uncovers_no_neighbour() -> None:
    assert of(1, [(0, 0, 1.0)])[0] == 0
    # A pair mask joins rows 0 and 1; row 1 has a mask of its own, so the pair mask hides row 0 too.
    assert of(3, [(0, 0, 1.0), (1, 0, -1.0), (1, 1, 1.0)])[:2] == (1, [-1, -1, 0])


def test_rows_that_share_masks_tell_their_sum_with_the_signs_that_cancel_them() -> None:
    count, of_row, sign = of(4, [(0, 0, 1.0), (1, 0, -1.0), (1, 1, 1.0), (2, 1, 1.0)])
    assert (count, of_row[0], of_row[1], of_row[2]) == (2, of_row[0], of_row[0], of_row[0])
    assert of_row[3] != of_row[0]
    assert [sign[0], sign[1], sign[2]] in ([1.0, 1.0, -1.0], [-1.0, -1.0, 1.0])


def test_a_mask_that_cancels_within_a_row_is_not_there() -> None:
    assert of(2, [(0, 0, 1.0), (0, 0, -1.0), (1, 1, 1.0)])[:2] == (1, [0, -1])


def test_what_is_no_mask_of_two_users_hides_nothing() -> None:
    assert of(3, [(0, 0, 1.0), (1, 0, 1.0), (2, 0, 1.0)])[0] == 3  # in three rows
    assert of(2, [(0, 0, 2.0), (1, 0, -2.0)])[0] == 2  # with a weight of 2
    assert of(2, [(0, 0, 1.0), (1, 0, -1.0), (0, 1, 1.0), (1, 1, 1.0)])[0] == 1  # the second contradicts the first


@st.composite
def networks(draw: st.DrawFn) -> tuple[int, list[tuple[int, int, float]]]:
    """Draw rows and masks, each of which one row holds, or two with opposite signs."""
    rows = draw(st.integers(1, 5))
    entries = []
    for mask in range(draw(st.integers(0, 5))):
        one, other = draw(st.integers(0, rows - 1)), draw(st.integers(0, rows - 1))
        entries.append((one, mask, 1.0))
        if one != other and draw(st.booleans()):
            entries.append((other, mask, -1.0))
    return rows, entries


@given(networks())
def test_nothing_else_cancels_modulo_a_power_of_two(network: tuple[int, list[tuple[int, int, float]]]) -> None:
    rows, entries = network
    masks = 1 + max((mask for _, mask, _ in entries), default=0)
    matrix = np.zeros((rows, masks), dtype=int)
    for row, mask, weight in entries:
        matrix[row, mask] += int(weight)
    cancelling = {w for w in product(range(MODULUS), repeat=rows) if not (np.array(w) @ matrix % MODULUS).any()}
    count, of_row, sign = of(rows, entries)
    spanned = set()
    for shares in product(range(MODULUS), repeat=count):
        weights = [0 if at < 0 else shares[at] * int(s) % MODULUS for at, s in zip(of_row, sign, strict=True)]
        spanned.add(tuple(weights))
    assert spanned == cancelling
