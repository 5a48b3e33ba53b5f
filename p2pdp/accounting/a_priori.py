"""What a random walk will tell, averaged over how often it comes to a user: that does not depend on anybody's data.

A `Law` is how often a user contributes, or a number that grows with it. Given the count c, whoever sees all of a user's
contributions one by one, each with its own noise, sees a Gaussian of mu = sqrt(c) Delta/sigma, and whoever sees
only one sum with M noises one of c Delta/(sigma sqrt(M)). Their curves, averaged over the law, bound what is told:
by joint convexity, whatever else is seen of the path counts as given (guide/accounting.md, sections 1 and 2).
Counts too unlikely to be listed count as if everything were told then. All epsilons are rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from p2pdp.accounting.blanket import binomial
from p2pdp.accounting.crossing import crossing
from p2pdp.accounting.hidden_path_losses import gaussian_deltas
from p2pdp.core.arrays import Floats
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import gaussian

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
    if not 0.0 < delta < 1.0:
        raise UsageError("delta must be a number between 0 and 1.")
    return max(_CUT * delta, 1e-300)


def certain(count: int) -> Law:
    return Law(np.array([float(count)]), np.ones(1))


def binomial_visits(trials: int, chance: float, surely: int, delta: float) -> Law:
    """So many visits for sure, and one more with this chance at each of so many steps."""
    cut = cut_of(delta)
    window = binomial(trials, chance, cut)
    counts = surely + window.first + np.arange(len(window.masses), dtype=np.float64)
    return Law(counts, window.masses * _ROUNDING, 2.0 * cut)


def sum_of(law: Law, times: int) -> Law:
    """Of so many independent whole numbers of this law; many levels are merged, upwards."""
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
    """Epsilon where a Gaussian of mu sqrt(s) is seen, s of this law."""
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
    """Epsilon of mechanisms of pure epsilon_0 each: so many that there are more with probability delta at most."""
    beyond = np.append(np.cumsum(law.masses[::-1])[::-1][1:], 0.0) + law.lost
    enough = np.nonzero(beyond <= delta)[0]
    if epsilon_0 == 0.0:
        return 0.0
    return float(law.counts[enough[0]]) * epsilon_0 * _ROUNDING if len(enough) else math.inf
