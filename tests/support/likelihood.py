"""What replays prove about a claim: lower ends for epsilon, and intervals for mu, at a stated error.

Scores of replays under two neighbouring data sets come in. Threshold and direction are chosen on one half of
them, rates are counted on the other, and their ends are Clopper and Pearson's, so that a lower end exceeds the
truth with probability `error` at most. A weak attack gives a low end and proves nothing.
"""

from __future__ import annotations

import math

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.core.errors import UsageError

_THRESHOLDS = 200
_LEAST_VARIANCE = 1e-14  # of the largest: as far as covariances are told from replays


def epsilon_lower_end(without: Floats, with_: Floats, delta: float, error: float) -> float:
    """At least this epsilon is needed at `delta`: ln((TPR - delta) / FPR), with both rates at their bad ends."""
    if len(without) != len(with_) or len(without) < 4:
        raise UsageError("a test needs as many scores of each kind, and at least four")
    half = len(without) // 2
    threshold, sign = _chosen(without[:half], with_[:half], delta)
    tested = len(without) - half
    false = int(np.sum(sign * without[half:] >= sign * threshold))
    true = int(np.sum(sign * with_[half:] >= sign * threshold))
    true_low, false_high = _low(true, tested, error / 2), 1.0 - _low(tested - false, tested, error / 2)
    return math.log((true_low - delta) / false_high) if true_low - delta > false_high else 0.0


def _chosen(without: Floats, with_: Floats, delta: float) -> tuple[float, float]:
    """Where the training half separates best, whichever side counts as a hit."""
    best = (0.0, -math.inf, 1.0)
    for sign in (1.0, -1.0):
        for threshold in np.quantile(np.concatenate([without, with_]), np.linspace(0.0, 1.0, _THRESHOLDS)):
            false = (np.sum(sign * without >= sign * threshold) + 5.0) / (len(without) + 5.0)
            true = (np.sum(sign * with_ >= sign * threshold) - 5.0) / (len(with_) + 5.0)
            gain = (true - delta) / false
            if gain > best[1]:
                best = (float(threshold), float(gain), sign)
    return best[0], best[2]


def _low(hits: int, tries: int, error: float) -> float:
    """The lower end of a rate (Clopper and Pearson)."""
    if hits == 0:
        return 0.0
    from scipy.special import betaincinv

    return float(betaincinv(hits, tries - hits + 1, error))


def statistic(without: Floats, with_: Floats) -> Floats:
    """The weights that separate two Gaussian views with equal covariance best, from training replays (rows).

    A combination in which nothing varies but what was moved separates them wholly, so it must not be cut off.
    """
    moved = with_.mean(axis=0) - without.mean(axis=0)
    spread = (np.cov(without, rowvar=False) + np.cov(with_, rowvar=False)).reshape(len(moved), -1) / 2.0
    scale = np.sqrt(np.diag(spread))
    varies = scale > 0.0
    found = np.where(varies, 0.0, 1e6 * moved)
    scale = scale[varies]
    if len(scale):
        values, vectors = np.linalg.eigh(spread[np.ix_(varies, varies)] / scale[:, None] / scale)
        kept = np.maximum(values, _LEAST_VARIANCE * values[-1])
        found[varies] = vectors @ (vectors.T @ (moved[varies] / scale) / kept) / scale
    return found


def mu_interval(without: Floats, with_: Floats, error: float) -> tuple[float, float]:
    """Where (difference of means) / (standard deviation) lies, for Gaussian scores of equal spread."""
    from scipy.special import gammainccinv, gammaincinv, ndtri

    count = len(without)
    pooled = math.sqrt((float(np.var(without, ddof=1)) + float(np.var(with_, ddof=1))) / 2.0)
    degrees = 2 * count - 2
    gap = abs(float(with_.mean() - without.mean()))
    slack = float(-ndtri(error / 8)) * pooled * math.sqrt(2.0 / count) * 1.1  # the spread is itself estimated
    widest = pooled * math.sqrt(degrees / (2.0 * float(gammaincinv(degrees / 2, error / 8))))
    narrowest = pooled * math.sqrt(degrees / (2.0 * float(gammainccinv(degrees / 2, error / 8))))
    return max(0.0, gap - slack) / widest, (gap + slack) / narrowest
