"""What one gap between two visits of a token tells an observer who does not see its path, as losses on a grid.

In a gap of M contributions by others, user u contributes c times; `law` is the distribution of c given all that
the observer saw of the route, and `mu` is one contribution's sensitivity over the gap's noise, Delta/(sigma sqrt(M)).

*Upper end.* With delta_c the curve of a Gaussian at c mu, the gap's curve in both directions is at most

    delta(epsilon') = sum over c >= 1 of law[c] delta_c(epsilon),  epsilon' = ln(1 + share (e^epsilon - 1)).

This is advanced joint convexity [BBG18, Theorem 2]. With a share of 1 - law[0] it needs for
every path with u one without u at a distance of at most c Delta, equally likely among those. On the complete graph
replacing u in its slots by other users gives that, with a slightly larger share (`moves.py`). On other graphs
a path round u may visit quite different users, whose values may be anything; there only joint convexity holds, a
share of 1 and epsilon' = epsilon: the observer counts as told how often u came. The same holds where a slot is known
to be u's, for then no path is without u.

*Lower end.* The pair (sum of law[c] N(c mu, 1), N(0, 1)), which is what the gap tells where all others hold the
same value, an end of the allowed range.

Losses are put on the multiples of `step`. A curve whose knots lie there belongs to a pair with these losses ([ZDW22];
[DGKKM22], "connect the dots"). The upper end joins points of the curve and so
lies above it; the lower end joins points below two neighbouring tangents and so lies below it. Both errors are
quadratic in the step. What is cut off in the tails becomes an infinite loss in the upper end and none in the lower.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from p2pdp.core.arrays import Floats

_ROOT_2: Final = math.sqrt(2.0)
_ENDS_TRIED: Final = np.linspace(0.0, 1.0, 96)  # exponents: ends of all orders of magnitude
_SLOPES: Final = 2000  # thresholds among which tests are looked up; between them one in between does as well
_REACH: Final = 9.0  # standard deviations beyond which nothing is looked for
_SWEEPS_MAX: Final = 100
_ADDED_MAX: Final = 1e-13
_ADDED_TOLD: Final = 1e-6  # with more, a lower end tells nothing
_PLACES_MAX: Final = 1 << 16
_ROUNDING: Final = 1e-17
_LOSS_MAX: Final = 650.0  # above, the exponential of a loss is no float any more


@dataclass(frozen=True, slots=True)
class Losses:
    """Masses of the losses (first + i) step under the first distribution of a pair.

    `beyond` is the mass of an infinite loss in an upper end, and in a lower end what rounding may have added.
    """

    first: int
    masses: Floats
    beyond: float


def scale(law: Floats, mu: float, share: float) -> float:
    """Roughly the standard deviation of the loss: from it a step is chosen."""
    counts = np.arange(len(law))
    typical = np.minimum((counts * mu) ** 2 / 2 + counts * mu, _LOSS_MAX)
    if share < 1.0:
        typical = np.log1p(share * np.expm1(typical))
    return math.sqrt(float(law @ typical**2))


def upper_losses(law: Floats, mu: float, step: float, tail: float, share: float) -> Losses:
    """A pair that tells at least as much as the gap. `law` lacks at most `tail` to 1, which is an infinite loss."""
    present = np.nonzero(law[1:] > 0.0)[0] + 1
    if len(present) == 0 or mu == 0.0:
        return Losses(0, np.ones(1), 0.0 if mu == 0.0 else tail)
    weights, mus = law[present], mu * present.astype(np.float64)
    curve = _upper_curve(weights, mus, share, step * np.arange(_end(weights, mus, share, step, tail) + 1.0))
    drops = np.maximum(-np.diff(curve), 0.0)
    growth = math.expm1(step)
    above = ((1.0 + growth) * drops - np.append(drops[1:], 0.0)) / growth
    above = np.maximum(above, 0.0)
    below = above * np.exp(-step * np.arange(1, len(above) + 1))
    infinite = float(curve[-1])
    middle = max(0.0, 1.0 - infinite - float(above.sum() + below.sum()))
    return Losses(-len(above), np.concatenate((below[::-1], [middle], above)), infinite + tail)


def _upper_curve(weights: Floats, mus: Floats, share: float, epsilons: Floats) -> Floats:
    """The upper end at each epsilon' of at least 0."""
    before = epsilons + np.log1p((1.0 / share - 1.0) * -np.expm1(-epsilons))
    return weights @ gaussian_deltas(before[None, :], mus[:, None])


def gaussian_deltas(epsilon: Floats, mu: Floats) -> Floats:
    """The curve of a Gaussian at epsilon of at least 0: accurate relative to itself, far into its tail."""
    from scipy.special import erfcx, ndtr

    ratio = epsilon / mu
    low, high = ratio - mu / 2, ratio + mu / 2
    with np.errstate(under="ignore"):
        density = np.square(low)
        density /= -2.0
        np.exp(density, out=density)
        density *= 0.5
        near = np.nonzero(low <= 0.0)
        above = erfcx(np.divide(high, _ROOT_2, out=high), out=high)
        within = ndtr(-low[near]) - density[near] * above[near]
        np.maximum(low, 0.0, out=low)
        found: Floats = erfcx(np.divide(low, _ROOT_2, out=low), out=low)
        found -= above
        found *= density
    found[near] = within
    return np.maximum(found, 0.0, out=found)


def _end(weights: Floats, mus: Floats, share: float, step: float, tail: float) -> int:
    """How many steps it takes until the curve is at most `tail`."""
    most = float(mus[-1])
    last = (most / 2 + 38.0) * most + step
    least = min(step, last / 2)
    tried = least * (last / least) ** _ENDS_TRIED
    enough = np.nonzero(_upper_curve(weights, mus, share, tried) <= tail)[0]
    return math.ceil(float(tried[enough[0]] if len(enough) else last) / step)


def lower_losses(law: Floats, mu: float, step: float, tail: float) -> tuple[Losses, Losses]:
    """A pair that tells at most as much as the mixture, in either order; what `law` lacks to 1 counts as not there."""
    present = np.nonzero(law[1:] > 0.0)[0] + 1
    if len(present) == 0 or mu == 0.0:
        return _NOTHING, _NOTHING
    weights, mus = law[present], mu * present.astype(np.float64)
    thresholds, losses = _thresholds(1.0 - float(weights.sum()), weights, mus, tail)
    first, last = math.floor(losses[0] / step), math.ceil(losses[-1] / step)
    first, last = max(min(first, -1), -math.ceil(_LOSS_MAX / step)), max(last, 1)
    if last - first > _PLACES_MAX:
        return _NOTHING, _NOTHING
    middles = step * (np.arange(first, last) + 0.5)
    chosen = np.interp(middles, losses, thresholds)
    left, right = _tangents(weights, mus, chosen, step, np.arange(first, last))
    knots = np.zeros(last - first + 1)  # above e^epsilon <= 1 the curve itself, below what exceeds 1 - e^epsilon
    knots[1:-1] = np.minimum(right[:-1], left[1:])
    masses = _convex_masses(knots, first, step)
    weights = np.exp(-step * np.arange(first, last + 1))
    ends = _clipped(first, masses), _clipped(-last, (masses * weights)[::-1])
    return ends if max(end.beyond for end in ends) <= _ADDED_TOLD else (_NOTHING, _NOTHING)


_NOTHING: Final = Losses(0, np.ones(1), 0.0)


def _thresholds(none: float, weights: Floats, mus: Floats, tail: float) -> tuple[Floats, Floats]:
    """Tests "more than t" of the observation, and the loss at t."""
    from scipy.special import ndtr, ndtri

    reach = min(_REACH, -float(ndtri(max(tail, 1e-300))))
    end = float(mus[-1]) + reach
    while weights @ ndtr(mus - (end - reach / 4)) < tail and end > 0.0:
        end -= reach / 4
    thresholds = np.linspace(-reach, max(end, reach), _SLOPES)
    parts = np.log(weights)[:, None] + mus[:, None] * thresholds - (mus**2 / 2)[:, None]
    parts = np.vstack((np.full(len(thresholds), math.log(none) if none > 0.0 else -math.inf), parts))
    peaks = parts.max(axis=0)
    return thresholds, peaks + np.log(np.exp(parts - peaks).sum(axis=0))


def _tangents(weights: Floats, mus: Floats, chosen: Floats, step: float, places: Floats) -> tuple[Floats, Floats]:
    """The line of each chosen test at both ends of its interval, or 0 where it does not help at both.

    A test with rates P and Q gives the line P - alpha Q below the curve over alpha = e^epsilon; in intervals
    with alpha < 1 what exceeds 1 - alpha is taken, alpha (1 - Q) - (1 - P).
    """
    from scipy.special import log_ndtr, ndtr

    rises = places >= 0
    sign = np.where(rises, 1.0, -1.0)
    mixed = weights @ ndtr(sign * (mus[:, None] - chosen))
    mixed = np.where(rises, mixed, mixed + (1.0 - weights.sum()) * ndtr(chosen))
    mixed = np.where(rises, mixed + (1.0 - weights.sum()) * ndtr(-chosen), mixed)
    plain = log_ndtr(-sign * chosen)
    lines = [sign * (mixed - np.exp(step * at + plain)) for at in (places, places + 1)]
    helps = np.minimum(*lines) > 0.0
    return np.where(helps, lines[0], 0.0), np.where(helps, lines[1], 0.0)


def _clipped(first: int, masses: Floats) -> Losses:
    """Where losses are so large that rounding moves masses, it shows in their sum."""
    kept = np.maximum(masses, 0.0)
    return Losses(first, kept, max(float((kept - masses).sum()), float(kept.sum()) - 1.0, 0.0))


def _convex_masses(knots: Floats, first: int, step: float) -> Floats:
    """The masses of a convex curve at or below the knots, but for rounding none below 0.

    A knot above the line between its neighbours is let down to it, some rounds long: each knot only ever falls.
    Where that does not do, the greatest convex curve below the knots is taken.
    """
    growth = math.exp(step)
    alphas = np.exp(np.minimum(step * np.arange(first, first + len(knots)), 0.0))
    flat = np.zeros(len(knots))
    flat[-first] = growth - 1.0  # the kink of max(0, 1 - alpha) at alpha = 1
    let_down, bends = knots.copy(), flat
    for _ in range(_SWEEPS_MAX):
        rises = np.diff(let_down, prepend=0.0, append=0.0)
        bends = rises[1:] - growth * rises[:-1] + flat
        if np.all(bends[1:-1] >= -_ROUNDING * (growth - 1.0) * alphas[1:-1]):
            break
        let_down[1:-1] += np.minimum(bends[1:-1], 0.0) / (1.0 + growth)
    masses: Floats = bends / (growth - 1.0)
    below = np.minimum(masses, 0.0)
    if -(below / alphas).sum() > _ADDED_MAX:  # in the masses of either distribution
        masses = _hull_masses(knots.tolist(), first, step)
    return masses


def _hull_masses(knots: list[float], first: int, step: float) -> Floats:
    """The masses of the greatest convex curve below the knots, at those that it keeps."""

    def bend(before: int, at: int, after: int) -> float:
        """How much steeper the curve gets at a knot, times alpha there: its mass."""
        return rise(at, after, at) / math.expm1(min(step * (after - at), _LOSS_MAX)) - fall(before, at)

    def fall(before: int, at: int) -> float:
        side = -1 if at == 0 else at
        return -rise(before, at, side) / math.expm1(step * (before - at)) - (at == 0)

    def rise(low: int, high: int, side: int) -> float:
        """On one side of alpha = 1 the curve itself is taken, on the other what exceeds 1 - alpha."""
        return height(high, side) - height(low, side)

    def height(at: int, side: int) -> float:
        value = knots[at - first]
        if (at < 0) == (side < 0) or at == 0:
            return value
        return value + math.expm1(min(step * at, _LOSS_MAX)) * (1.0 if side < 0 else -1.0)

    kept: list[int] = []
    for place in range(first, first + len(knots)):
        while len(kept) > 1 and bend(kept[-2], kept[-1], place) <= 0.0:
            kept.pop()
        kept.append(place)
    masses = np.zeros(len(knots))
    for before, at, after in zip(kept, kept[1:], kept[2:], strict=False):
        masses[at - first] = bend(before, at, after)
    masses[0] = rise(kept[0], kept[1], kept[0]) / math.expm1(min(step * (kept[1] - kept[0]), _LOSS_MAX))
    masses[-1] = -fall(kept[-2], kept[-1])
    return masses
