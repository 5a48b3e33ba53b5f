"""Sums of independent losses on one grid, and epsilon and delta of each sum.

Losses of mechanisms add up under P, so their laws are convolved: spectra (discrete Fourier transforms) multiply.
Mechanisms may be chosen adaptively, their losses may not. There are two ways to the masses of a sum.

*Many sums at once* share spectra, or their logarithms, which add (`spectrum`, `log_spectrum`). A window holds only part
of all losses; what lies outside is bounded by Chernoff's inequality over the moments in `Moments` and moves delta the
pessimistic way, and so do infinite losses and the rounding of the transforms, which is absolute. Where delta is so
small that rounding drowns it, the upper end is that of the moments alone: delta is at most e^(-t epsilon) E[e^(t L)]
t^t / (1 + t)^(1 + t) [CKS20, Proposition 12].

*One sum for a small delta* (`compose`) is transformed after weighing each loss l with e^(tilt l), where the tilt makes
the loss that decides delta the typical one: small deltas then keep their digits. Its lower end needs no second grid.
Splitting a loss moves it by X with -step <= X <= step; given the loss, X has a range of `step` and a mean between 0 and
c - 1 - ln c, c = step/(1 - e^-step). By Hoeffding's inequality the losses of k mechanisms were raised by more than k (c
- 1 - ln c) + step sqrt(k ln(1/eta)/2) with probability eta at most, so the true delta is at least the grid's at an
epsilon that is larger by this, minus eta.

Both are read by `Tails`: between two grid points x and x + step the curve of a sum is A - e^(epsilon - x) W, A the mass
above x and W the same mass weighted with e^(x - loss), so epsilon at a delta has a closed form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from p2pdp.core.arrays import Complexes, Floats, Ints
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms.rounding import inside
from p2pdp.privacy.pld.crossing import UP
from p2pdp.privacy.pld.losses import SMALLEST, Losses

SIZE_MIN: Final = 256
SIZE_MAX: Final = 1 << 17
_ROUNDING: Final = 2e-16  # of delta, for each loss in a sum; three to ten times what was measured
_ROUNDING_ONCE: Final = 2e-15
_VANISHED: Final = 700.0  # the exponential of its negative is none any more
_RELATIVE: Final = 1e-9  # what sums of many rounded masses can be off, relative to themselves
_CUT: Final = 1e-4  # of delta: the mass that a window may leave out

_TAIL: Final = 1e-18  # tilted probability beyond each end of a tilted transform
_TILTED_ROUNDING: Final = 4.0 * np.finfo(np.float64).eps  # of a tilted transform, for each doubling of its length
_TILTED_SIZE_MAX: Final = 1 << 24
_TILT_MAX: Final = 15.0  # in one step; what the window leaves out is bounded at the grid point below
_UNLIKELY: Final = 1e-3  # of delta: eta of the lower end
_FAR: Final = np.exp(np.linspace(math.log(1e-4), math.log(1e5), 91))


def power(base: Complexes, times: int) -> Complexes:
    """Return a spectrum to a power, by squaring, which keeps the error proportional to `times`."""
    found = np.ones_like(base)
    while times:
        if times & 1:
            found = found * base
        times >>= 1
        if times:
            base = base * base
    return found


def spectrum(losses: Losses, size: int) -> Complexes:
    """Return the spectrum in a window of `size` grid points round 0; losses outside come in at its other end."""
    places = np.arange(losses.first, losses.first + len(losses.masses)) % size
    return np.fft.rfft(np.bincount(places, weights=losses.masses, minlength=size))


def log_spectrum(losses: Losses, size: int) -> Complexes:
    """Return the logarithms of a spectrum."""
    found = spectrum(losses, size)
    found[np.abs(found) < SMALLEST] = SMALLEST
    return np.log(found)


class Moments:
    """The exponents t at which ln E[e^(t L)] is taken."""

    def __init__(self, scale_min: float, scale_max: float) -> None:
        self.exponents = np.geomspace(0.3 / scale_max, 40.0 / scale_min, 32)

    def log_tail(self, moments: Floats, end: Floats) -> Floats:
        """Return the logarithm of a bound of the mass beyond `end`, for each row of log moments."""
        found: Floats = (moments - self.exponents * end[:, None]).min(axis=1)
        return found

    def size(self, moments: Floats, delta: float, step: float) -> Ints:
        """Return how large a window each sum needs, a power of 2."""
        ends = ((moments - math.log(delta * _CUT)) / self.exponents).min(axis=1)
        sizes = np.clip(2.0 * np.maximum(ends, 0.0) / step + 2.0, SIZE_MIN, SIZE_MAX)
        powers: Ints = np.int64(1) << np.ceil(np.log2(sizes)).astype(np.int64)
        return powers

    def epsilon(self, moments: Floats, delta: Floats) -> Floats:
        """Return an upper end of epsilon from the moments alone."""
        t = self.exponents
        with np.errstate(divide="ignore"):
            log_delta = np.log(np.maximum(delta, 0.0))
        found = (moments + t * np.log(t) - (1.0 + t) * np.log1p(t) - log_delta[:, None]) / t
        epsilons: Floats = np.maximum(found.min(axis=1), 0.0)
        return epsilons

    def upper(
        self, spectra: Complexes, moments: Floats, step: float, delta: float, beyond: Floats, count: int
    ) -> Upper:
        """Return the upper ends of sums in their windows, or those of the moments alone where these are less."""
        by_window, variation = upper_ends(spectra, step, delta, beyond, self._outside(spectra, moments, step), count)
        return Upper(np.minimum(by_window, self.epsilon(moments, delta - beyond)), variation)

    def lower(
        self, spectra: Complexes, moments: Floats, step: float, delta: float, beyond: Floats, count: int
    ) -> Floats:
        """Return the lower ends of sums in their windows."""
        return lower_epsilons(spectra, step, delta, beyond, self._outside(spectra, moments, step), count)

    def _outside(self, spectra: Complexes, moments: Floats, step: float) -> Floats:
        """Return a bound of the mass outside the spectra's window."""
        end = (spectra.shape[1] - 1) * step
        return np.asarray(np.exp(np.minimum(self.log_tail(moments, np.full(len(moments), end)), 0.0)))


class Tails:
    """The curves of several sums, from their masses at all losses above 0: the largest loss first, the last at `step`.

    `more` is added to each curve between a grid point and the next one.
    """

    def __init__(self, masses: Floats, step: float, more: Floats | float = 0.0) -> None:
        self._step = step
        weighted = masses * math.exp(-step)
        span = 1
        while span < masses.shape[1] + 1 and span * step < _VANISHED:  # each round takes in twice as many larger losses
            weighted[:, span:] += math.exp(-span * step) * weighted[:, :-span].copy()
            span *= 2
        self._above = np.cumsum(masses, axis=1) + more
        self._weighted = weighted
        self._curve = self._above - weighted  # at … 2 step, step, 0

    @property
    def variation(self) -> Floats:
        """Return delta at epsilon 0."""
        return self._curve[:, -1]

    def epsilons(self, delta: Floats, outside: float) -> Floats:
        """Return where each curve falls to its delta, or `outside` where it does not among these losses."""
        over = np.count_nonzero(np.logical_or.accumulate(self._curve > delta[:, None], axis=1), axis=1)
        rows, last = np.arange(len(self._curve)), self._curve.shape[1] - 1
        at = np.clip(last - over + 1, 0, last)
        gaps = self._above[rows, at] - delta, self._weighted[rows, at]
        found = (over - 1) * self._step + np.clip(np.subtract(*map(_log, gaps)), 0.0, self._step)
        return np.where(over == 0, 0.0, np.where(over > last, outside, found))

    def delta(self, epsilon: float) -> float:
        """Return the first curve at one epsilon."""
        below = math.floor(epsilon / self._step)
        at = max(0, self._curve.shape[1] - 1 - below)
        falls = math.exp(epsilon - below * self._step) * float(self._weighted[0, at])
        return max(0.0, float(self._above[0, at]) - falls)


def _log(values: Floats) -> Floats:
    return np.log(np.maximum(values, SMALLEST))


class Upper(NamedTuple):
    """Epsilon at delta, infinite where delta is spent before; and delta at epsilon 0, the total variation."""

    epsilons: Floats
    variation: Floats


def upper_ends(spectra: Complexes, step: float, delta: float, beyond: Floats, tail: Floats, count: int) -> Upper:
    """Return the ends of each row, the spectrum of a sum of `count` losses, rounded up."""
    outside = beyond + tail + _rounding(count)
    left = delta * (1.0 - _RELATIVE) - outside
    tails = _window(spectra, step)
    found = tails.epsilons(np.maximum(left, 0.0), math.inf)
    variation = np.clip(tails.variation * (1.0 + _RELATIVE) + outside, 0.0, 1.0)
    return Upper(np.where(left > 0.0, found * (1.0 + _RELATIVE), math.inf), variation)


def lower_epsilons(spectra: Complexes, step: float, delta: float, beyond: Floats, tail: Floats, count: int) -> Floats:
    """Return epsilon of each row, rounded down."""
    found = _window(spectra, step).epsilons(delta * (1.0 + _RELATIVE) + beyond + tail + _rounding(count), 0.0)
    return found * (1.0 - _RELATIVE)


def _rounding(count: int) -> float:
    return _ROUNDING * count + _ROUNDING_ONCE


def _window(spectra: Complexes, step: float) -> Tails:
    half = spectra.shape[1] - 1
    return Tails(np.fft.irfft(spectra, n=2 * half, axis=1)[:, half - 1 : 0 : -1], step)


@dataclass(frozen=True)
class Composed:
    """Losses of several mechanisms together, weighed so that they are most exact near one delta.

    P has mass e^(log_scale - tilt l) weighed[i] at the loss l = (first + i) step; each of `weighed` may be off by
    `rounding`, absolutely and relative to itself, and the window leaves out at most `_TAIL` at either end.
    """

    step: float
    first: int
    weighed: Floats
    tilt: float
    log_scale: float
    count: int
    infinite: float
    slack: float
    rounding: float

    def delta_upper(self, epsilon: float) -> float:
        """Return at least delta at this epsilon of 0 or more."""
        return min(1.0, self.infinite + self._upper.delta(epsilon) * (1.0 + _RELATIVE))

    def epsilon_upper(self, delta: float) -> float:
        """Return at least the smallest epsilon of 0 or more with this delta; infinite where none is known."""
        left = delta * (1.0 - _RELATIVE) - self.infinite
        if left <= 0.0:
            return math.inf
        return float(self._upper.epsilons(np.array([left]), math.inf)[0]) * UP

    def epsilon_lower(self, delta: float) -> float:
        """Return at most the smallest epsilon with this delta."""
        unlikely = delta * _UNLIKELY
        given = np.array([delta * (1.0 + _RELATIVE) + unlikely + self.slack])
        found = float(self._lower.epsilons(given, 0.0)[0]) / UP
        return max(0.0, found - self._raised(unlikely))

    def _raised(self, unlikely: float) -> float:
        """Return by how much the sum of losses was raised, but for this probability."""
        c = self.step / -math.expm1(-self.step)
        mean = self.count * (c - 1.0 - math.log(c))
        return min(mean + self.step * math.sqrt(-self.count * math.log(unlikely) / 2.0), self.count * self.step)

    @cached_property
    def _upper(self) -> Tails:
        return self._tails(1.0)

    @cached_property
    def _lower(self) -> Tails:
        return self._tails(-1.0)

    def _tails(self, sign: float) -> Tails:
        """Return the curve with all errors added, or with all taken off."""
        last = max(0, self.first + len(self.weighed) - 1)
        places = np.arange(last + 1, 0, -1)  # one above the largest loss, where nothing is left
        masses = np.zeros(len(places))
        begin = max(0, 1 - self.first)
        kept = self.weighed[begin:] * (1.0 + sign * self.rounding) + sign * self.rounding
        masses[1 : 1 + len(kept)] = np.maximum(kept[::-1], 0.0)
        factors = np.exp(np.minimum(self.log_scale - self.tilt * self.step * places, _VANISHED))
        cut = 2.0 * _TAIL * np.exp(np.minimum(self.log_scale - self.tilt * self.step * (places - 1), _VANISHED))
        return Tails((masses * factors)[None], self.step, sign * cut)


def compose(parts: Sequence[tuple[Losses, int]], delta: float) -> Composed:
    """Return the sum of each of the losses as many times as said, for questions near this delta."""
    steps = {losses.step for losses, _ in parts}
    if len(steps) != 1 or min(times for _, times in parts) < 1:
        raise UsageError("Losses compose on one grid, and each at least once.")
    inside("delta", delta)
    step = steps.pop()
    tilt = min(_tilt(parts, delta), _TILT_MAX / step)
    log_scale = float(_log_moments(parts, np.array([tilt]))[0])
    low, high = _reach(parts, tilt, log_scale)
    start = math.floor(low / step)
    size = 1 << max(4, (math.ceil(high / step) - start).bit_length())
    if size > _TILTED_SIZE_MAX:
        raise UsageError("The step is too small for so many mechanisms.")
    total = np.ones(size // 2 + 1, dtype=np.complex128)
    for losses, times in parts:
        scaled = np.exp(losses.log_tilted(tilt) - losses.log_moments(np.array([tilt]))[0])
        folded = np.bincount(np.arange(len(scaled)) % size, weights=scaled, minlength=size)
        total *= power(np.fft.rfft(folded), times)
    origin = sum(losses.first * times for losses, times in parts)
    count = sum(times for _, times in parts)
    weighed = np.roll(np.maximum(np.fft.irfft(total, size), 0.0), (origin - start) % size)
    finite = sum(
        times * math.log1p(-losses.infinite) if losses.infinite < 1.0 else -math.inf for losses, times in parts
    )
    slack = sum(times * losses.slack for losses, times in parts)
    rounding = _TILTED_ROUNDING * count * math.log2(size)
    infinite = max(0.0, -math.expm1(finite))
    return Composed(step, start, weighed, tilt, log_scale, count, infinite, slack, rounding)


def _log_moments(parts: Sequence[tuple[Losses, int]], exponents: Floats) -> Floats:
    return np.asarray(sum(times * losses.log_moments(exponents) for losses, times in parts))


def _tilt(parts: Sequence[tuple[Losses, int]], delta: float) -> float:
    """Return where the best bound on delta by one moment of the losses meets delta at the smallest epsilon.

    For t = tilt it is M(t) e^(-t epsilon) t^t / (1+t)^(1+t) [CKS20, Proposition 12].
    """
    low, high = math.log(1e-4), math.log(1e5)
    for _ in range(3):
        places = np.linspace(low, high, 41)
        tilts = np.exp(places)
        worth = -tilts * np.log1p(1.0 / tilts) - np.log1p(tilts)
        at = int(np.argmin((_log_moments(parts, tilts) + worth - math.log(delta)) / tilts))
        low, high = float(places[max(at - 1, 0)]), float(places[min(at + 1, 40)])
    return math.exp((low + high) / 2.0)


def _reach(parts: Sequence[tuple[Losses, int]], tilt: float, log_scale: float) -> tuple[float, float]:
    """Return losses outside of which the weighed law has at most `_TAIL` on each side, by Chernoff's bound."""
    reach = -math.log(_TAIL)
    high = float(np.min((_log_moments(parts, tilt + _FAR) - log_scale + reach) / _FAR))
    low = float(np.max((log_scale - _log_moments(parts, tilt - _FAR) - reach) / _FAR))
    return low, high
