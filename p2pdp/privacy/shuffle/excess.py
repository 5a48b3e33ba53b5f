"""Mean positive parts of sums of many independent values: delta of a shuffle too large to list its outcomes.

With independent others, delta of a shuffle is a factor times E[(g_1 + ... + g_n)+] with equally distributed g_i
[BBGN19, Theorem 5.1]: each of n elements is one that tells nothing (value
`centre`), says u's one value (`first` > centre) or its other one (`second` < centre), each with chance `share`,
or, in the blanket, is uniform but says neither (value `rest`).

`excess_of_three` has no rest and is exact up to rounding, by one sum over how many say the other value.
`excess_of_four` is an upper end: values are moved to a grid by splitting each between its neighbours so that means
stay, which only raises the mean of any convex function. The sum is then a power of a Fourier transform, of the
distribution tilted by e^(t value), so that what matters stands in its middle and no digits are lost in a tail.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.privacy.pld.sums import power
from p2pdp.privacy.shuffle.blanket import binomial

_ROUNDING: Final = 1e-11  # of sums of thousands of binomial masses
_REACH: Final = 12.0  # tilted standard deviations on either side of the grid
_HALVINGS: Final = 24
_SIZE_MAX: Final = 1 << 21


def excess_of_three(
    n: int, share: float, centre: float, first: float, second: float, cut: float
) -> tuple[float, float]:
    """Return [lower, upper] of E[(a first + b second + (n - a - b) centre)+] with centre <= 0.

    The caller owes a `second` at least as far below the centre as `first` is above it. Given b, a is Bin(n - b, q) and
    counts from a threshold t(b) > b on, which rises with b. Its tail at t(b) is that at t(b + 1) plus the
    binomial masses between: sums of positive terms, from the largest b down, where the tail is as good as nothing.
    """
    gain, loss = first - centre, centre - second
    if not gain > 0.0:
        return 0.0, 0.0
    law = binomial(n - 1, share, cut)  # beside one element that says the value in question
    begin, end = max(0, law.first - 1), law.first + len(law.masses)
    b = np.arange(begin, min(end, n - 1) + 1)
    due = b * loss - n * centre
    with np.errstate(over="ignore"):
        places = np.minimum(due / gain, float(end))
    t = np.floor(places).astype(np.int64) + 1
    kept = slice(0, int(np.count_nonzero(t <= end)) + 1)  # at the first b beyond, tails are as good as nothing
    b, due, t = b[kept], due[kept], t[kept]
    q = share / (1.0 - share)
    others = n - b
    at_edge = binomial_masses(others - 1, q, t - 1)
    steps = np.diff(t)  # how many thresholds lie between b and b + 1
    owner = np.repeat(np.arange(1, len(b)), steps)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(steps) - steps, steps)
    between = np.zeros(len(b))
    masses = binomial_masses(others[owner], q, t[owner - 1] + number)
    between[1:] = np.bincount(owner, weights=masses, minlength=len(b))[1:]
    gained = (between + q * at_edge)[:0:-1]
    tails = np.concatenate(([0.0], np.cumsum(gained)))[::-1]  # of Bin(n - b - 1, q) at t(b)
    weights = np.where(t <= end, binomial_masses(np.full(len(b), n), share, b), 0.0)
    worth = due - gain * q * others
    plus = float(np.sum(weights * at_edge * q * (gain * others - due)))  # no @: its threads wait for busy processors
    minus = float(np.sum(weights * tails * worth))
    rounded = float(np.sum(weights * (at_edge * q + tails) * (gain * others + np.abs(due))))  # differences of these
    error = _ROUNDING * (plus + abs(minus)) + 1e-15 * rounded
    unseen = cut * float(np.sum(weights * np.abs(worth)))  # a tail at the last b that was taken for nothing
    return max(0.0, plus - minus - error - unseen), plus - minus + error + 4.0 * cut * gain * n * share


def binomial_masses(trials: object, chance: float, counts: object) -> Floats:
    """Return masses of Bin(trials, chance) at counts, to about fourteen digits (Loader 2000)."""
    m, x = np.asarray(trials, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    inside = (x > 0.0) & (x < m)
    xs, ms = np.where(inside, x, 1.0), np.where(inside, m, 2.0)
    logs = _stirling(ms) - _stirling(xs) - _stirling(ms - xs)
    logs = logs - _deviance(xs, ms * chance) - _deviance(ms - xs, ms * (1.0 - chance))
    with np.errstate(under="ignore"):
        middle = np.exp(logs) * np.sqrt(ms / (2.0 * math.pi * xs * (ms - xs)))
        none, full = np.exp(m * math.log1p(-chance)), np.exp(m * math.log(chance))
    found: Floats = np.where(inside, middle, np.where(x == 0.0, none, np.where(x == m, full, 0.0)))
    return found


_EXACT: Final = np.array(
    [math.lgamma(k + 1.0) - (k * math.log(k) - k + 0.5 * math.log(2.0 * math.pi * k)) for k in range(1, 16)]
)


def _stirling(x: Floats) -> Floats:
    """Return the logarithm of x!, less Stirling's formula."""
    square = x * x
    series = (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square) / x
    found: Floats = np.where(x <= len(_EXACT), _EXACT[np.minimum(x, len(_EXACT)).astype(np.int64) - 1], series)
    return found


def _deviance(x: Floats, mean: Floats) -> Floats:
    """Return x ln(x / mean) + mean - x, without cancellation where x is near the mean."""
    off = (x - mean) / mean
    found: Floats = mean * ((1.0 + off) * np.log1p(off) - off)
    return found


class Tilted:
    """A distribution of few values, tilted by an exponent: by default so that a mean below 0 becomes about 0."""

    def __init__(self, values: Floats, chances: Floats, exponent: float | None = None) -> None:
        self.values = values
        self.chances = chances
        self.exponent = self._exponent() if exponent is None else exponent
        self.log_moment, self.tilted = self.at(self.exponent)
        self.deviation = math.sqrt(float(self.tilted @ values**2) - float(self.tilted @ values) ** 2)

    def at(self, exponent: float) -> tuple[float, Floats]:
        """Return the logarithm of E[e^(t value)], and the chances in proportion to e^(t value)."""
        powers = exponent * self.values
        peak = float(powers.max())
        with np.errstate(under="ignore"):
            parts = self.chances * np.exp(powers - peak)
        return peak + math.log(float(parts.sum())), parts / parts.sum()

    def _exponent(self) -> float:
        low, high = 0.0, 1.0 / float(self.values.max())
        if float(self.chances @ self.values) >= 0.0:
            return 0.0
        while float(self.at(high)[1] @ self.values) < 0.0:
            high *= 2.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            low, high = (middle, high) if float(self.at(middle)[1] @ self.values) < 0.0 else (low, middle)
        return high


def excess_of_four(n: int, share: float, values: tuple[float, float, float, float], blanket: float, size: int) -> float:
    """Bound E[(sum of n)+] from above; values of centre, first, second, rest, on a grid of about `size` points.

    The chances are 1 - blanket, share, share and blanket - 2 share; the centre is 0.
    """
    first = values[1]
    if not first > 0.0:
        return 0.0
    chances = np.array([1.0 - blanket, share, share, max(0.0, blanket - 2.0 * share)])
    free = Tilted(np.array(values), chances)
    reach = _REACH * math.sqrt(n) * free.deviation + 4.0 * (first - values[2])
    step = first / max(1.0, math.floor(first * size / (2.0 * reach)))
    size = 1 << max(1, math.ceil(math.log2(2.0 * reach / step)))
    if size > _SIZE_MAX:
        return n * share * first
    offsets = np.array(values) / step
    below = np.floor(offsets)
    below[1] = round(offsets[1])
    part = np.maximum(offsets - below, 0.0)
    part[:2] = 0.0
    places = np.concatenate((below, below[2:] + 1.0)).astype(np.int64)
    on_grid = Tilted(
        np.asarray(places * step, dtype=np.float64),
        np.concatenate((chances * (1.0 - part), (chances * part)[2:])),
        free.exponent,
    )
    spectrum = np.fft.rfft(np.bincount(places % size, weights=on_grid.tilted, minlength=size))
    masses = np.fft.irfft(power(spectrum, n), size)
    sums = step * np.arange(1, size // 2)
    t = on_grid.exponent
    with np.errstate(under="ignore"):
        inside = float((sums * np.exp(n * on_grid.log_moment - t * sums)) @ np.maximum(masses[1 : size // 2], 0.0))
    rounding = 1e-9 + n * 2.0**-50
    return inside * (1.0 + rounding) + _beyond(n, on_grid, float(sums[-1]))


def _beyond(n: int, law: Tilted, end: float) -> float:
    """Bound E[S; S > end] by end e^(-t end) E[e^(t S)] for each t of at least 1/end (Chernoff)."""
    most = end / (n * law.deviation**2)
    found = math.inf
    for part in (0.2, 0.4, 0.6, 0.8, 1.0):
        t = max(law.exponent + part * most, 1.0 / end)
        power = n * law.at(t)[0] - t * end
        found = min(found, end * math.exp(min(power, 700.0)))
    return found
