"""Gaussian steps over minibatches that a node draws itself, each row with the same chance and seen by nobody.

Guarantee: `epsilon_of` is at least what steps tell of one row, whoever sees all of them, each with its noise, and
knows everybody else's rows and batches. The row's part in a step is a vector of length at most `ratio`, in deviations
of the noise that counts, and it enters with chance `share`, drawn anew for each step. Steps may depend on all that was
seen before; shares and ratios may not.

*Zero-out*: a row against one whose part is 0. Given which other rows entered, a step is one of

    P = (1 - q) N(0, 1) + q N(r, 1)    and    Q = N(0, 1),

along the row's part, and a shorter part tells less: scaling down and adding noise makes it from a longer one. Which
others entered is independent of the row, so the pair dominates by convexity, in both directions [ZDW22, Theorem 11].

*Replace*: one row against another. Given the others, x and y being the two parts, a step is

    P = (1 - q) N(0, I) + q N(x, I)    against    Q = (1 - q) N(0, I) + q N(y, I).

The pair with x = r and y = -r on a line dominates all (derived). For e^eps = a >= 1 and any set S

    P(S) - a Q(S) = q N_x(S) - a q N_y(S) - (1 - q)(a - 1) N_0(S).

Let p = N_x(S). By the lemma of Neyman and Pearson N_y(S) is at least F(p, |x - y|) and N_0(S) at least F(p, |x|), with
F(p, d) = Phi(Phi^-1(p) - d), which falls with d. So the difference is at most what it would be for |x - y| = 2 r
and |x| = r, and on the line half-lines reach that for every p at once. Below a = 1 the roles of P and Q are exchanged.
This is less than two changes of zero-out in a row.

Noise of other directions that is the same in both worlds tells nothing, and noise that is not the same in all
directions is made so by a linear map: of an observer of several users' sums, r is the length after it.

Dominating pairs compose, adaptively too [ZDW22, Theorem 10], as losses on a grid that are rounded up (`pld`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.core.claims import Relation
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.gaussian_curve import gaussian_deltas
from p2pdp.privacy.pld.losses import Curve, Losses, from_curves
from p2pdp.privacy.pld.sums import compose

RATIO_MAX: Final = 16.0  # beyond it a step tells more than is worth counting
_FAR: Final = 1e-6  # of delta: what all losses beyond the grid's end may weigh together
_ROUNDED: Final = 1e-6  # about what rounding losses to the grid adds to epsilon, where the grid is large enough
_POINTS_MIN: Final = 512
_POINTS_MAX: Final = 1 << 15
_SUM_PLACES_MAX: Final = 1 << 23  # of the mean of all losses on the grid, which takes memory up to there
_ROOT_2: Final = math.sqrt(2.0)
_CLOSE: Final = 1e-3
_LEAST_RATIO: Final = 1e-6
_CERTAIN: Final = 1.0 - 1e-9


@dataclass(frozen=True, slots=True)
class Steps:
    """So many steps; a row enters each with chance `share`, and its part is `ratio` deviations of noise at most."""

    share: float
    ratio: float
    times: int


def epsilon_of(parts: Sequence[Steps], relation: Relation, delta: float) -> float:
    """Return epsilon at delta of all these steps together, rounded up."""
    merged: dict[tuple[float, float], int] = {}
    certain = 0.0  # the square of the ratio of all steps that a row is surely in, together
    for part in parts:
        if part.times < 1 or part.share <= 0.0 or part.ratio == 0.0:
            continue
        if part.share >= _CERTAIN:
            certain += part.times * part.ratio**2
        else:
            merged[part.share, part.ratio] = merged.get((part.share, part.ratio), 0) + part.times
    apart = 2.0 if relation is Relation.REPLACE else 1.0
    mu = apart * math.sqrt(certain) * (1.0 + 1e-12)
    if not merged:
        return gaussian.epsilon_of(delta, mu)
    drawn = tuple((share, ratio, times) for (share, ratio), times in sorted(merged.items()))
    found = _composed(drawn, mu, relation, delta)
    # A row that is surely in every step tells no less, by convexity: where next to nothing is told, that is less than
    # what rounding leaves of a sum of losses.
    most = certain + sum(times * ratio**2 for _, ratio, times in drawn)
    sure = gaussian.epsilon_of(delta, apart * math.sqrt(most) * (1.0 + 1e-12))
    return found if found == math.inf else min(found, sure)


@lru_cache(maxsize=4096)
def _composed(drawn: tuple[tuple[float, float, int], ...], mu: float, relation: Relation, delta: float) -> float:
    if max(mu, *(ratio for _, ratio, _ in drawn)) > RATIO_MAX:
        return math.inf
    pairs = [(*curves_of(share, ratio, relation), times) for share, ratio, times in drawn]
    if mu > 0.0:
        seen = _gaussian(mu)
        pairs.append((seen, seen, 1))
    count = sum(times for _, _, times in pairs)
    cut = _FAR * delta / count
    ends = [_end(curves, cut) for *curves, _ in pairs]
    width = min(math.sqrt(8.0 * _ROUNDED / count), *(end / _POINTS_MIN for end in ends), 1.0)
    width = max(width, max(ends) / _POINTS_MAX)
    while True:
        losses = [
            (from_curves(forward, backward, width, max(end, width)), times)
            for (forward, backward, times), end in zip(pairs, ends, strict=True)
        ]
        if max(times * float(one.masses @ one.losses()) for one, times in losses) <= _SUM_PLACES_MAX * width:
            break
        if width == 1.0:  # epsilon is of no use, and its place on the grid too far out
            return math.inf
        width = min(1.0, 4.0 * width)
    found = _epsilon(losses, delta)
    if relation is Relation.ZERO_OUT:
        found = max(found, _epsilon([(one.reversed(), times) for one, times in losses], delta))
    return found


def _epsilon(losses: Sequence[tuple[Losses, int]], delta: float) -> float:
    try:
        return compose(losses, delta).epsilon_upper(delta)
    except UsageError:  # the grid is too fine for so many steps: nothing is claimed
        return math.inf


def curves_of(share: float, ratio: float, relation: Relation) -> tuple[Curve, Curve]:
    """Return the curves of one step, delta for each epsilon of 0 or more: of P against Q, and of Q against P."""
    if relation is Relation.REPLACE:
        curve = _replaced(share, ratio)
        return curve, curve
    return _removed(share, ratio), _added(share, ratio)


def _gaussian(mu: float) -> Curve:
    return lambda epsilons: gaussian_deltas(epsilons, np.array(mu))


def _removed(share: float, ratio: float) -> Curve:
    """Return the curve of the mixture against the noise alone: share times delta at ln(1 + (e^eps - 1)/share)."""

    def curve(epsilons: Floats) -> Floats:
        inner = np.logaddexp(0.0, _log_expm1(epsilons) - math.log(share))
        return np.asarray(share * gaussian_deltas(inner, np.array(ratio)))

    return curve


def _added(share: float, ratio: float) -> Curve:
    """Return the curve of the noise alone against the mixture, which is 0 from -ln(1 - share) on."""

    def curve(epsilons: Floats) -> Floats:
        left = -np.expm1(np.minimum(epsilons + math.log1p(-share), 0.0))  # 1 - e^eps (1 - share)
        found = np.zeros(len(epsilons))
        some = left > 0.0
        inner = epsilons[some] + math.log(share) - np.log(left[some])
        found[some] = left[some] * gaussian_deltas(np.maximum(inner, 0.0), np.array(ratio))
        return found

    return curve


def _replaced(share: float, ratio: float) -> Curve:
    """Return the curve of N(r) against N(-r), each mixed with N(0).

    The likelihood ratio rises along the line; it is e^eps at t, where y = e^(r t) solves a quadratic equation. There
    the densities balance, so delta is a sum of differences of Mills ratios, without cancellation.
    """
    from scipy.special import erfcx

    def mills(x: Floats) -> Floats:
        return np.asarray(math.sqrt(math.pi / 2.0) * erfcx(x / _ROOT_2))

    log_share, log_rest = math.log(share), math.log1p(-share)

    def curve(epsilons: Floats) -> Floats:
        # y^2 - 2 b y - e^eps = 0 with 2 b = (1 - q)(e^eps - 1) e^(r^2/2) / q, in logarithms
        log_b = log_rest + _log_expm1(epsilons) + ratio * ratio / 2.0 - log_share - math.log(2.0)
        root = np.logaddexp(2.0 * log_b, epsilons) / 2.0
        t = np.logaddexp(log_b, root) / ratio
        log_density = -t * t / 2.0 - math.log(2.0 * math.pi) / 2.0
        with np.errstate(under="ignore"):
            against = np.exp(epsilons + log_share + log_density - ratio * t - ratio * ratio / 2.0)
            beside = np.exp(log_rest + _log_expm1(epsilons) + log_density)
            at = mills(t - ratio)
            return np.asarray(against * (at - mills(t + ratio)) + beside * (at - mills(t)))

    return curve


def _log_expm1(epsilons: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(epsilons + np.log(-np.expm1(-epsilons)))


def _end(curves: Sequence[Curve], cut: float) -> float:
    """Return a loss beyond which neither curve has more than this left."""
    end = 1e-9
    while any(float(curve(np.array([end]))[0]) > cut for curve in curves):
        end *= 1.2
    return end


def ratio_within(share: float, times: int, relation: Relation, epsilon: float, delta: float) -> float:
    """Return a ratio, next to the largest, with which so many steps stay within epsilon; 0 where none is known to."""
    low, high = 0.0, RATIO_MAX
    ratio = min(1.0, gaussian.mu_of_curve(epsilon, delta) / math.sqrt(times))
    while high - low > _CLOSE * high and high > _LEAST_RATIO:
        if epsilon_of([Steps(share, ratio, times)], relation, delta) <= epsilon:
            low = ratio
            ratio = min(2.0 * ratio, (ratio + high) / 2.0)
        else:
            high = ratio
            ratio = (low + high) / 2.0
    return low
