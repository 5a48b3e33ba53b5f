"""Draws of the rows that enter a minibatch: each with the same chance, drawn by the node that holds them.

Guarantee: a draw of `rows` for m rows is a bit for each of them, in words of 64; bits are independent, and each is 1
with the chance that is `scale`, raised to the next multiple of 2^-64 where it is none. Bits beyond the last row are 0.
`chosen` returns the places of the ones, in rising order.

A draw is recorded and kept secret like any other: its law is public, and what was drawn is in the private ledger.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np

from p2pdp.core.arrays import Bools, Ints
from p2pdp.core.draws import ROWS, Mechanism, Shape
from p2pdp.core.errors import UsageError

WORD: Final = 64
ROWS_MAX: Final = 1 << 24


def mechanism_of(share: float, rows: int) -> tuple[Mechanism, Shape]:
    """Return the mechanism that draws from so many rows, and the shape of a draw."""
    if not (0.0 < share <= 1.0 and 1 <= rows <= ROWS_MAX):
        raise UsageError(f"Rows are drawn with a chance above 0 and at most 1, of at most {ROWS_MAX}.")
    return Mechanism(ROWS, share, rows), (-(-rows // WORD),)


def drawn(read: Callable[[int], bytes], mechanism: Mechanism, count: int) -> Ints:
    """Return so many draws, one below the other, made of uniform bytes."""
    threshold = math.ceil(Fraction(mechanism.scale) * 2**WORD) if mechanism.scale < 1.0 else 1 << WORD
    rows = mechanism.categories
    uniform = np.frombuffer(read(8 * rows * count), dtype="<u8").reshape(count, rows)
    bits = uniform < np.uint64(threshold) if threshold < 1 << WORD else np.ones((count, rows), dtype=np.bool_)
    return packed(bits)


def packed(bits: Bools) -> Ints:
    """Return rows of bits as rows of words."""
    count, rows = bits.shape
    padded = np.zeros((count, -(-rows // WORD) * WORD), dtype=np.bool_)
    padded[:, :rows] = bits
    return np.packbits(padded, axis=1, bitorder="little").view("<i8").astype(np.int64)


def chosen(words: Ints, rows: int) -> Ints:
    """Return which rows a draw has chosen."""
    bits = np.unpackbits(np.ascontiguousarray(words, dtype="<i8").view(np.uint8), bitorder="little")
    return np.flatnonzero(bits[:rows])
