"""Sums of independent losses on one grid, and the epsilon that goes with each sum.

Losses of gaps add up, so their distributions are convolved: spectra (discrete Fourier transforms) multiply, and
their logarithms add, which lets many sums share most of their work. A window holds only part of all losses; what lies
outside is bounded by Chernoff's inequality over the moments in `Moments` and moves delta the pessimistic way,
and so do infinite losses and the rounding of the transforms.

Where delta is so small that rounding drowns it, the upper end is that of the moments alone: delta is at most
e^(-t epsilon) E[e^(t L)] t^t / (1 + t)^(1 + t), the conversion of [CKS20, Proposition 12].
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from p2pdp.accounting.hidden_path.losses import Losses
from p2pdp.core.arrays import Complexes, Floats, Ints

SIZE_MIN: Final = 256
SIZE_MAX: Final = 1 << 17
_SMALLEST: Final = 1e-290  # what must have a logarithm counts as at least this
_ROUNDING: Final = 2e-16  # of delta, for each loss in a sum; three to ten times what was measured
_ROUNDING_ONCE: Final = 2e-15
_VANISHED: Final = 700.0  # the exponential of its negative is none any more
_RELATIVE: Final = 1e-9  # what sums of many rounded masses can be off, relative to themselves
_CUT: Final = 1e-4  # of delta: the mass that a window may leave out


def spectrum(losses: Losses, size: int) -> Complexes:
    """Of losses in a window of `size` grid points round 0; those outside come in at its other end."""
    places = np.arange(losses.first, losses.first + len(losses.masses)) % size
    return np.fft.rfft(np.bincount(places, weights=losses.masses, minlength=size))


def log_spectrum(losses: Losses, size: int) -> Complexes:
    found = spectrum(losses, size)
    found[np.abs(found) < _SMALLEST] = _SMALLEST
    return np.log(found)


class Moments:
    """The exponents t at which log E[e^(t L)] is taken, of either sign."""

    def __init__(self, scale_min: float, scale_max: float) -> None:
        self.exponents = np.geomspace(0.3 / scale_max, 40.0 / scale_min, 32)

    def of(self, losses: Losses, step: float, sign: float = 1.0) -> Floats:
        places = step * np.arange(losses.first, losses.first + len(losses.masses))
        powers = sign * self.exponents[:, None] * places
        peaks = powers.max(axis=1)
        with np.errstate(under="ignore"):
            found: Floats = peaks + np.log(np.maximum(np.exp(powers - peaks[:, None]) @ losses.masses, _SMALLEST))
        return found

    def log_tail(self, moments: Floats, end: Floats) -> Floats:
        """The logarithm of a bound of the mass beyond `end`, for each row of log moments."""
        found: Floats = (moments - self.exponents * end[:, None]).min(axis=1)
        return found

    def size(self, moments: Floats, delta: float, step: float) -> Ints:
        """How large a window each sum needs, a power of 2."""
        ends = ((moments - math.log(delta * _CUT)) / self.exponents).min(axis=1)
        sizes = np.clip(2.0 * np.maximum(ends, 0.0) / step + 2.0, SIZE_MIN, SIZE_MAX)
        powers: Ints = np.int64(1) << np.ceil(np.log2(sizes)).astype(np.int64)
        return powers

    def epsilon(self, moments: Floats, delta: Floats) -> Floats:
        """An upper end from the moments alone."""
        t = self.exponents
        with np.errstate(divide="ignore"):
            log_delta = np.log(np.maximum(delta, 0.0))
        found = (moments + t * np.log(t) - (1.0 + t) * np.log1p(t) - log_delta[:, None]) / t
        epsilons: Floats = np.maximum(found.min(axis=1), 0.0)
        return epsilons


class Upper(NamedTuple):
    """Epsilon at delta, infinite where delta is spent before; and delta at epsilon 0, the total variation."""

    epsilons: Floats
    variation: Floats


def upper_ends(spectra: Complexes, step: float, delta: float, beyond: Floats, tail: Floats, count: int) -> Upper:
    """Of each row, the spectrum of a sum, rounded up."""
    outside = beyond + tail + _rounding(count)
    left = delta * (1.0 - _RELATIVE) - outside
    found, at_zero = _epsilons(spectra, step, np.maximum(left, 0.0), math.inf)
    variation = np.clip(at_zero * (1.0 + _RELATIVE) + outside, 0.0, 1.0)
    return Upper(np.where(left > 0.0, found * (1.0 + _RELATIVE), math.inf), variation)


def upper_epsilons(spectra: Complexes, step: float, delta: float, beyond: Floats, tail: Floats, count: int) -> Floats:
    return upper_ends(spectra, step, delta, beyond, tail, count).epsilons


def lower_epsilons(spectra: Complexes, step: float, delta: float, beyond: Floats, tail: Floats, count: int) -> Floats:
    """The same rounded down."""
    found, _ = _epsilons(spectra, step, delta * (1.0 + _RELATIVE) + beyond + tail + _rounding(count), 0.0)
    return found * (1.0 - _RELATIVE)


def _rounding(count: int) -> float:
    return _ROUNDING * count + _ROUNDING_ONCE


def _epsilons(spectra: Complexes, step: float, delta: Floats, outside: float) -> tuple[Floats, Floats]:
    """Where the curve of each sum falls to its delta, `outside` where it does not within the window; its value at 0.

    Between two grid points the curve is A - e^(epsilon - x) W, A the mass above the lower point x and W the same
    mass weighted with e^(x - loss).
    """
    half = spectra.shape[1] - 1
    masses = np.fft.irfft(spectra, n=2 * half, axis=1)[:, half - 1 : 0 : -1]  # the largest loss first
    above = np.cumsum(masses, axis=1)
    weighted = masses * math.exp(-step)
    span = 1
    while span < half and span * step < _VANISHED:  # each round takes in twice as many larger losses
        weighted[:, span:] += math.exp(-span * step) * weighted[:, :-span].copy()
        span *= 2
    curve = above - weighted  # at 0, step, 2 step ... from the end on
    over = np.count_nonzero(curve > delta[:, None], axis=1)  # grid points, counted from 0, at which delta is exceeded
    rows, last = np.arange(len(spectra)), masses.shape[1] - 1
    at = np.clip(last - over + 1, 0, last)
    logs = (np.log(np.maximum(part, _SMALLEST)) for part in (above[rows, at] - delta, weighted[rows, at]))
    found = (over - 1) * step + np.clip(np.subtract(*logs), 0.0, step)
    return np.where(over == 0, 0.0, np.where(over > last, outside, found)), curve[:, last]
