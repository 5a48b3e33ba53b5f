"""The masses of the outcomes of a shuffle of randomized responses, under two values of one report.

A report over L categories is the truth with probability 1 - gamma and else uniform. Whoever sees only how many reports
say what, and knows all of the others' truths, sees at most this: the number M of uniform elements, u's own counted
in, and how many of them, a and b, say what u says under one and under the other hypothesis (the privacy blanket
of [BBGN19, Lemmas 5.2 and 5.3]). The two hypotheses then have the masses

    P = w_M mult(a, b; M) (gamma + (1 - gamma) L a / M)   and   Q = the same with b in place of a

where w_M is the law of M - 1 = dummies + Bin(others, gamma) and mult is multinomial with chances 1/L, 1/L and the
rest. This holds for any data of the others: an *upper* end. Fewer uniform elements tell more, so M may be rounded down.

A *lower* end is what is really told for some data of the others. If all of them hold a third value z (L >= 3), the j
elements that do not say z are uniform over L - 1 categories, and with w the law of their number without u's report

    P = mult(a, b; j) (A + B a),  A = (w_j + (L - 1) w_(j-1)) gamma / L,  B = w_(j-1) (1 - gamma) (L - 1) / j.

For L = 2 there is no third value; there some hold the one and the rest the other value.

Both pairs are symmetric: exchanging a and b exchanges P and Q. So only outcomes with P > Q are listed. Masses below
`cut` are left out and counted in `lost`, which an upper end has to add to delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.errors import UsageError

ROUNDING: Final = 1e-9  # relative, of a mass: what sums of thousands of logarithms can be off
_CUT_MAX: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Reports:
    """One report among `others` more and `dummies` uniform elements; `blanket` of the others' are uniform each.

    `gamma` is the chance that u's own report is uniform and `kept` = 1 - gamma, which a subtraction would lose.
    """

    others: int
    dummies: int
    categories: int
    gamma: float
    kept: float
    blanket: float

    @staticmethod
    def of(epsilon_0: float, categories: int, others: int, dummies: int = 0, kappa: float = 1.0) -> Reports:
        """Return k-ary randomized response of epsilon_0, of which a share kappa of the others' is shuffled with u's."""
        if not 0.0 < epsilon_0 <= 700.0 or categories < 2 or min(others, dummies) < 0 or not 0.0 <= kappa <= 1.0:
            raise UsageError("reports need an epsilon from 0 to 700, 2 categories and counts of at least 0")
        growth = math.expm1(epsilon_0)
        gamma = categories / (growth + categories)
        return Reports(others, dummies, categories, gamma, growth / (growth + categories), kappa * gamma)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Outcomes with P > Q: `excess` = P - Q without cancellation, `base` = Q; `lost` bounds the mass left out of P."""

    excess: Floats
    base: Floats
    lost: float

    def delta(self, epsilon: float) -> float:
        """Return the hockey-stick divergence at epsilon of at least 0, of what is listed."""
        gaps = math.expm1(epsilon) * self.base
        np.subtract(self.excess, gaps, out=gaps)
        np.maximum(gaps, 0.0, out=gaps)
        return float(gaps.sum())


@dataclass(frozen=True, slots=True)
class Window:
    """The masses of first, first + 1, ...; each side leaves out less than `cut`."""

    first: int
    masses: Floats


def binomial(trials: int, chance: float, cut: float) -> Window:
    """Return the law of Bin(trials, chance), by ratios from its mode on, so that many trials lose no digits."""
    if trials == 0 or chance <= 0.0:
        return Window(0, np.ones(1))
    if chance >= 1.0:
        return Window(trials, np.ones(1))
    mode = min(trials, int((trials + 1) * chance))
    exponent = -math.log(min(cut, _CUT_MAX))
    reach = int(1.3 * math.sqrt(2.0 * exponent * trials * chance * (1.0 - chance)) + 2.0 * exponent) + 10
    first, last = max(0, mode - reach), min(trials, mode + reach)
    below = np.arange(first, last, dtype=np.float64)
    logs = np.log((trials - below) / (below + 1.0)) + (math.log(chance) - math.log1p(-chance))
    logs = np.concatenate(([0.0], np.cumsum(logs)))
    logs -= logs[mode - first]
    kept = np.nonzero(logs >= math.log(cut))[0]
    masses = np.exp(logs[kept[0] : kept[-1] + 1])
    return Window(first + int(kept[0]), masses / masses.sum())


def upper_outcomes(reports: Reports, cut: float, blocks_max: int) -> Outcomes:
    """Return the blanket's outcomes, with numbers of uniform elements rounded down to at most `blocks_max` ones."""
    law = binomial(reports.others, reports.blanket, cut)
    places = np.unique(np.linspace(0, len(law.masses), min(blocks_max, len(law.masses)) + 1).astype(np.int64))[:-1]
    weights = np.add.reduceat(law.masses, places)
    elements = places + law.first + reports.dummies + 1
    constants = weights * reports.gamma
    slopes = weights * reports.kept * reports.categories / elements
    found = _outcomes(elements, constants, slopes, reports.categories, cut)
    return Outcomes(found.excess, found.base, found.lost + 2.0 * cut)


def lower_outcomes(reports: Reports, cut: float) -> Outcomes:
    """Return what is told if all others hold a third value; there must be three categories."""
    if reports.categories == 2:
        raise UsageError("of two categories there is no third one")
    rest = reports.categories - 1
    law = _sum(
        binomial(reports.others, reports.gamma * rest / reports.categories, cut),
        binomial(reports.dummies, rest / reports.categories, cut),
    )
    elements = np.arange(law.first, law.first + len(law.masses) + 1)
    same, before = np.append(law.masses, 0.0), np.append(0.0, law.masses)
    constants = (same + rest * before) * reports.gamma / reports.categories
    return _outcomes(elements, constants, before * reports.kept * rest / np.maximum(elements, 1), rest, cut)


def two_valued_outcomes(reports: Reports, holders: int, cut: float) -> Outcomes:
    """Return the outcomes for L = 2, if `holders` of the others hold u's first value and the rest its second."""
    high = 1.0 - reports.gamma / 2.0
    law = _sum(
        _sum(binomial(holders, high, cut), binomial(reports.others - holders, reports.gamma / 2.0, cut)),
        binomial(reports.dummies, 0.5, cut),
    )
    same, before = np.append(law.masses, 0.0), np.append(0.0, law.masses)
    step = reports.kept * (before - same)
    told = step > 0.0
    return Outcomes(step[told], (high * same + reports.gamma / 2.0 * before)[told], 0.0)


def _sum(one: Window, other: Window) -> Window:
    """Return the law of the sum of two independent numbers."""
    return Window(one.first + other.first, np.convolve(one.masses, other.masses))


def _outcomes(elements: Ints, constants: Floats, slopes: Floats, categories: int, cut: float) -> Outcomes:
    """Return masses mult(a, b; M) (constant + slope a) against the same with b, where a > b."""
    laws = [binomial(number, 1.0 / categories, cut) for number in elements.tolist()]
    most, top = laws[-1].first + len(laws[-1].masses), int(elements[-1])
    least = max(0, int(elements[0]) - 2 * most)
    counts = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, most + 1)))))
    numbers = np.concatenate(([0.0], np.cumsum(np.log(np.arange(least + 1, top + 1)))))  # up to what they share
    rest = math.log1p(-2.0 / categories) if categories > 2 else 0.0
    excess, base = [], []
    for number, law, constant, slope in zip(elements.tolist(), laws, constants, slopes, strict=True):
        seen = np.arange(law.first, law.first + len(law.masses))
        if categories == 2:
            a = seen[2 * seen > number]
            b = number - a
        else:
            higher, lower = np.nonzero((seen[:, None] > seen) & (seen[:, None] + seen <= number))
            a, b = seen[higher], seen[lower]
        others = number - a - b
        logs = numbers[number - least] - numbers[others - least] - counts[a] - counts[b]
        mass = np.exp(logs - (a + b) * math.log(categories) + others * rest)
        excess.append(mass * (slope * (a - b)))
        base.append(mass * (constant + slope * b))
    return Outcomes(np.concatenate(excess), np.concatenate(base), cut * (4.0 + 2.0 * categories))


def points(reports: Reports, cut: float, blocks_max: int) -> float:
    """Return about how many outcomes `upper_outcomes` lists."""
    spread = 2.0 * math.sqrt(-2.0 * math.log(cut))
    elements = reports.dummies + 1 + reports.others * reports.blanket
    law = spread * math.sqrt(reports.others * reports.blanket * (1.0 - reports.blanket)) + 1.0
    counts = spread * math.sqrt(elements * (1.0 - 1.0 / reports.categories) / reports.categories) + 1.0
    return min(law, blocks_max) * (counts if reports.categories == 2 else counts**2) / 2.0
