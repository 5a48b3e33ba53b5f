"""Integer noise and categories from uniform bytes, many at a time, with exactly the distribution that is named.

Guarantee: for independent uniform bytes, `Noise.drawn` gives independent integers with P(x) proportional to exp(-x^2
/ (2 scale^2)) (Gaussian) or exp(-|x| / scale) (Laplace), where the scale is the rational number that the float is, on
the condition that x fits an int64. That condition moves the law by less than 2^-184 in total variation at a scale of
2^56, and by less than 2^-1000 at 2^53 or below. `uniform` gives uniform numbers below a limit, `randomized` tosses
coins with exactly the probability that the float is. Draws, and how many bytes they take, are a function of the bytes
alone: floats decide only where a proved bound of their error allows it, and no mathematical library takes part.

Proposals: let p be the density with p(0) = 1, w = 2^k the width of a step, between 1/64 and 1/32 of the scale (1
where the scale is below 64), and m a factor. Step j is made of the magnitudes from j w to (j + 1) w - 1. It has n_j
>= m p(j w) of 2^14 slots; the tail has one. A word of 64 random bits names a slot, a sign, the place in the step, and
the first bits of a uniform number U in [0, 1). By its sign a magnitude a stands for a or -1 - a, so that no integer
is proposed in two ways. The proposal x of step j is accepted if U < q = m p(x) / n_j, which is at most 1. Then x
comes out with a probability proportional to n_j q / m = p(x), whatever the n_j are.

Decisions: the first bits of U are compared with bounds of q for the whole step, which decides some 98 of 100. The
others get 64 more bits, and q = base * exp(-d), d <= 0.15, by sums and products of floats. In these base is rounded
once, d is off by less than 2^-45 (the place in a step is known to 2^-43 and enters with a factor below 0.15), the
Taylor polynomial of degree 9 leaves out less than 2^-49, and rounding adds less than 2^-49. So the error is below
2^-44; the answer counts where U and q are more than 2^-40 apart. What is left is decided by whole numbers: exp is
enclosed ever more closely until q is on one side of all that U can be, or strictly between, where U gets 64 more
bits. This ends, since the exponential of a rational number other than 0 is irrational.

The tail, from T on, is made of pieces of W = 2^K >= scale integers, and piece g is named with probability 2^-(g + 1).
Since T >= scale, p(x) <= p(T) 2^-g holds there, and T is so far out that one slot is enough for every piece.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from p2pdp.core.arrays import Floats, Ints

Read = Callable[[int], bytes]
"""A source of uniform bytes: returns as many as it is asked for, never the same ones again."""

Words = npt.NDArray[np.uint64]

_WORD: Final = 64
_SLOT_BITS: Final = 14
_SLOTS: Final = 2**_SLOT_BITS
_TAIL_SLOTS: Final = 1
_STEP_BITS: Final = 5  # a scale has at least 2^5 steps, or each integer is one
_ONE_WORD_BITS_MAX: Final = 32  # places with more bits than this get a word of their own
_TABLE_BITS: Final = 96  # of the heights p(j w)
_FACTOR_BITS: Final = 32  # of the factor m
_PROPOSALS_MAX: Final = 2**14  # at once, so that they stay in the cache
_INT64_END: Final = 2**63
_MARGIN: Final = 2.0**-40  # floats closer than this do not decide
_FALL_MAX: Final = 0.15  # up to where the polynomial is near exp
_TERMS: Final = tuple((-1.0) ** power / math.factorial(power) for power in range(9, -1, -1))
_SQUARE: Final = 2


@dataclass(frozen=True)
class Noise:
    """A symmetric law on the integers, p(x) = exp(-x^2 / (2 scale^2)) or exp(-|x| / scale), with its table."""

    power: int  # of x
    scale: float
    place_bits: int  # k: a step has 2^k integers
    piece_bits: int  # K: a piece of the tail has 2^K integers
    bits: int  # of U that are in the first word
    sizes: list[int]  # n_j, and the tail's
    factor: int  # m in units of 2^-32
    spare: int  # proposals beyond those that are accepted, in 1024 of these
    slots: npt.NDArray[np.int16]  # the step of each slot
    floor: Words  # of a step and sign: the first bits of U below this are accepted
    ceiling: Words  # at or above this they are rejected
    base: Floats  # q at the beginning of a step
    slope: Floats  # d = part * (slope + curve * part), where part is how much of the step is passed
    curve: float

    def drawn(self, count: int, read: Read) -> Ints:
        """Return independent draws; bytes that are left over are dropped."""
        found: list[Ints] = []
        lacking = count
        while lacking > 0:
            wanted = min(lacking, _PROPOSALS_MAX)
            some = self._accepted(wanted + (wanted * self.spare >> 10) + math.isqrt(wanted) // 2 + 1, read)
            found.append(some[:wanted])
            lacking -= len(found[-1])
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _accepted(self, count: int, read: Read) -> Ints:
        """Return what is accepted of this number of proposals."""
        words = _words(read, count)
        steps = self.slots.take((words & np.uint64(_SLOTS - 1)).view(np.int64)).astype(np.int64)
        signs = (words >> np.uint64(_SLOT_BITS) & np.uint64(1)).view(np.int64)
        rest = words >> np.uint64(_SLOT_BITS + 1)
        mask = np.uint64(2**self.place_bits - 1)
        if self.place_bits > _ONE_WORD_BITS_MAX:
            places, uniform = (_words(read, count) & mask).view(np.int64), rest
        else:
            places, uniform = (rest & mask).view(np.int64), rest >> np.uint64(self.place_bits)
        rows = 2 * steps + signs
        values = (steps << self.place_bits) + places ^ -signs
        accepted = uniform < self.floor.take(rows)
        unclear = ((uniform < self.ceiling.take(rows)) & ~accepted).nonzero()[0]
        if len(unclear):
            some = values[unclear]
            accepted[unclear] = self._decided(steps[unclear], some, uniform[unclear], read)
            values[unclear] = some
        return values[accepted]

    def _decided(self, steps: Ints, values: Ints, uniform: Words, read: Read) -> npt.NDArray[np.bool_]:
        """Return which proposals are accepted; those of the tail get their values here."""
        more = _words(read, len(steps))
        chances, near = self.chances(steps, values)
        above = uniform * 2.0**-self.bits + more * 2.0 ** -(self.bits + _WORD) - chances
        accepted = above < 0
        tail = len(self.sizes) - 1
        for index in ((np.abs(above) <= _MARGIN) | ~near | (steps == tail)).nonzero()[0].tolist():
            step, value = int(steps[index]), int(values[index])
            if step == tail:
                accepted[index], values[index] = self._of_tail(value < 0, read)
                continue
            known = int(uniform[index]) << _WORD | int(more[index])
            ratio = self.factor, self.sizes[step] << _FACTOR_BITS
            exponent = _exponent(self.power, self.scale, abs(value))
            accepted[index] = below(*ratio, *exponent, known, self.bits + _WORD, read)
        return accepted

    def chances(self, steps: Ints, values: Ints) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return q of proposals, and where it is known to 2^-44."""
        part = np.abs(values) * 2.0**-self.place_bits - steps
        fall = part * (self.slope.take(steps) + self.curve * part)
        chance = np.full_like(fall, _TERMS[0])
        for term in _TERMS[1:]:
            chance = chance * fall + term
        return chance * self.base.take(steps), fall <= _FALL_MAX

    def _of_tail(self, negative: bool, read: Read) -> tuple[bool, int]:
        """Return whether a proposal in the tail is accepted, and which one it is."""
        piece = 0
        while (word := _word(read)) == 0:
            piece += _WORD
        piece += _WORD - word.bit_length()
        place = _word(read) & (2**self.piece_bits - 1)
        value = (len(self.sizes) - 1 << self.place_bits) + (piece << self.piece_bits) + place
        if value >= _INT64_END:
            return False, 0
        value = -1 - value if negative else value
        ratio = self.factor << self.piece_bits - self.place_bits + piece + 1, self.sizes[-1] << _FACTOR_BITS
        return below(*ratio, *_exponent(self.power, self.scale, abs(value)), _word(read), _WORD, read), value


@lru_cache(maxsize=32)
def noise(power: int, scale: float) -> Noise:
    """Return the law with this scale, with its table: a few milliseconds' work, some 50 kB."""
    exponent = math.frexp(scale)[1]  # 2^(exponent - 1) <= scale < 2^exponent
    place_bits, piece_bits = max(0, exponent - 1 - _STEP_BITS), max(0, exponent)
    low, high = _heights(power, scale, place_bits, piece_bits)
    steps = len(high) - 1
    unit = _TABLE_BITS + _FACTOR_BITS
    factor = (_SLOTS - _TAIL_SLOTS - steps << unit) // sum(high[:-1])
    sizes = [-(-factor * height >> unit) for height in high[:-1]]
    sizes[0] += _SLOTS - _TAIL_SLOTS - sum(sizes)
    bits = _WORD - _SLOT_BITS - 1 - (place_bits if place_bits <= _ONE_WORD_BITS_MAX else 0)
    floor, ceiling = [], []
    for step, size in enumerate(sizes):
        for sign in (0, 1):
            first, last = (step, step + 1) if place_bits else (step + sign, step + sign)
            floor.append((factor * low[last] << bits) // (size << unit))
            ceiling.append(min(-((-factor * high[first] << bits) // (size << unit)), 2**bits))
    used = factor * (2 * sum(high) - high[0] - high[-1]) >> unit  # of twice as many slots
    width = 2.0**place_bits / scale if place_bits else 0.0
    slope = np.full(steps + 1, width if place_bits else 1.0)  # with steps of 1, floats decide at their beginning only
    if power == _SQUARE and place_bits:
        slope = np.arange(steps + 1) * width**2
    return Noise(
        power=power,
        scale=scale,
        place_bits=place_bits,
        piece_bits=piece_bits,
        bits=bits,
        sizes=[*sizes, _TAIL_SLOTS],
        factor=factor,
        spare=1024 * (2 * _SLOTS - used) // used + 1,
        slots=np.repeat(np.arange(steps + 1), [*sizes, _TAIL_SLOTS]).astype(np.int16),
        floor=np.array([*floor, 0, 0], dtype=np.uint64),
        ceiling=np.array([*ceiling, 2**bits, 2**bits], dtype=np.uint64),
        base=np.array([factor * one / (size << unit) for one, size in zip(high, [*sizes, _TAIL_SLOTS], strict=True)]),
        slope=slope,
        curve=width**2 / 2 if power == _SQUARE else 0.0,
    )


def _heights(power: int, scale: float, place_bits: int, piece_bits: int) -> tuple[list[int], list[int]]:
    """Return bounds of the density where steps begin, in units of 2^-96; the last place is where the tail begins."""
    low: list[int] = []
    high: list[int] = []
    total = 0
    while True:
        place = len(high) << place_bits
        lower, upper = exp_bounds(*_exponent(power, scale, place), _TABLE_BITS)
        low.append(lower)
        high.append(upper)
        # The factor is at most the number of slots over `total`, so 2 W / w m p(T) <= 1 holds.
        if place >= scale and _SLOTS * upper << piece_bits - place_bits + 1 <= _TAIL_SLOTS * total:
            return low, high
        total += upper


def _exponent(power: int, scale: float, magnitude: int) -> tuple[int, int]:
    """Return numerator and denominator of what p(x) = exp(-...) has in the exponent."""
    numerator, denominator = scale.as_integer_ratio()
    if power == _SQUARE:
        return (magnitude * denominator) ** 2, 2 * numerator**2
    return magnitude * denominator, numerator


def exp_bounds(numerator: int, denominator: int, bits: int) -> tuple[int, int]:
    """Return whole numbers next to 2^bits exp(-numerator / denominator), one below or equal and one above or equal."""
    if numerator == 0:
        return 1 << bits, 1 << bits
    context = Context(prec=bits * 3 // 10 + 20, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[], rounding=ROUND_FLOOR)
    least = context.divide(Decimal(numerator), Decimal(denominator))
    most = context.next_plus(least)
    unit = Decimal(1 << bits)
    lower = context.multiply(context.next_minus(context.exp(context.minus(most))), unit)
    context.rounding = ROUND_CEILING
    upper = context.multiply(context.next_plus(context.exp(context.minus(least))), unit)
    return max(0, math.floor(lower)), math.ceil(upper)


def below(ratio: int, of: int, numerator: int, denominator: int, known: int, bits: int, read: Read) -> bool:
    """Return whether U < q = ratio / of * exp(-numerator / denominator), where U begins with `known`, in `bits` bits.

    Further bits of U are read in words, when q lies strictly between known / 2^bits and (known + 1) / 2^bits.
    """
    precision = bits + _WORD
    while True:
        lower, upper = (ratio * bound for bound in exp_bounds(numerator, denominator, precision))
        edge = known * of << precision - bits
        step = of << precision - bits
        if edge >= upper:
            return False
        if edge + step <= lower:
            return True
        if (edge < lower or edge == 0) and upper < edge + step:  # q is above 0 for certain
            known, bits = known << _WORD | _word(read), bits + _WORD
        precision += _WORD


def uniform(read: Read, options: int, count: int) -> Ints:
    """Return independent uniform numbers from 0 to `options` - 1, for at most 2^63 options."""
    multiples = 2**_WORD // options * options
    found = _words(read, count)
    if multiples < 2**_WORD:
        while len(places := (found >= np.uint64(multiples)).nonzero()[0]):
            found[places] = _words(read, len(places))
    return (found % np.uint64(options)).view(np.int64)


def randomized(read: Read, gamma: float, categories: int, count: int) -> Ints:
    """Return -1 with probability 1 - gamma, and otherwise a uniform category."""
    numerator, denominator = gamma.as_integer_ratio()
    known, rest = divmod(numerator << _WORD, denominator)
    if known == 2**_WORD:
        return uniform(read, categories, count)
    words = _words(read, count)
    chosen = words < np.uint64(known)
    if rest:
        for index in (words == np.uint64(known)).nonzero()[0].tolist():
            chosen[index] = below(numerator, denominator, 0, 1, known, _WORD, read)
    values = np.full(count, -1)
    values[chosen] = uniform(read, categories, int(np.count_nonzero(chosen)))
    return values


def tallies(read: Read, elements: int, categories: int, count: int) -> Ints:
    """Return the tallies, one after another, of this number of uniform elements each."""
    found = np.zeros((count, categories), dtype=np.int64)
    for row in range(count):
        for start in range(0, elements, _PROPOSALS_MAX):
            some = uniform(read, categories, min(_PROPOSALS_MAX, elements - start))
            found[row] += np.bincount(some, minlength=categories)
    return found.reshape(-1)


def _words(read: Read, count: int) -> Words:
    return np.frombuffer(read(8 * count), dtype="<u8").astype(np.uint64)


def _word(read: Read) -> int:
    return int.from_bytes(read(8), "little")
