"""Laws of how often random walks visit a user, and what is told on average over them.

On the complete graph each of T steps is at one of n users: `most_visits` is the exact quantile of the binomial law,
rounded up, and `printed_visits` is what the first version of [CB20, Theorem 3] puts in its place by Hoeffding's
inequality. Laws of visits do not depend on anybody's data.

A `Law` is how often a user contributes, or a number that grows with it. Given the count c, whoever sees all of a user's
contributions one by one, each with its own noise, sees a Gaussian of mu = sqrt(c) Delta/sigma, and whoever sees
only one sum with M noises one of c Delta/(sigma sqrt(M)). Their curves, averaged over the law, bound what is told:
by joint convexity, whatever else is seen of the path counts as given (guide/accounting.md, sections 1 and 2).
Counts too unlikely to be listed count as if everything were told then. All epsilons are rounded up.

`graph_visits` is exact for any connected graph. A user is visited c times or more if the first visit and c - 1 returns
take at most T steps. With G_uv(z) the generating function of the chance to be at v after t steps from u, first visits
have H = G_0u / G_uu and returns F = 1 - 1/G_uu (Feller, An Introduction to Probability Theory and Its Applications I,
chapter XIII). G follows from the eigenvalues of the walk, and P(c or more) is a coefficient of H F^(c-1) / (1 - z),
taken by Cauchy's integral over a circle well within the disc of convergence. What aliasing and rounding can do to it is
less than `MARGIN`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from p2pdp.core.arrays import Complexes, Floats
from p2pdp.mechanisms import gaussian
from p2pdp.mechanisms.rounding import inside
from p2pdp.privacy.gaussian_curve import gaussian_deltas
from p2pdp.privacy.pld.crossing import crossing
from p2pdp.privacy.shuffle.blanket import binomial

_MARGIN: Final = 1e-9  # relative, for the error of the incomplete beta function


def most_visits(hops: int, n: int, delta_hat: float) -> int:
    """Return the least N that the number of visits exceeds with probability at most `delta_hat`."""
    from scipy.special import betainc

    if n == 1:
        return hops
    low, high = -1, hops  # low is too few, high is enough
    while high - low > 1:
        middle = (low + high) // 2
        above = float(betainc(middle + 1.0, float(hops - middle), 1.0 / n))  # P(more than `middle`)
        if above * (1.0 + _MARGIN) <= delta_hat:
            high = middle
        else:
            low = middle
    return high


def printed_visits(hops: int, n: int, delta_hat: float) -> float:
    """Return T/n + sqrt(3/2 T ln(1/delta_hat))."""
    return hops / n + math.sqrt(-1.5 * hops * math.log(delta_hat))


_CUT: Final = 1e-6  # of delta: what a law may leave out
_ROUNDING: Final = 1.0 + 1e-9
_BINS_MAX: Final = 1 << 14


@dataclass(frozen=True, eq=False)
class Law:
    """`masses` of ascending `counts`; with probability `lost`, which comes on top, the count may be anything."""

    counts: Floats
    masses: Floats
    lost: float = 0.0

    @property
    def mean(self) -> float:
        return float(self.counts @ self.masses)

    def squared(self) -> Law:
        return Law(self.counts**2, self.masses, self.lost)


def cut_of(delta: float) -> float:
    inside("delta", delta)
    return max(_CUT * delta, 1e-300)


def certain(count: int) -> Law:
    return Law(np.array([float(count)]), np.ones(1))


def binomial_visits(trials: int, chance: float, surely: int, delta: float) -> Law:
    """Return the law of so many sure visits, and one more with this chance at each of so many steps."""
    cut = cut_of(delta)
    window = binomial(trials, chance, cut)
    counts = surely + window.first + np.arange(len(window.masses), dtype=np.float64)
    return Law(counts, window.masses * _ROUNDING, 2.0 * cut)


def sum_of(law: Law, times: int) -> Law:
    """Return the law of the sum of so many independent numbers; many levels are merged, upwards."""
    width = max(1.0, math.ceil(times * float(law.counts[-1]) / _BINS_MAX))
    places = np.ceil(law.counts / width).astype(np.int64)
    masses, total = np.ones(1), np.zeros(0)
    for _ in range(times):
        total = np.zeros(len(masses) + int(places[-1]))
        for place, mass in zip(places.tolist(), law.masses.tolist(), strict=True):
            total[place : place + len(masses)] += mass * masses
        masses = total
    kept = np.nonzero(masses)[0]
    return Law(np.asarray(kept * width, dtype=np.float64), masses[kept], times * law.lost)


def gaussian_epsilon(squares: Law, mu: float, delta: float) -> float:
    """Return epsilon where a Gaussian of mu sqrt(s) is seen, s of this law."""
    told = (squares.counts > 0.0) & (squares.masses > 0.0)
    left = delta - squares.lost
    if mu == 0.0 or not np.any(told):
        return 0.0 if left > 0.0 else math.inf
    mus, masses = mu * np.sqrt(squares.counts[told]), squares.masses[told]
    most = gaussian.epsilon_of(left / _ROUNDING**2, float(mus[-1])) if left > 0.0 and mu < math.inf else math.inf
    if most == math.inf:
        return most

    def curve(epsilon: float) -> float:
        return _ROUNDING * float(masses @ gaussian_deltas(np.array(epsilon), mus))

    return min(most, crossing(curve, left, most)[1] * _ROUNDING) if most > 0.0 else 0.0


def pure_epsilon(law: Law, epsilon_0: float, delta: float) -> float:
    """Return epsilon of mechanisms of pure epsilon_0: so many that there are more with probability delta at most."""
    beyond = np.append(np.cumsum(law.masses[::-1])[::-1][1:], 0.0) + law.lost
    enough = np.nonzero(beyond <= delta)[0]
    if epsilon_0 == 0.0:
        return 0.0
    return float(law.counts[enough[0]]) * epsilon_0 * _ROUNDING if len(enough) else math.inf


USERS_MAX: Final = 300
STEPS_MAX: Final = 20_000
MARGIN: Final = 1e-11
_OVERSAMPLED: Final = 8  # points on the circle for each step
_ALIASED: Final = 1e-17
_AT_ONCE: Final = 1 << 19  # numbers in one block


def graph_visits(
    neighbours: Sequence[Sequence[int]], steps: int, tokens: int, delta: float, *, spread: bool
) -> list[Law]:
    """Return a law for each user; each token starts at user 0, or where `spread` at a neighbour that user 0 draws."""
    n = len(neighbours)
    if n == 1:
        return [Law(np.array([float(steps * tokens)]), np.ones(1))]
    points, weights = _circle(steps)
    first, again = _transforms(neighbours, points, spread=spread)
    cut = max(cut_of(delta), MARGIN)
    laws = [_law(weights, first[user], again[user], steps, cut) for user in range(n)]
    return laws if tokens == 1 else [sum_of(law, tokens) for law in laws]


def _circle(steps: int) -> tuple[Complexes, Complexes]:
    """Return half of the points, for the other half is conjugate, and the weight of each in the coefficient."""
    count = 2 * max(64, _OVERSAMPLED * steps // 2)
    radius = math.exp(math.log(_ALIASED) / count)
    angles = np.arange(count // 2 + 1) * (2.0 * math.pi / count)
    points = radius * np.exp(1j * angles)
    weights = np.exp(-1j * angles * (steps - 1)) * (radius ** (1 - steps) * 2.0 / count) / (1.0 - points)
    weights[[0, -1]] /= 2.0
    return points, weights


def _transforms(neighbours: Sequence[Sequence[int]], points: Complexes, *, spread: bool) -> tuple[Complexes, Complexes]:
    """Return the transforms of the first visit to each user, and of a return to it."""
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
    """Return the law from the chances of 1, 2, ... visits or more, each raised by the margin."""
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
