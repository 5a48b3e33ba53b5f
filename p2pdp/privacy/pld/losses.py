"""Privacy losses of one pair of distributions, discretised on the multiples of a step, in a stated direction.

A pair (P, Q) has the curve delta(epsilon) = P(S) - e^epsilon Q(S) at its best S, which is convex in e^epsilon. A pair
dominates another one, and may take its place in an upper end, if its curve lies above the other's [ZDW22].

*Upwards.* `from_curves` and `from_points` join points of a curve at multiples of the step, and `from_outcomes` splits
each listed loss between its two neighbours so that both P and Q keep their mass ("connect the dots" [DGKKM22]); both
give the same pair, whose curve lies above the true one. What is cut off at the upper end becomes an infinite loss.

*Downwards.* `under` takes the masses of a convex curve at or below given knots, so its curve lies below the true one
if the knots do. What is cut off becomes no loss.

Both errors are quadratic in the step. Masses that rounding makes negative are set to 0, which raises others: `slack`
bounds by how much, and whoever reads a lower end takes it off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.core.errors import UsageError

Curve = Callable[[Floats], Floats]


class Outcomes(Protocol):
    """Outcomes with P > Q, as listed masses `excess` = P - Q, without cancellation, and `base` = Q."""

    @property
    def excess(self) -> Floats: ...
    @property
    def base(self) -> Floats: ...


LOSS_MAX: Final = 650.0  # above, the exponential of a loss is no float any more
SMALLEST: Final = 1e-290  # what must have a logarithm counts as at least this
_INCONSISTENT: Final = 1e-9
_SWEEPS_MAX: Final = 100
_ADDED_MAX: Final = 1e-13
_ROUNDING: Final = 1e-17


@dataclass(frozen=True, slots=True)
class Losses:
    """P has mass `masses[i]` at the loss (first + i) step, and `infinite` where Q has none.

    Q has `vanished` where P has none. `slack` is mass that may lie more than a step above where it belongs: of
    losses that were cut off below, and of rounding.
    """

    step: float
    first: int
    masses: Floats
    infinite: float = 0.0
    vanished: float = 0.0
    slack: float = 0.0

    def reversed(self) -> Losses:
        """Return the same pair with P and Q exchanged."""
        masses = (self.masses * np.exp(-self.losses()))[::-1]
        return Losses(self.step, 1 - self.first - len(masses), masses, self.vanished, self.infinite, self.slack)

    def losses(self) -> Floats:
        """Return the losses that `masses` belong to."""
        return np.asarray(self.step * np.arange(self.first, self.first + len(self.masses)))

    def log_moments(self, exponents: Floats) -> Floats:
        """Return the logarithm of the sum of masses e^(t loss), for each exponent t."""
        return np.asarray(log_moments_of([self], exponents)[0])

    def log_tilted(self, exponent: float) -> Floats:
        """Return the logarithms of masses e^(t loss)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.masses) + exponent * self.losses())


def log_moments_of(several: Sequence[Losses], exponents: Floats) -> Floats:
    """Return a row of log moments for each of several; those at the same losses share the powers."""
    alike: dict[tuple[float, int, int], list[int]] = {}
    for place, one in enumerate(several):
        alike.setdefault((one.step, one.first, len(one.masses)), []).append(place)
    found: Floats = np.empty((len(several), len(exponents)))
    for places in alike.values():
        powers = exponents[:, None] * several[places[0]].losses()
        peaks = powers.max(axis=1)
        powers -= peaks[:, None]
        with np.errstate(under="ignore"):
            np.exp(powers, out=powers)
        for place in places:
            one = several[place]
            sums = powers @ one.masses
            found[place] = peaks + np.log(np.maximum(sums, SMALLEST))
            for at in np.flatnonzero(sums < SMALLEST):  # where the largest power has next to no mass
                logs = one.log_tilted(float(exponents[at]))
                found[place, at] = logs.max() + math.log(float(np.exp(logs - logs.max()).sum()))
    return found


def from_curves(forward: Curve, backward: Curve, step: float, largest: float) -> Losses:
    """Return a pair that dominates the one with these curves, of P against Q and of Q against P.

    The curves must be exact to about 1e-13 of themselves, and are asked from 0 to `largest`; losses beyond it count as
    infinite.
    """
    if not (0.0 < step <= 1.0 and step <= largest < math.inf):
        raise UsageError("step: must be above 0, at most 1, and not above the largest loss.")
    grid: Floats = np.arange(math.ceil(largest / step) + 1, dtype=np.float64) * step
    points = forward(grid)
    found = from_points(points, points if backward is forward else backward(grid), step)
    if found.infinite + float(found.masses.sum()) > 1.0 + _INCONSISTENT:
        raise UsageError("The two curves do not belong to one pair, or are not exact enough for this step.")
    return found


def from_points(forward: Floats, backward: Floats, step: float) -> Losses:
    """Return a pair that dominates the one whose curves have these values at the multiples of the step."""
    if not (np.all(np.isfinite(forward)) and np.all(np.isfinite(backward))):
        raise UsageError("A curve must be made of finite numbers.")
    above, raised = _joined(forward, step)
    against, also = (above, raised) if backward is forward else _joined(backward, step)
    below = _exchanged(against, step)
    infinite = float(forward[-1])
    middle = 1.0 - infinite - float(above.sum() + below.sum())
    slack = raised + also + float(below[-1]) + max(0.0, -middle)
    masses = np.concatenate((below[::-1], [max(0.0, middle)], above))
    return Losses(step, -len(below), masses, infinite, float(backward[-1]), slack)


def _joined(points: Floats, step: float) -> tuple[Floats, float]:
    """Return the masses at step, 2 step, … whose curve joins the points, and how much rounding raised them."""
    drops = np.maximum(-np.diff(points), 0.0)
    growth = math.expm1(step)
    masses = ((1.0 + growth) * drops - np.append(drops[1:], 0.0)) / growth
    kept = np.maximum(masses, 0.0)
    return kept, float(np.sum(kept - masses))


def from_outcomes(step: float, above: Outcomes, against: Outcomes) -> Losses:
    """Return a pair that dominates the one with these outcomes: those with P > Q, and those with Q > P of Q against P.

    Where the same object is given twice, the pair is symmetric. Mass that is not listed has no loss.
    """
    split = _split(above, step)
    others = split if against is above else _split(against, step)
    below = _exchanged(others[1:], step)
    middle = max(0.0, 1.0 - float(split[1:].sum()) - float(below.sum()))
    return Losses(step, -len(below), np.concatenate((below[::-1], [middle], split[1:])))


def _split(outcomes: Outcomes, step: float) -> Floats:
    """Return masses of P at 0, step, 2 step … of outcomes with P > Q."""
    losses = np.log1p(outcomes.excess / outcomes.base)
    below = np.floor(losses / step)
    higher = (outcomes.excess + outcomes.base) * (np.expm1(below * step - losses) / math.expm1(-step))
    places = below.astype(np.int64)
    size = int(places.max(initial=0)) + 2
    lower = outcomes.excess + outcomes.base - higher
    found: Floats = np.bincount(places, weights=lower, minlength=size).astype(np.float64)
    found += np.bincount(places + 1, weights=higher, minlength=size)
    return found


def _exchanged(masses: Floats, step: float) -> Floats:
    """Return the masses of P at -step, -2 step and so on, where Q against P has these at step, 2 step and so on."""
    return np.asarray(masses * np.exp(-step * np.arange(1, len(masses) + 1)))


def under(knots: Floats, first: int, step: float) -> tuple[Losses, Losses]:
    """Return a pair, and the same reversed, whose curve lies at or below these knots.

    The knots are at first step, (first + 1) step and so on. Below e^epsilon = 1 a knot is what the curve exceeds
    1 - e^epsilon by.
    """
    masses = _convex_masses(knots, first, step)
    last = first + len(knots) - 1
    weights = np.exp(-step * np.arange(first, last + 1))
    return _clipped(step, first, masses), _clipped(step, -last, (masses * weights)[::-1])


def _clipped(step: float, first: int, masses: Floats) -> Losses:
    """Return the pair with negative masses set to 0; where large losses let rounding move masses, the sum shows it."""
    kept = np.maximum(masses, 0.0)
    slack = max(float((kept - masses).sum()), float(kept.sum()) - 1.0, 0.0)
    return Losses(step, first, kept, slack=slack)


def _convex_masses(knots: Floats, first: int, step: float) -> Floats:
    """Return the masses of a convex curve at or below the knots; but for rounding, none is below 0.

    A knot above the line between its neighbours is let down to it, for some rounds: each knot only ever falls. If that
    is not enough, the greatest convex curve below the knots is taken.
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
    """Return the masses of the greatest convex curve below the knots, at those that it keeps."""

    def bend(before: int, at: int, after: int) -> float:
        """Return by how much the curve gets steeper at a knot, times alpha there: its mass."""
        return rise(at, after, at) / math.expm1(min(step * (after - at), LOSS_MAX)) - fall(before, at)

    def fall(before: int, at: int) -> float:
        side = -1 if at == 0 else at
        return -rise(before, at, side) / math.expm1(step * (before - at)) - (at == 0)

    def rise(low: int, high: int, side: int) -> float:
        """Return the rise of the curve itself on one side of alpha = 1, on the other of what exceeds 1 - alpha."""
        return height(high, side) - height(low, side)

    def height(at: int, side: int) -> float:
        value = knots[at - first]
        if (at < 0) == (side < 0) or at == 0:
            return value
        return value + math.expm1(min(step * at, LOSS_MAX)) * (1.0 if side < 0 else -1.0)

    kept: list[int] = []
    for place in range(first, first + len(knots)):
        while len(kept) > 1 and bend(kept[-2], kept[-1], place) <= 0.0:
            kept.pop()
        kept.append(place)
    masses = np.zeros(len(knots))
    for before, at, after in zip(kept, kept[1:], kept[2:], strict=False):
        masses[at - first] = bend(before, at, after)
    masses[0] = rise(kept[0], kept[1], kept[0]) / math.expm1(min(step * (kept[1] - kept[0]), LOSS_MAX))
    masses[-1] = -fall(kept[-2], kept[-1])
    return masses
