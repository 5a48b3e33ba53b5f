"""How often a random walk on a connected graph will come to each user in so many steps, exactly.

A user is visited c times or more if the first visit and c - 1 returns take at most T steps. With G_uv(z) the
generating function of the chance to be at v after t steps from u, first visits have H = G_0u / G_uu and returns
F = 1 - 1/G_uu (Feller, An Introduction to Probability Theory and Its Applications I, chapter XIII). G follows from
the eigenvalues of the walk, and P(c or more) is a coefficient of H F^(c-1) / (1 - z), taken by Cauchy's integral over
a circle well within the disc of convergence. What aliasing and rounding can do to it is less than `MARGIN`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from p2pdp.accounting.a_priori import Law, cut_of, sum_of
from p2pdp.core.arrays import Complexes, Floats

USERS_MAX: Final = 300
STEPS_MAX: Final = 20_000
MARGIN: Final = 1e-11
_OVERSAMPLED: Final = 8  # points on the circle for each step
_ALIASED: Final = 1e-17
_AT_ONCE: Final = 1 << 19  # numbers in one block


def graph_visits(
    neighbours: Sequence[Sequence[int]], steps: int, tokens: int, delta: float, *, spread: bool
) -> list[Law]:
    """For each user, in so many tokens: each starts at user 0, or where they are `spread` at a neighbour it draws."""
    n = len(neighbours)
    if n == 1:
        return [Law(np.array([float(steps * tokens)]), np.ones(1))]
    points, weights = _circle(steps)
    first, again = _transforms(neighbours, points, spread=spread)
    cut = max(cut_of(delta), MARGIN)
    laws = [_law(weights, first[user], again[user], steps, cut) for user in range(n)]
    return laws if tokens == 1 else [sum_of(law, tokens) for law in laws]


def _circle(steps: int) -> tuple[Complexes, Complexes]:
    """Half of the points, for the other half is conjugate, and the weight of each in the coefficient."""
    count = 2 * max(64, _OVERSAMPLED * steps // 2)
    radius = math.exp(math.log(_ALIASED) / count)
    angles = np.arange(count // 2 + 1) * (2.0 * math.pi / count)
    points = radius * np.exp(1j * angles)
    weights = np.exp(-1j * angles * (steps - 1)) * (radius ** (1 - steps) * 2.0 / count) / (1.0 - points)
    weights[[0, -1]] /= 2.0
    return points, weights


def _transforms(neighbours: Sequence[Sequence[int]], points: Complexes, *, spread: bool) -> tuple[Complexes, Complexes]:
    """Of the first visit to each user, and of a return to it."""
    n = len(neighbours)
    degrees = np.array([len(row) for row in neighbours], dtype=np.float64)
    walk: Floats = np.zeros((n, n))
    for user, row in enumerate(neighbours):
        walk[user, list(row)] = 1.0 / np.sqrt(degrees[user] * degrees[list(row)])
    values, vectors = np.linalg.eigh(walk)
    from_start = vectors * vectors[0] * np.sqrt(degrees / degrees[0])[:, None]
    first = np.empty((n, len(points)), dtype=np.complex128)
    again = np.empty_like(first)
    width = max(1, _AT_ONCE // n)
    for begin in range(0, len(points), width):
        at = slice(begin, begin + width)
        series = 1.0 / (1.0 - np.clip(values, -1.0, 1.0)[:, None] * points[at])
        staying = vectors**2 @ series
        reached = from_start @ series
        if spread:
            reached[0] -= 1.0
            reached /= points[at]
        first[:, at] = reached / staying
        again[:, at] = 1.0 - 1.0 / staying
    return first, again


def _law(weights: Complexes, first: Complexes, again: Complexes, steps: int, cut: float) -> Law:
    """From the chances of 1, 2, ... visits or more, each raised by the margin."""
    tails, power = [1.0], weights * first
    while len(tails) <= steps:
        tail = float(power.sum().real) + MARGIN
        if tail <= 2.0 * cut:
            break
        tails.append(min(tails[-1], tail))
        power = power * again
    raised = np.array(tails)
    masses = raised - np.append(raised[1:], 0.0)
    return Law(np.arange(len(raised), dtype=np.float64), masses, 2.0 * cut)
