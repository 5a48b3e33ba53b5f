"""Converts Rényi divergences to (epsilon, delta).

Both conversions hold at every order above 1, so the least answer over several orders is one too.
`simple` is that of [M17, Proposition 3], which papers print; `tight` that of [CKS20,
Proposition 12]. Gaussian noise alone needs neither: its own curve is smaller than both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from p2pdp.core.arrays import Floats

SIMPLE: Final = "simple"
TIGHT: Final = "tight"

_EXCESS_LEAST: Final = 1e-7  # of an order above 1
_EXCESS_MOST: Final = 1e8
_GRID: Final = 121
_ZOOMS: Final = 4

_SAME_EPSILONS: Final = 9  # digits of a leak that decide whether two pairs have one epsilon


def epsilon_of(alpha: float, rdp: float, delta: float, conversion: str = TIGHT) -> float:
    """Return epsilon at delta of a Rényi divergence of at most `rdp` at the order `alpha`; never below 0."""
    return float(_epsilons(np.array([alpha - 1.0]), np.array([rdp]), delta, conversion)[0])


def best_epsilon(
    curve: Callable[[Floats], Floats], delta: float, conversion: str = TIGHT, excess_most: float = _EXCESS_MOST
) -> float:
    """Return the least epsilon over the orders above 1, of which `curve` gets the excesses: order minus 1.

    It is looked for on a logarithmic grid that closes in on the best point four times, which finds the least
    one of a curve with a single valley; of any other curve the answer is still a bound.
    """
    low, high = math.log(_EXCESS_LEAST), math.log(excess_most)
    best = math.inf
    for _ in range(_ZOOMS):
        places = np.linspace(low, high, _GRID)
        excesses = np.minimum(np.exp(places), excess_most)
        epsilons = _epsilons(excesses, curve(excesses), delta, conversion)
        at = int(np.argmin(epsilons))
        best = min(best, float(epsilons[at]))
        low, high = float(places[max(at - 1, 0)]), float(places[min(at + 1, _GRID - 1)])
    return best


def _epsilons(excess: Floats, rdp: Floats, delta: float, conversion: str) -> Floats:
    price = -math.log(delta) / excess
    if conversion == TIGHT:
        price += -np.log1p(1.0 / excess) - np.log1p(excess) / excess
    return np.maximum(0.0, rdp + price)


def renyi_epsilons(doubled: Floats, delta: float) -> Floats:
    """Return epsilons of divergences alpha times half of these, by the best order; equal ones are converted once."""
    rounded = np.where(doubled > 0.0, doubled, 0.0)
    with np.errstate(divide="ignore"):
        digits = np.where(rounded > 0.0, 10.0 ** (_SAME_EPSILONS - np.floor(np.log10(rounded))), 1.0)
    values, places = np.unique(np.round(rounded * digits) / digits, return_inverse=True)
    return np.array([_doubled(value, delta) for value in values.tolist()])[places]


def _doubled(doubled: float, delta: float) -> float:
    return best_epsilon(lambda excess: (1.0 + excess) * doubled / 2.0, delta)
