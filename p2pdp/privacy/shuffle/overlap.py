"""The sound claim of network shuffling: users whose walks overlap with u's by different amounts.

User j's report is at a place drawn from the law of u's report with probability kappa_j
(`topology/report_walks/overlap.py`). Reveal the reports of all others: what is left is a uniform shuffle of u's and N =
sum of Bern(kappa_j) reports, and holders and loads tell no more. So delta(epsilon) = E f(C), where f(c) belongs to c
elements beside u's that could be either of its values, and C = sum of Bern(kappa_j q): q = e^-epsilon_0 for clones of
any randomizer [FMT21], q = gamma for k-ary randomized response (the privacy blanket of [BBGN19]). With one kappa for
all these are `krr.py` and `krr.py`.

Guarantee: `upper` is proved, given kappas that are not above the truth. The law of C is convolved from positive
masses, so small ones keep their digits; where more than `_EXACT_MAX` kappas differ, they are rounded down to
`_LEVELS` levels. f falls with c, since more uniform elements hide more, so c may be rounded down: the law of C in
`_BLOCKS` blocks where each costs a transform. `lower` is for clones the same sum less its rounding; for randomized
response what a perfect shuffle would tell for some data of the others (`krr_lower`), which takes a protocol that hands
every report over: otherwise it is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms.rounding import inside
from p2pdp.privacy.pld.crossing import UP, crossing
from p2pdp.privacy.shuffle.blanket import Reports, Window, binomial
from p2pdp.privacy.shuffle.excess import binomial_masses, excess_of_four
from p2pdp.privacy.shuffle.krr import clones, krr_lower, krr_upper, local_epsilon

_EXACT_MAX: Final = 2048
_LEVELS: Final = 256
_BLOCKS: Final = 48  # of the law of C, where each costs a transform
_CUT: Final = 1e-9  # of delta, all that is left out of the law of C
_ROUNDING: Final = 1e-9  # relative, of sums and of tails
_SIZE: Final = 1 << 13
_PRECISION: Final = 1e-6


def overlapped(
    epsilon_0: float, kappas: Floats, delta: float, categories: int | None = None, *, all_handed_over: bool = True
) -> tuple[float, float]:
    """Return [lower, upper] epsilon at delta of one report, by its kappa with each of the others.

    `categories` says that reports are k-ary randomized response of epsilon_0; None stands for any randomizer.
    """
    kappas = _checked(kappas)
    n = len(kappas) + 1
    least = 0.0 if categories is None or not all_handed_over else krr_lower(epsilon_0, categories, n, delta)
    if n == 1 or kappas.min() == kappas.max():
        kappa = float(kappas[0]) if n > 1 else 1.0
        if categories is None:
            return clones(epsilon_0, n, delta, kappa)
        upper = krr_upper(epsilon_0, categories, n, delta, kappa)
        return min(upper, least), upper
    reports = Reports.of(epsilon_0, 2 if categories is None else categories, n - 1)
    share = math.exp(-epsilon_0) if categories is None else reports.gamma
    alone = local_epsilon(epsilon_0, reports.categories, delta)
    inside("delta", delta)
    cut = max(_CUT * delta, 1e-280)
    chances = kappas * share
    law = hidden(chances, cut)
    if reports.categories == 2:
        upper = crossing(lambda epsilon: two_valued(epsilon, law, epsilon_0)[1] + cut, delta, epsilon_0, 1e-9)[1]
    else:
        upper = crossing(_many_valued(law, reports, cut), delta, epsilon_0, _PRECISION)[1]
    upper = min(epsilon_0, alone * UP, upper * UP)
    if categories is not None:
        return min(upper, least), upper
    if levelled(chances) is not chances:
        return min(upper, clones(epsilon_0, n, delta, float(kappas.max()))[0]), upper
    return min(upper, crossing(lambda e: two_valued(e, law, epsilon_0)[0], delta, epsilon_0, 1e-9)[0] / UP), upper


def overlapped_worst(
    epsilon_0: float, overlaps: Floats, delta: float, categories: int | None = None, *, all_handed_over: bool = True
) -> tuple[float, float, int]:
    """Return [lower, upper] that holds for every user, and the user whose kappas add up to least.

    Row u of `overlaps` holds u's kappas, and any number for u itself. `upper` is of kappas that are at most those of
    any user, place by place once they are in order; `lower` is of the user that is named.
    """
    n = len(overlaps)
    rows = _checked(overlaps[~np.eye(n, dtype=bool)]).reshape(n, n - 1)
    user = int(np.argmin(rows.sum(axis=1)))
    words = {"all_handed_over": all_handed_over}
    lower = overlapped(epsilon_0, rows[user], delta, categories, **words)[0]
    upper = overlapped(epsilon_0, np.sort(rows, axis=1).min(axis=0), delta, categories, **words)[1]
    return min(lower, upper), upper, user


def levelled(chances: Floats) -> Floats:
    """Return the chances themselves, or rounded down to levels where too many of them differ."""
    if len(np.unique(chances)) <= _EXACT_MAX:
        return chances
    least, most = float(chances.min()), float(chances.max())
    steps = np.floor((chances - least) / (most - least) * _LEVELS)
    return np.minimum(chances, least + steps * ((most - least) / _LEVELS))


def hidden(chances: Floats, cut: float) -> Window:
    """Return a law that is at most (in the stochastic order) that of the sum of Bern(chance), less `cut` of mass."""
    levels, counts = np.unique(levelled(chances), return_counts=True)
    each = cut / (4.0 * len(levels))
    parts = [binomial(int(count), float(level), each) for level, count in zip(levels, counts, strict=True)]
    while len(parts) > 1:  # pairs of similar size
        pairs = [_sum(a, b, each) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[len(parts) - len(parts) % 2 :]
    return parts[0]


def _sum(one: Window, other: Window, cut: float) -> Window:
    masses = np.convolve(one.masses, other.masses)
    kept = np.nonzero(masses >= cut / len(masses))[0]
    return Window(one.first + other.first + int(kept[0]), masses[kept[0] : kept[-1] + 1])


def two_valued(epsilon: float, law: Window, epsilon_0: float) -> tuple[float, float]:
    """Return [lower, upper] of E f(C) for two values: the pair (A + D, C + 1 - A - D) against its mirror image.

    Given c, the pair's ratio rises with A + D, so f(c) = told P(A >= t - 1) + (1 - told) P(A >= t) less e^epsilon
    times the same with told and 1 - told exchanged, A being Bin(c, 1/2) and t the first count with a ratio above.
    """
    from scipy.special import betainc

    told = 1.0 / (1.0 + math.exp(-epsilon_0))
    growth = math.exp(epsilon)
    edge = told - growth * (1.0 - told)
    if edge <= 0.0:
        return 0.0, 0.0
    c = np.arange(law.first, law.first + len(law.masses))
    x = (growth * told - (1.0 - told)) / ((2.0 * told - 1.0) * (1.0 + growth))
    t = np.minimum(np.floor((c + 1) * x).astype(np.int64) + 1, c + 1)
    at_edge = binomial_masses(c, 0.5, t - 1)
    tail = np.where(t <= c, betainc(t, np.maximum(c - t + 1, 1), 0.5), 0.0)
    plus, minus = at_edge * edge, tail * math.expm1(epsilon)
    middle = float(law.masses @ np.maximum(plus - minus, 0.0))
    error = _ROUNDING * middle + 1e-13 * float(law.masses @ (plus + minus))
    return max(0.0, middle - error), middle + error


def _many_valued(law: Window, reports: Reports, cut: float) -> Callable[[float], float]:
    """Return the upper end of delta as a function of epsilon, for more than two categories."""
    starts, weights = _blocks(law)

    def curve(epsilon: float) -> float:
        tilt, gain = reports.gamma * math.expm1(epsilon), reports.kept * reports.categories
        values = (0.0, gain - tilt, -gain * math.exp(epsilon) - tilt, -tilt)
        share = 1.0 / reports.categories
        worth = [excess_of_four(m, share, values, 1.0, _SIZE) / m for m in (starts + 1).tolist()]
        return float(weights @ np.array(worth)) + cut

    return curve


def _blocks(law: Window) -> tuple[Ints, Floats]:
    """Return the law with its counts rounded down to the first ones of blocks."""
    places = np.unique(np.linspace(0, len(law.masses), min(_BLOCKS, len(law.masses)) + 1).astype(np.int64))[:-1]
    return places + law.first, np.add.reduceat(law.masses, places)


def _checked(kappas: Floats) -> Floats:
    found = np.asarray(kappas, dtype=np.float64)
    if found.ndim != 1 or not np.all((found >= 0.0) & (found <= 1.0)):
        raise UsageError("kappas are numbers from 0 to 1, one for each other user.")
    return found
