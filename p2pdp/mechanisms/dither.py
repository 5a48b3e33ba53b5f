"""Fine Gaussian noise for every message of gossip, so that the low bits of a float state say nothing.

A state of gossip is a float, and how its last bits were rounded depends on all values that went into it: enough of
them decode values that linear algebra leaves open. So a state is kept on a public grid, and what is sent is the state
plus a whole number of steps of that grid, drawn here. In real numbers this noise only post-processes what the exact
account covers. What rounding adds beside it is bounded in `privacy/rounding.py`.

Guarantee: `unfolded` gives independent numbers, each of which is distributed as N(0, SCALE^2) rounded to whole
numbers. The likelihood ratio between the two laws stays within exp(+-2^-70) for each number, but for an event of
probability below 2^-180. How:

* K is a discrete Gaussian on the whole numbers with deviation 256, drawn by comparing uniform bits with a table of
  its distribution function: 16 bits decide nearly always, 64 or 200 bits where they do not. The table is exact to
  2^-200 and ends 17 deviations out.
* The noise is w^2 K1 + w K2 + K3 with w = 128. Adding w times a wide discrete Gaussian to one of deviation 2w gives
  a discrete Gaussian whose probabilities are off by factors within 1 +- 2 exp(-2 pi^2 s^2), where s > 1.99 is the
  deviation of the conditional law of the wide one (Poisson summation, as in Micciancio and Walter, Crypto 2017).
  That is 3e-34, twice.
* A discrete Gaussian of variance v and N(0, v - 1/12) rounded agree up to factors within 1 +- x^4 / (2880 v^2) for
  |x| in deviations: below 2^-72 out to 17 deviations. The difference between v and v - 1/12 is below 2^-47 of v.

The uniform bits are a key stream of ChaCha20, whose key is a seed of 256 bits from the operating system: computational,
like the boxes around messages. The seed is what a ledger records as the draw, so a restart sends the same noise again.
The nonce names the counter and what the bits are for, so no two streams of a seed share a bit.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from p2pdp.core.draws import DITHER, Mechanism, Shape

_DEVIATION: Final = 256
_STRIDE: Final = _DEVIATION // 2
_LEVELS: Final = 3
SCALE: Final = _DEVIATION * math.sqrt(float(_STRIDE**4 + _STRIDE**2 + 1))
"""The standard deviation in steps of the fine grid, about 2^22."""

MECHANISM: Final = Mechanism(DITHER, SCALE)
SEED_SHAPE: Final[Shape] = (4,)

_BITS: Final = 200
_CELL_BITS: Final = 16
_MORE_BITS: Final = 48
_REST_BITS: Final = _BITS - _CELL_BITS - _MORE_BITS
_END: Final = 17 * _DEVIATION
_WORKING_BITS: Final = 280
_FIRST, _SECOND, _REST = 1, 2, 3  # what bits of a stream are for
_OPEN: Final = -(2**15)  # in the table: these 16 bits do not decide


@dataclass(frozen=True)
class _Table:
    """The distribution function of one discrete Gaussian; `thresholds[j]` is where its value becomes j + 1 - end."""

    thresholds: list[int]
    cells: npt.NDArray[np.int16]  # by the first 16 bits: the value, or that more bits are needed
    heads: npt.NDArray[np.uint64]  # the first 64 bits of the thresholds
    passed: npt.NDArray[np.int16]  # by the first 16 bits: how many thresholds are below all numbers that begin so
    several: npt.NDArray[np.bool_]  # by the first 16 bits: there is more than one threshold among them


def unfolded(seed: Any, counter: int, count: int) -> npt.NDArray[np.int32]:
    """Return `count` draws in steps of the grid: those of this counter, which a seed gives once."""
    return _drawn(_table(_DEVIATION), np.asarray(seed, dtype="<i8").tobytes(), counter, count)


def _stream(key: bytes, counter: int, purpose: int, size: int) -> bytes:
    """Return so many bytes of the key stream of this counter and purpose; OpenSSL counts blocks from 0."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

    nonce = bytes(4) + purpose.to_bytes(4, "little") + counter.to_bytes(8, "little")
    return Cipher(algorithms.ChaCha20(key, nonce), None).encryptor().update(bytes(size))


def _drawn(table: _Table, key: bytes, counter: int, count: int) -> npt.NDArray[np.int32]:
    first = np.frombuffer(_stream(key, counter, _FIRST, 2 * _LEVELS * count), dtype="<u2")
    levels = table.cells.take(first)
    places = (levels == _OPEN).nonzero()[0]
    if len(places):
        levels[places] = _decided(table, key, counter, first[places])
    wide, middle, narrow = levels.reshape(_LEVELS, count)
    sums = wide.astype(np.int32)  # which holds them all, in half of the memory
    sums *= _STRIDE
    sums += middle
    sums *= _STRIDE
    sums += narrow
    return sums


def _decided(table: _Table, key: bytes, counter: int, cells: npt.NDArray[np.uint16]) -> npt.NDArray[np.int16]:
    """Return values in open cells, by 64 bits in all, or by all 200 where those are the first bits of a threshold."""
    more = np.frombuffer(_stream(key, counter, _SECOND, 8 * len(cells)), dtype="<u8")
    heads = cells.astype(np.uint64) << _MORE_BITS | more >> _CELL_BITS
    below = table.passed.take(cells)
    below += table.heads.take(below, mode="clip") < heads
    if (several := table.several.take(cells).nonzero()[0]).size:
        below[several] = table.heads.searchsorted(heads[several])
    for place in (table.heads.take(below, mode="clip") == heads).nonzero()[0].tolist():
        rest = _stream(key, counter, _REST + place, _REST_BITS // 8)
        uniform = int(heads[place]) << _REST_BITS | int.from_bytes(rest, "little")
        below[place] = bisect_right(table.thresholds, uniform)
    return below - np.int16(_END)


def warm() -> None:
    """Build the table, some ten milliseconds' work, and load the cipher in a process that is going to fork."""
    _table(_DEVIATION)
    _stream(bytes(32), 0, _FIRST, 1)


@lru_cache(maxsize=4)
def _table(deviation: int) -> _Table:
    thresholds = _thresholds(deviation)
    starts = [cell << (_BITS - _CELL_BITS) for cell in range(2**_CELL_BITS + 1)]
    passed = [bisect_right(thresholds, start - 1) for start in starts]  # below the start of each cell
    heads = np.array([threshold >> _REST_BITS for threshold in thresholds], dtype=np.uint64)
    first, inside = np.array(passed[:-1], dtype=np.int16), np.diff(passed)
    return _Table(thresholds, np.where(inside, np.int16(_OPEN), first - np.int16(_END)), heads, first, inside > 1)


def _thresholds(deviation: int) -> list[int]:
    """Return thresholds in units of 2^-200: probabilities q^(i^2) by their ratios q, q^3, q^5, ..., added up."""
    with localcontext() as context:
        context.prec = 100
        ratio = int((Decimal(-1) / (2 * deviation**2)).exp() * 2**_WORKING_BITS)
    square = ratio * ratio >> _WORKING_BITS
    side, last = [], 1 << _WORKING_BITS
    for _ in range(_END):
        last = last * ratio >> _WORKING_BITS
        ratio = ratio * square >> _WORKING_BITS
        side.append(last)
    weights = [*reversed(side), 1 << _WORKING_BITS, *side]
    total = sum(weights)
    return [(below << _BITS) // total for below in accumulate(weights[:-1])]
