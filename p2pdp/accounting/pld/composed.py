"""Distributions of privacy loss on a grid, and what many of them are together.

Guarantee: `delta_upper` and `epsilon_upper` are never below, `delta_lower` and `epsilon_lower` never above the truth
for the pairs whose curves the caller gave; what discretising, cutting off and transforming may have done is added or
taken off. The caller gives exact curves (to about 1e-13 of themselves), for epsilon of at least 0 and in both
directions, and one step for all that is to be composed. Mechanisms may be chosen adaptively, curves may not.

How: the curve of a pair (P, Q), delta(epsilon) = P(S) - e^epsilon Q(S) at its best S, is convex in e^epsilon. Joining
its points at the multiples of `step` gives the curve of a pair that dominates it ("connect the dots": [DGKKM22]), whose
losses ln P/Q lie on the grid: each true loss is split between its two neighbours so that both P and Q keep their mass.
Losses add up under P, so their law is a power in the Fourier domain. It is transformed after weighing each loss l with
e^(tilt l), where the tilt makes the loss that decides delta the typical one: small deltas then keep their digits, which
a plain transform loses below 1e-16.

The lower end needs no second grid. Splitting moves a loss by X with -step <= X <= step; given the loss, X has a range
of `step` and a mean between 0 and c - 1 - ln c, c = step/(1 - e^-step). By Hoeffding's inequality the losses of k
mechanisms were raised by more than k (c - 1 - ln c) + step sqrt(k ln(1/eta)/2) with probability eta at most, so the
true delta is at least the grid's at an epsilon that is larger by this, minus eta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from p2pdp.core.arrays import Complexes, Floats
from p2pdp.core.errors import UsageError

Curve = Callable[[Floats], Floats]

_TAIL: Final = 1e-18  # tilted probability beyond each end of the transform
_ROUNDING: Final = 4.0 * np.finfo(np.float64).eps  # of one transform, for each doubling of its length
_UNDERFLOW: Final = 740.0  # e^-740 is nothing beside the tails
_SIZE_MAX: Final = 1 << 24
_UNLIKELY: Final = 1e-3  # of delta: eta of the lower end
_INCONSISTENT: Final = 1e-9
_NARROW: Final = 1e-10  # relative width at which a search ends


@dataclass(frozen=True, slots=True)
class Losses:
    """P has mass `mass[i]` at the loss (first + i) step, and `infinite` where Q has none.

    Q has `vanished` where P has none. `slack` is mass that may lie more than a step above where it belongs: of
    losses that were cut off below, and of rounding.
    """

    step: float
    first: int
    mass: Floats
    infinite: float
    vanished: float
    slack: float

    def reversed(self) -> Losses:
        """The same pair with P and Q exchanged."""
        mass = (self.mass * np.exp(-self.step * self.places()))[::-1]
        return Losses(self.step, 1 - self.first - len(mass), mass, self.vanished, self.infinite, self.slack)

    def log_moments(self, tilts: Floats) -> Floats:
        """The logarithm of the sum of mass e^(tilt loss), for each tilt."""

        def log_moment(tilt: float) -> float:
            exponents = self.exponents(tilt)
            peak = float(exponents.max())
            return peak + math.log(float(np.exp(exponents - peak).sum()))

        return np.array([log_moment(float(tilt)) for tilt in tilts])

    def exponents(self, tilt: float) -> Floats:
        """The logarithms of mass e^(tilt loss)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.mass) + tilt * self.step * self.places())

    def places(self) -> Floats:
        """The losses in steps."""
        return np.arange(self.first, self.first + len(self.mass), dtype=np.float64)


def losses_of(forward: Curve, backward: Curve, step: float, largest: float) -> Losses:
    """The grid's pair for a pair with these curves: of P against Q, and of Q against P.

    They are asked from 0 to `largest`; losses beyond it count as infinite.
    """
    if not (0.0 < step <= 1.0 and step <= largest < math.inf):
        raise UsageError("step: must be above 0, at most 1, and not above the largest loss.")
    count = math.ceil(largest / step)
    grid: Floats = np.arange(count + 1, dtype=np.float64) * step
    above, infinite = _joined(forward(grid), step)
    below, vanished = _joined(backward(grid), step)
    below *= np.exp(-grid[1:])  # of Q against P these are masses of Q
    kept_above, kept_below = np.maximum(above, 0.0), np.maximum(below, 0.0)
    middle = 1.0 - infinite - float(kept_above.sum()) - float(kept_below.sum())
    if not middle >= -_INCONSISTENT:
        raise UsageError("The two curves do not belong to one pair, or are not exact enough for this step.")
    slack = float(kept_below[-1]) + float(np.sum(kept_above - above) + np.sum(kept_below - below)) + max(0.0, -middle)
    mass = np.concatenate((kept_below[::-1], [max(0.0, middle)], kept_above))
    return Losses(step, -count, mass, infinite, vanished, slack)


def _joined(deltas: Floats, step: float) -> tuple[Floats, float]:
    """Masses of P at step, 2 step, … whose curve joins these points, and what is left at infinity."""
    if not np.all(np.isfinite(deltas)):
        raise UsageError("A curve must be made of finite numbers.")
    falls = deltas[:-1] - deltas[1:]
    growth = math.expm1(step)
    masses = falls * (1.0 + growth) / growth
    masses[:-1] -= falls[1:] / growth
    return masses, float(deltas[-1])


@dataclass(frozen=True, slots=True)
class Composed:
    """Losses of several mechanisms together, weighed so that they are most exact near one delta.

    P has mass e^(log_scale - tilt l) weighed[i] at the loss l = (first + i) step.
    """

    step: float
    first: int
    weighed: Floats
    tilt: float
    log_scale: float
    count: int
    infinite: float
    slack: float
    cut: float
    rounding: float

    def delta_upper(self, epsilon: float) -> float:
        seen, error = self._seen(epsilon)
        return min(1.0, self.infinite + seen + error)

    def delta_lower(self, epsilon: float, unlikely: float) -> float:
        """`unlikely` is taken off for losses that were raised by more than expected; any value gives a lower end."""
        c = self.step / -math.expm1(-self.step)
        raised = self.count * (c - 1.0 - math.log(c)) + self.step * math.sqrt(-self.count * math.log(unlikely) / 2.0)
        seen, error = self._seen(epsilon + min(raised, self.count * self.step))
        return max(0.0, seen - error - unlikely - self.slack)

    def epsilon_upper(self, delta: float) -> float:
        """At least the smallest epsilon of 0 or more with this delta; infinite where none is known."""
        high = max(0.0, (self.first + len(self.weighed)) * self.step)
        if self.delta_upper(0.0) <= delta:
            return 0.0
        if self.delta_upper(high) > delta:
            return math.inf
        return _narrowed(0.0, high, lambda epsilon: self.delta_upper(epsilon) <= delta)[1]

    def epsilon_lower(self, delta: float) -> float:
        """At most the smallest epsilon with this delta; looked for near it, where the weighed law knows most."""

        def enough(epsilon: float) -> bool:
            return self.delta_lower(epsilon, delta * _UNLIKELY) <= delta

        high = min(self.epsilon_upper(delta), max(0.0, (self.first + len(self.weighed)) * self.step))
        down = self.step
        while enough(max(0.0, high - down)):
            if down >= high:
                return 0.0
            down *= 2.0
        return _narrowed(max(0.0, high - down), high, enough)[0]

    def _seen(self, epsilon: float) -> tuple[float, float]:
        """Delta of the finite losses, and how far it may be off."""
        start = max(0, math.floor(epsilon / self.step) + 1 - self.first)
        stop = min(len(self.weighed), start + math.ceil(_UNDERFLOW / (self.tilt * self.step)))
        beyond = np.arange(self.first + start, self.first + stop) * self.step - epsilon
        worth = -np.expm1(-np.maximum(beyond, 0.0)) * np.exp(-self.tilt * beyond)
        log_factor = self.log_scale - self.tilt * epsilon
        if log_factor > 700.0:
            return 1.0, 1.0
        factor = math.exp(log_factor)
        seen = factor * float(worth @ self.weighed[start:stop])
        return seen, factor * (self.cut + self.rounding * float(worth.sum())) + self.rounding * seen


def _narrowed(low: float, high: float, enough: Callable[[float], bool]) -> tuple[float, float]:
    """The ends come together round a place from where on it is enough."""
    while high - low > _NARROW * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if enough(middle) else (middle, high)
    return low, high


def compose(parts: Sequence[tuple[Losses, int]], delta: float) -> Composed:
    """Each of the losses as many times as said, for questions near this delta."""
    steps = {losses.step for losses, _ in parts}
    if len(steps) != 1 or min(times for _, times in parts) < 1:
        raise UsageError("Losses compose on one grid, and each at least once.")
    if not 0.0 < delta < 1.0:
        raise UsageError("delta must be a number between 0 and 1.")
    step = steps.pop()

    def log_moments(tilts: Floats) -> Floats:
        return np.asarray(sum(times * losses.log_moments(tilts) for losses, times in parts))

    tilt = _tilt(log_moments, delta)
    log_scale = float(log_moments(np.array([tilt]))[0])
    low, high = _window(log_moments, tilt, log_scale)
    start = math.floor(low / step)
    size = 1 << max(4, (math.ceil(high / step) - start).bit_length())
    if size > _SIZE_MAX:
        raise UsageError("The step is too small for so many mechanisms.")
    total = np.ones(size // 2 + 1, dtype=np.complex128)
    origin, count = 0, 0
    for losses, times in parts:
        scaled = np.exp(losses.exponents(tilt) - losses.log_moments(np.array([tilt]))[0])
        folded = np.bincount(np.arange(len(scaled)) % size, weights=scaled, minlength=size)
        total *= _power(np.fft.rfft(folded), times)
        origin += losses.first * times
        count += times
    weighed = np.roll(np.maximum(np.fft.irfft(total, size), 0.0), (origin - start) % size)
    finite = sum(
        times * math.log1p(-losses.infinite) if losses.infinite < 1.0 else -math.inf for losses, times in parts
    )
    slack = sum(times * losses.slack for losses, times in parts)
    rounding = _ROUNDING * count * math.log2(size)
    return Composed(
        step, start, weighed, tilt, log_scale, count, max(0.0, -math.expm1(finite)), slack, 2.0 * _TAIL, rounding
    )  # fmt: skip


def _power(base: Complexes, times: int) -> Complexes:
    """By squaring, which keeps the error proportional to `times`."""
    result = np.ones_like(base)
    while times:
        if times & 1:
            result = result * base
        base = base * base
        times >>= 1
    return result


def _tilt(log_moments: Curve, delta: float) -> float:
    """Where the best bound on delta by one moment of the losses meets delta at the smallest epsilon.

    For t = tilt it is M(t) e^(-t epsilon) t^t / (1+t)^(1+t) [CKS20, Proposition 12].
    """
    low, high = math.log(1e-4), math.log(1e5)
    for _ in range(3):
        places = np.linspace(low, high, 41)
        tilts = np.exp(places)
        worth = -tilts * np.log1p(1.0 / tilts) - np.log1p(tilts)
        at = int(np.argmin((log_moments(tilts) + worth - math.log(delta)) / tilts))
        low, high = float(places[max(at - 1, 0)]), float(places[min(at + 1, 40)])
    return math.exp((low + high) / 2.0)


def _window(log_moments: Curve, tilt: float, log_scale: float) -> tuple[float, float]:
    """Losses outside of which the weighed law has at most `_TAIL` on each side, by Chernoff's bound."""
    far = np.exp(np.linspace(math.log(1e-4), math.log(1e5), 91))
    reach = -math.log(_TAIL)
    high = float(np.min((log_moments(tilt + far) - log_scale + reach) / far))
    low = float(np.max((log_scale - log_moments(tilt - far) - reach) / far))
    return low, high
