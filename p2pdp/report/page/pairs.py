"""Summaries of a matrix [user, observer]: best, typical and worst pair, each user's worst observer, distances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p2pdp.core.arrays import Floats

if TYPE_CHECKING:
    from p2pdp.auditor.pairs import PairTotals


@dataclass(frozen=True)
class Pair:
    user: int
    observer: int
    epsilon: float
    mu: float | None
    variation: float | None = None


@dataclass(frozen=True)
class Spread:
    """`typical` is the median pair: half of all pairs are at or below it. `infinite` counts pairs without any bound.

    Of pairs that were not held the median is not known.
    """

    best: Pair
    typical: Pair | None
    worst: Pair
    count: int
    infinite: int


def known(matrix: Floats | None) -> bool:
    return matrix is not None and bool(np.any(~np.isnan(matrix)))


def spread(epsilon: Floats, mu: Floats | None, variation: Floats | None = None) -> Spread:
    """Summarize a matrix with at least one pair."""
    flat = epsilon.ravel()
    places = np.nonzero(~np.isnan(flat))[0]
    order = places[np.argsort(flat[places], kind="stable")]
    worst = places[int(np.argmax(flat[places]))]  # of equal ones the first, as in the claims

    def pair(place: int) -> Pair:
        user, observer = divmod(int(place), epsilon.shape[1])
        known_ones = (None if one is None else float(one[user, observer]) for one in (mu, variation))
        rest = (None if one is None or math.isnan(one) else one for one in known_ones)
        return Pair(user, observer, float(flat[place]), *rest)

    infinite = int(np.sum(np.isinf(flat[places])))
    return Spread(pair(order[0]), pair(order[len(order) // 2]), pair(worst), len(order), infinite)


def spread_of(totals: PairTotals) -> Spread:
    """Return the same of pairs that were not held."""

    def pair(user: int, observer: int, epsilon: float, mu: float) -> Pair:
        return Pair(user, observer, epsilon, None if math.isnan(mu) else mu)

    user = int(np.nanargmax(totals.epsilon))
    worst = pair(user, int(totals.observer[user]), float(totals.epsilon[user]), float(totals.mu[user]))
    return Spread(pair(*totals.best), None, worst, totals.pairs, totals.infinite)


@dataclass(frozen=True)
class Row:
    """One user's data: who could have learned most about it, and what its observers could on average."""

    user: int
    observer: int
    worst: float
    mean: float


def rows(epsilon: Floats) -> list[Row]:
    """Return all users about whom something is known."""
    found = []
    for user, values in enumerate(epsilon):
        given = values[~np.isnan(values)]
        if len(given):
            observer = int(np.nanargmax(values))
            found.append(Row(user, observer, float(values[observer]), float(np.mean(given))))
    return found


def rows_of(totals: PairTotals) -> list[Row]:
    """Return the same of pairs that were not held."""
    columns = (totals.observer.tolist(), totals.epsilon.tolist(), totals.mean.tolist())
    rows = enumerate(zip(*columns, strict=True))
    return [Row(user, *numbers) for user, numbers in rows if not math.isnan(numbers[1])]


@dataclass(frozen=True)
class Step:
    """All pairs at one graph distance."""

    distance: int
    pairs: int
    best: float
    mean: float
    worst: float


def by_distance(epsilon: Floats, distances: Floats) -> list[Step]:
    there = ~np.isnan(epsilon) & np.isfinite(distances)
    found = []
    for distance in np.unique(distances[there]):
        values = epsilon[there & (distances == distance)]
        worst, mean, best = float(np.max(values)), float(np.mean(values)), float(np.min(values))
        found.append(Step(int(distance), len(values), best, max(best, min(mean, worst)), worst))
    return found


def blocks_of(matrix: Floats, most: int) -> tuple[Floats, int]:
    """Return the matrix with square blocks for pairs, so that no side has more than `most`, and a block's side.

    Each block shows the largest value in it, so that nothing bad is averaged away; it is NaN where it holds no pair.
    """
    side = -(-len(matrix) // most)
    if side == 1:
        return matrix, 1
    blocks = -(-len(matrix) // side)
    padded = np.full((blocks * side,) * 2, -np.inf)
    padded[: len(matrix), : len(matrix)] = np.where(np.isnan(matrix), -np.inf, matrix)
    largest = padded.reshape(blocks, side, blocks, side).max(axis=(1, 3))
    return np.where(largest == -np.inf, np.nan, largest), side


def finite(values: Floats | Sequence[float]) -> list[float]:
    array = np.asarray(values, dtype=np.float64).ravel()
    return [float(value) for value in array[np.isfinite(array)]]
