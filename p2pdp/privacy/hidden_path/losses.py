"""Losses on a grid for one gap between two visits of a token, against an observer who does not see its path.

In a gap of M contributions by others, user u contributes c times; `law` is the distribution of c given all that
the observer saw of the route, and `mu` is one contribution's sensitivity over the gap's noise, Delta/(sigma sqrt(M)).

*Upper end.* With delta_c the curve of a Gaussian at c mu, the gap's curve in both directions is at most

    delta(epsilon') = sum over c >= 1 of law[c] delta_c(epsilon),  epsilon' = ln(1 + share (e^epsilon - 1)).

This is advanced joint convexity [BBG18, Theorem 2]. With a share of 1 - law[0] it needs for
every path with u one without u at a distance of at most c Delta, equally likely among those. On the complete graph
replacing u in its slots by other users gives that, with a slightly larger share (`moves.py`). On other graphs
a path round u may visit quite different users, whose values may be anything; there only joint convexity holds, a
share of 1 and epsilon' = epsilon: the observer counts as told how often u came. The same holds where a slot is known
to be u's, for then no path is without u; and where users' contributions may be farther apart than c Delta, as sums of
rows are of which one is replaced.

*Lower end.* The pair (sum of law[c] N(c mu, 1), N(0, 1)), which is what the gap tells where all others hold the
same value, an end of the allowed range.

Both ends are put on the multiples of `step` by `privacy/pld/losses.py`: the upper end joins points of the curve, the
lower end joins points below two neighbouring tangents. What is cut off in the tails becomes an infinite loss in the
upper end and none in the lower.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.privacy.gaussian_curve import gaussian_deltas
from p2pdp.privacy.pld.losses import LOSS_MAX, Losses, from_points, under

_ENDS_TRIED: Final = np.linspace(0.0, 1.0, 96)  # exponents: ends of all orders of magnitude
_EVERY: Final = 8  # of them is looked at before those between
_SLOPES: Final = 2000  # thresholds among which tests are looked up; between them one in between does as well
_REACH: Final = 9.0  # standard deviations beyond which nothing is looked for
_ADDED_TOLD: Final = 1e-6  # with more, a lower end tells nothing
_PLACES_MAX: Final = 1 << 16


def scale(law: Floats, mu: float, share: float) -> float:
    """Return roughly the standard deviation of the loss; the step is chosen by it."""
    counts = np.arange(len(law))
    typical = np.minimum((counts * mu) ** 2 / 2 + counts * mu, LOSS_MAX)
    if share < 1.0:
        typical = np.log1p(share * np.expm1(typical))
    return math.sqrt(float(law @ typical**2))


def upper_losses(law: Floats, mu: float, step: float, tail: float, share: float) -> Losses:
    """Return a pair that tells at least as much as the gap. `law` lacks at most `tail` to 1, which is infinite loss."""
    return upper_losses_of([law], mu, step, tail, [share])[0]


def upper_losses_of(
    laws: Sequence[Floats], mu: float, step: float, tail: float, shares: Sequence[float]
) -> list[Losses]:
    """Return the same for several gaps whose contributions have one mu; those with a share of 1 share most work."""
    told = _Told(mu, max(map(len, laws)) - 1)
    curves: dict[int, _Curve] = {}
    for place, (law, share) in enumerate(zip(laws, shares, strict=True)):
        present = np.nonzero(law[1:] > 0.0)[0]
        if len(present) and mu != 0.0:
            curves[place] = _Curve(law[present + 1], present, share, told)
    ends = {place: _end(curve, step, tail) for place, curve in curves.items()}
    longest = max((end for place, end in ends.items() if shares[place] == 1.0), default=0)
    found: list[Losses] = []
    for place, share in enumerate(shares):
        if place not in curves:
            found.append(Losses(step, 0, np.ones(1), 0.0 if mu == 0.0 else tail))
            continue
        epsilons = step * np.arange((longest if share == 1.0 else ends[place]) + 1.0)
        points = curves[place](epsilons, ends[place] + 1)
        joined = from_points(points, points, step)
        found.append(replace(joined, infinite=joined.infinite + tail))
    return found


class _Told:
    """The curves of Gaussians at 1, 2, … times mu, of which each that is asked for is computed once."""

    def __init__(self, mu: float, counts: int) -> None:
        self.mus = mu * np.arange(1.0, counts + 1.0)
        self._known: dict[tuple[int, bytes], Floats] = {}

    def deltas(self, counts: int, epsilons: Floats) -> Floats:
        place = counts, epsilons.tobytes()
        if place not in self._known:
            self._known[place] = gaussian_deltas(epsilons[None, :], self.mus[:counts, None])
        return self._known[place]


class _Curve:
    """The upper end of one gap's curve. `present` are the counts that it may have, less one, and `weights` theirs."""

    def __init__(self, weights: Floats, present: Ints, share: float, told: _Told) -> None:
        self._weights, self._present, self._share, self._told = weights, present, share, told
        self.most = float(told.mus[present[-1]])

    def __call__(self, epsilons: Floats, size: int | None = None) -> Floats:
        """Return its value at the first `size` of these epsilon' of at least 0."""
        if self._share == 1.0:  # epsilon' is epsilon
            counts = len(self._told.mus) if size is not None else int(self._present[-1]) + 1
            return self._weights @ np.ascontiguousarray(self._told.deltas(counts, epsilons)[self._present, :size])
        before = epsilons + np.log1p((1.0 / self._share - 1.0) * -np.expm1(-epsilons))
        return self._weights @ gaussian_deltas(before[None, :], self._told.mus[self._present][:, None])


def _end(curve: _Curve, step: float, tail: float) -> int:
    """Return after how many steps the curve is at most `tail`."""
    last = (curve.most / 2 + 38.0) * curve.most + step
    least = min(step, last / 2)
    tried = least * (last / least) ** _ENDS_TRIED
    rough = np.nonzero(curve(tried[_EVERY - 1 :: _EVERY]) <= tail)[0]
    if not len(rough):  # the last one that was tried is among these
        return math.ceil(last / step)
    tried = tried[rough[0] * _EVERY : (rough[0] + 1) * _EVERY]
    enough = np.nonzero(curve(tried) <= tail)[0]
    return math.ceil(float(tried[enough[0] if len(enough) else -1]) / step)


def lower_losses(law: Floats, mu: float, step: float, tail: float) -> tuple[Losses, Losses]:
    """Return a pair that tells at most as much as the mixture, in either order; what `law` lacks to 1 is left out."""
    nothing = Losses(step, 0, np.ones(1))
    present = np.nonzero(law[1:] > 0.0)[0] + 1
    if len(present) == 0 or mu == 0.0:
        return nothing, nothing
    weights, mus = law[present], mu * present.astype(np.float64)
    thresholds, losses = _thresholds(1.0 - float(weights.sum()), weights, mus, tail)
    first, last = math.floor(losses[0] / step), math.ceil(losses[-1] / step)
    first, last = max(min(first, -1), -math.ceil(LOSS_MAX / step)), max(last, 1)
    if last - first > _PLACES_MAX:
        return nothing, nothing
    middles = step * (np.arange(first, last) + 0.5)
    chosen = np.interp(middles, losses, thresholds)
    left, right = _tangents(weights, mus, chosen, step, np.arange(first, last))
    knots = np.zeros(last - first + 1)
    knots[1:-1] = np.minimum(right[:-1], left[1:])
    ends = under(knots, first, step)
    return ends if max(end.slack for end in ends) <= _ADDED_TOLD else (nothing, nothing)


def _thresholds(none: float, weights: Floats, mus: Floats, tail: float) -> tuple[Floats, Floats]:
    """Return thresholds t of the tests "more than t" of the observation, and the loss at each."""
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
    """Return the line of each chosen test at both ends of its interval, or 0 where it does not help at both.

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
