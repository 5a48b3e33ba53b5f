"""The law of a user's contributions in a stretch of a walk on the complete graph, given the token's number of moves.

A token that stays with its holder takes no time on the network, so the time between two visits shows how many of the
steps between them were moves from one user to another. Given that number, the M slots of a stretch fall into K blocks,
K - 1 moves apart: their lengths are a uniform composition of M, independent of the holders, who are a uniform sequence
of K of the m = n - 1 other users in which neighbours differ. Both are counted exactly.

`most_told` says how well the other users hide whether the user was in the stretch at all, as advanced joint convexity
[BBG18, Theorem 2] takes it. In every path with the user, replace each of its blocks by a
user drawn uniformly from those who differ from it and from both neighbours. With I(y) the sum over all sets of blocks
of path y that could have been the user's, the empty set included, of the product of 1/choices, a path y without the
user is reached I(y) - 1 times as often as it occurs by itself. The mixture of both is then split as (1 - q) of paths
without the user and q of the rest, each path of the rest with a partner among the first at a distance of at most its
own contributions, where q = 1 - 1/max I(y). That is P(the user is there) but for terms of the third order in 1/m.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.privacy.hidden_path.gaps import Until

OTHER: Final = 0  # a slot known to be somebody else's
OWN: Final = 1  # a slot known to be the user's
HIDDEN: Final = 2
_FREE: Final = 3  # somebody else's, whoever that is
_ENDS: Final = {OTHER: (OTHER,), OWN: (OWN,), HIDDEN: (OWN, _FREE)}  # what a slot can turn out to be
_VANISHED: Final = 40.0  # the exponential of its negative does not show beside 1
_UP: Final = 1.0 + 1e-7  # for the rounding of a share
_FEW: Final = 32


class Slots(NamedTuple):
    """A stretch as one user is in it: so many slots in so many blocks, and what is known of its two ends.

    With `alike` both ends are known to be the same other user's. With `silent` the first slot's holder contributed
    nothing in it: it only sent the token on its way. With another `until` than `EXACT` there are at most so many
    blocks, and nothing is known of the last slot (see `gaps.py`).
    """

    length: int
    blocks: int
    first: int
    last: int
    alike: bool
    silent: bool
    until: Until = Until.EXACT


def canonical(n: int, slots: Slots) -> Slots:
    """Merge stretches with the same law: a walk is reversible, and after many moves the ends do not show."""
    length, blocks, first, last, alike, silent, until = slots
    silent = silent and first == OWN
    if first > last and not silent:
        first, last = last, first
    shows = n < 4 or (blocks - 2) * math.log(n - 3.0) <= _VANISHED
    alike = alike and shows and (first, last) == (OTHER, OTHER)
    return Slots(length, blocks, first, last, alike, silent, until)


def most_told(n: int, stretches: Iterable[Slots]) -> float:
    """Return the largest share q of these stretches together; 1 where hiding does not protect the user."""
    sets = 0.0  # the logarithm of I
    for slots in stretches:
        if n == 2 or OWN in (slots.first, slots.last):
            return 1.0
        sets += max(_log_sets(n - 1, likely) for likely in _possible(slots))
    return min(1.0, -math.expm1(-sets) * _UP)


def _possible(slots: Slots) -> list[Slots]:
    """Return the stretch with each number of blocks that there can be."""
    if slots.until is Until.EXACT:
        return [slots]
    return [
        slots._replace(blocks=blocks, until=Until.EXACT) for blocks in range(1, min(slots.blocks, slots.length) + 1)
    ]


def _log_sets(m: int, slots: Slots) -> float:
    """Return the logarithm of max I(y), y with as few choices at each block as there can be."""
    hidden, inner = (slots.first == HIDDEN) + (slots.last == HIDDEN), slots.blocks - 2
    if inner < 0:
        return math.log1p(1.0 / (m - 1)) if hidden == 2 else 0.0
    choices = m - 2 if inner == 1 and slots.alike else m - 3
    if (inner and choices < 1) or (hidden and m < 3):
        return math.inf
    end = 1.0 / (m - 2) if hidden else 0.0
    weight = 1.0 / choices if inner else 1.0
    root = math.sqrt(1.0 + 4.0 * weight)
    growth, other = (1.0 + root) / 2.0, (1.0 - root) / 2.0

    def independent(fewer: int) -> float:
        """Return the sum over all sets of blocks in a row, no two of them neighbours, divided by growth^inner."""
        power = inner - fewer + 2
        return float(growth ** (2 - fewer) * (1.0 - (other / growth) ** power) / root)

    total = independent(0) + hidden * end * independent(1) + (hidden == 2) * end**2 * independent(2)
    return inner * math.log(growth) + math.log(total)


def law(n: int, stretches: Sequence[Slots], cut: float) -> Floats:
    """Return the law of the user's contributions in all these stretches; `cut` bounds the unlikely numbers left out."""
    if stretches and stretches[0].until is not Until.EXACT:
        found = _law_of_latest(n - 1, stretches, cut / 2.0)
    else:
        found = np.ones(1)
        for slots in stretches:
            found = np.convolve(found, _law(n - 1, slots, cut / (2.0 * len(stretches))))
    found[found * len(found) * 2.0 < cut] = 0.0
    return np.trim_zeros(found, "b")


def _law_of_latest(m: int, stretches: Sequence[Slots], cut: float) -> Floats:
    """Return the law where none has more blocks than it may; with `REACHED` one has as many.

    The laws of fewer blocks and of just as many are kept apart, so that nothing is taken away from anything.
    """
    chances = [_chances(m, slots) for slots in stretches]
    reached = stretches[0].until is Until.REACHED
    total = _sum_of_products([(np.ones(1) * few, np.ones(1) * most) for few, most, _ in chances], reached=reached)
    least = cut * float(total[0]) / (4.0 * sum(slots.length for slots in stretches))
    parts = []
    for slots, (_, _, masses) in zip(stretches, chances, strict=True):
        sides = np.zeros((2, slots.length + 1))  # with fewer blocks, and with just as many
        for possible, mass in zip(_possible(slots), masses, strict=True):
            if mass > least:
                one = _law(m, possible, cut / 4.0)
                sides[int(possible.blocks == slots.blocks), : len(one)] += mass * one
        parts.append((sides[0], sides[1]))
    found = _sum_of_products(parts, reached=reached)
    return np.asarray(found / float(total[0]))


def _chances(m: int, slots: Slots) -> tuple[float, float, Floats]:
    """Return the chances of fewer blocks than there may be, of just as many, and of each number on the way."""
    moves = np.arange(min(slots.blocks, slots.length), dtype=np.float64)
    stays = slots.length - 1 - moves
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(moves > 0, moves * np.log((m - 1) / m), 0.0) - stays * math.log(m)
    masses = np.exp(_log_choose(slots.length - 1, moves) + logs)
    most = float(masses[slots.blocks - 1]) if slots.blocks <= slots.length else 0.0
    return float(masses.sum()) - most, most, np.asarray(masses)


def _sum_of_products(parts: Sequence[tuple[Floats, Floats]], *, reached: bool) -> Floats:
    """Convolve all sums of both sides; if one has `reached` the second side, less that of the first sides."""
    first, both = np.ones(1), np.ones(1)
    second = np.zeros(1)
    for few, most in parts:
        second = _added(np.convolve(second, few + most), np.convolve(first, most))
        first = np.convolve(first, few)
        both = np.convolve(both, few + most)
    return second if reached else both


def _added(one: Floats, other: Floats) -> Floats:
    found = np.zeros(max(len(one), len(other)))
    found[: len(one)] += one
    found[: len(other)] += other
    return found


def _law(m: int, slots: Slots, cut: float) -> Floats:
    length, stays = slots.length, slots.length - slots.blocks
    silent = 1 if slots.silent and slots.first == OWN else 0
    if m == 1:
        return np.append(np.zeros(length - silent), 1.0)
    owned = _blocks_law(m, slots, cut)
    j, more = np.nonzero(owned)[0][:, None], np.arange(stays + 1)[None, :]
    logs = _log_choose(j + more - 1, more) + _log_choose(length - j - more - 1, stays - more)
    each = owned[j] * np.exp(logs - _log_choose(length - 1, stays))
    found = np.bincount((j + more).ravel(), weights=each.ravel())
    return np.asarray(found[silent:] / found.sum())


def _blocks_law(m: int, slots: Slots, cut: float) -> Floats:
    """Return the law of how many of the blocks are the user's; none, if nobody can be in such a stretch."""
    last = slots.blocks if m < 3 else min(_FEW, slots.blocks)
    while True:
        logs = _log_counts(m, slots, np.arange(last + 1.0))
        if np.all(np.isneginf(logs)):
            return np.ones(1)
        masses = np.exp(logs - logs.max())
        masses /= masses.sum()
        if last == slots.blocks or masses[-1] <= min(0.5 * masses[-2], cut):  # the rest weighs no more than this one
            return np.asarray(masses)
        last = min(2 * last, slots.blocks)


def _log_counts(m: int, slots: Slots, owned: Floats) -> Floats:
    """Return the logarithm of the number of sequences of holders, for each number of the user's blocks."""
    blocks, first, last, found = slots.blocks, slots.first, slots.last, np.full(len(owned), -math.inf)
    if blocks == 1:
        found[0] = -math.inf if OWN in (first, last) else math.log(m - 1) if first == last == HIDDEN else 0.0
        found[1] = -math.inf if OTHER in (first, last) else 0.0
        return found
    for begin, end in itertools.product(_ENDS[first], _ENDS[last]):
        known = (begin, end).count(OTHER)
        runs = owned + 1.0 - (begin, end).count(OWN)  # of blocks of others, in a row
        others = blocks - owned
        logs = _log_choose(others - 1.0, runs - 1.0) + (runs - known) * math.log(m - 1)
        free = others - runs  # blocks of others that follow another one
        logs += np.where(free > 0.0, free * math.log(m - 2) if m > 2 else -math.inf, 0.0)
        logs[(runs < 1.0) | (free < 0.0)] = -math.inf
        if known == 2:
            logs[0] = _log_without(m, blocks - 1, alike=slots.alike)
        found = np.logaddexp(found, logs)
    return np.asarray(found)


def _log_without(m: int, moves: int, *, alike: bool) -> float:
    """Return it for no block of the user, between known ends: walks on the complete graph of m - 1 users."""
    if m < 3:
        return -math.inf
    swing = (-1.0 / (m - 2)) ** moves
    share = (1.0 + (m - 2) * swing if alike else 1.0 - swing) / (m - 1)
    return moves * math.log(m - 2) + math.log(share) if share > 0.0 else -math.inf


def _log_choose(n: Any, k: Any) -> Floats:
    """Return the logarithms of binomial coefficients of whole numbers; with k below 0 or above n there is no way."""
    n, k = np.asarray(n), np.asarray(k)
    fits = (k > 0) & (k <= n)
    some, chosen = (fits * n).astype(np.int64), (fits * k).astype(np.int64)  # 0 of 0 where there is none or no way
    known = _log_factorials(int(some.max(initial=1)).bit_length())
    return np.where(fits | (k == 0), known[some] - known[chosen] - known[some - chosen], -math.inf)


@lru_cache(maxsize=32)
def _log_factorials(bits: int) -> Floats:
    """Return the logarithms of the factorials of all numbers of so many bits."""
    from scipy.special import gammaln

    return np.asarray(gammaln(np.arange(2.0**bits) + 1.0))
