"""PrivUnit: reports of unit vectors [BDFKR18, Algorithm 1].

With probability p the report is uniform on the cap of unit vectors v with <v, u> >= threshold, else on the rest of the
sphere; divided by m = E<v, u> it is unbiased. A cap with the share q of the sphere makes it purely
epsilon-private with

    epsilon = ln(p / (1 - p)) + ln((1 - q) / q),

exactly: the first part is the coin's, the second the cap's. `split` gives the threshold for which m, and with it the
error 1/m^2 - 1 of one report, is best; the authors bound q instead, which wastes some of epsilon.

How: <v, u> has the density c (1 - t^2)^((d-3)/2), so (1 - t)/2 is Beta((d-1)/2, (d-1)/2). Its place in the cap, or in
the rest, is a quantile at a uniform number with 53 bits; the direction orthogonal to u is that of a Gaussian vector on
a fine grid. Coordinates are rounded to multiples of 2^-30, since the last bits of floats would tell more than v. That
53 bits, a fine grid and quantiles to about 1e-12 are as good as continuous ones is an assumption of a claim.
A dummy is uniform on the sphere, which weighs 0 on the average.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.draws import UNIFORM, Mechanism
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import randomized_response
from p2pdp.mechanisms.reporting.contract import MalformedReport, Randomizer, vectors
from p2pdp.mechanisms.rounding import positive, whole

_DIRECTION: Final = 2.0**40  # the scale of the Gaussian vector, in steps
_UNIT_BITS: Final = 30
_UNIT: Final = 2**_UNIT_BITS
_EPSILON_MAX: Final = 600.0
_COIN_MIN: Final = 1e-3  # of epsilon, that the coin gets at least
_MARGIN: Final = 1e-9  # of epsilon, for what the cap's share may be off
_UNIT_ERROR: Final = 1e-6
_STEPS: Final = 80
_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Split:
    """A cap and a coin; `length` is m, and `square` is E<v, u>^2."""

    threshold: float
    cap: float
    coin_epsilon: float
    cap_epsilon: float
    length: float
    square: float


def split(epsilon: float, dimensions: int) -> Split:
    """Return the best way to spend epsilon; coin_epsilon + cap_epsilon are at most epsilon."""
    if positive("epsilon", epsilon) > _EPSILON_MAX:
        raise UsageError(f"epsilon must be at most {_EPSILON_MAX:g} for privunit.")
    whole("The number of dimensions of unit vectors", dimensions, 2)
    low, high = 0.0, _threshold(epsilon * (1.0 - _COIN_MIN), dimensions)
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(_STEPS):  # golden sections: the length has one maximum
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if _split_at(left, epsilon, dimensions).length < _split_at(right, epsilon, dimensions).length:
            low = left
        else:
            high = right
    return _split_at((low + high) / 2.0, epsilon, dimensions)


def cap_share(threshold: float, dimensions: int) -> float:
    """Return the share of the sphere with <v, u> >= threshold."""
    from scipy.special import betainc

    half = (dimensions - 1.0) / 2.0
    return float(betainc(half, half, (1.0 - threshold) / 2.0))


def _threshold(cap_epsilon: float, dimensions: int) -> float:
    """Return where the cap has the share 1 / (1 + e^cap_epsilon)."""
    from scipy.special import betaincinv

    half = (dimensions - 1.0) / 2.0
    return max(0.0, 1.0 - 2.0 * float(betaincinv(half, half, 1.0 / (1.0 + math.exp(cap_epsilon)))))


def _split_at(threshold: float, epsilon: float, dimensions: int) -> Split:
    cap = cap_share(threshold, dimensions)
    cap_epsilon = max(0.0, math.log1p(-cap) - math.log(cap))
    coin_epsilon = max(epsilon * (1.0 - _MARGIN) - cap_epsilon, epsilon * _COIN_MIN * 0.5)
    chance = 1.0 / (1.0 + math.exp(-coin_epsilon))
    d = float(dimensions)
    log_density = math.lgamma(d / 2.0) - math.lgamma((d - 1.0) / 2.0) - 0.5 * math.log(math.pi)
    above = math.exp(log_density + (d - 1.0) / 2.0 * math.log1p(-(threshold**2))) / (d - 1.0)  # E[t; t in the cap]
    square = (cap + threshold * (d - 1.0) * above) / d  # E[t^2; t in the cap]
    inside, outside = chance / cap, (1.0 - chance) / (1.0 - cap)
    return Split(
        threshold,
        cap,
        coin_epsilon,
        cap_epsilon,
        (inside - outside) * above,
        inside * square + outside * (1.0 / d - square),
    )


class UnitReports(Randomizer):
    """Reports of unit vectors with this number of coordinates."""

    counted = False
    exponent = -_UNIT_BITS

    def __init__(self, dimensions: int, epsilon: float) -> None:
        self.split = split(epsilon, dimensions)
        self.width = self.outputs = dimensions
        self.report_bytes = _BYTES * dimensions
        gamma = randomized_response.gamma_of(self.split.coin_epsilon, 2)
        spent = randomized_response.epsilon_of(gamma, 2) + self.split.cap_epsilon
        self.epsilon = spent + epsilon * _MARGIN / 2.0
        self.needs = (
            (Mechanism("randomized_response", gamma, 2), ()),
            (UNIFORM, ()),
            (Mechanism("gaussian", _DIRECTION), (dimensions,)),
        )

    def __repr__(self) -> str:
        return f"UnitReports({self.width})"

    def applied(self, values: Any, drawn: Sequence[Any]) -> Ints:
        from scipy.special import betaincinv

        units = vectors(values)
        lengths = np.linalg.norm(units, axis=1, keepdims=True)
        if units.shape[1:] != (self.width,) or not np.all(np.abs(lengths - 1.0) <= _UNIT_ERROR):
            raise UsageError(f"A value must be a unit vector of {self.width} numbers; scale rows to unit length first.")
        units = units / lengths
        half = (self.width - 1.0) / 2.0
        uniform = ((np.asarray(drawn[1], dtype=np.int64) >> 11) + (2.0**52 + 0.5)) * 2.0**-53
        inside = np.asarray(drawn[0]) != 0  # kept or 1; 0 has the chance gamma / 2 = 1 - p
        share = np.where(inside, self.split.cap, 1.0 - self.split.cap) * uniform
        beyond = 2.0 * betaincinv(half, half, share)
        along = np.where(inside, 1.0 - beyond, beyond - 1.0)
        across = np.sqrt(beyond * (2.0 - beyond))  # of 1 - along^2 next to u the digits would be gone
        found = along[:, None] * units + across[:, None] * _orthogonal(units, np.asarray(drawn[2], dtype=np.float64))
        return _rounded(found)

    def dummies(self, count: int, drawn: Sequence[Any]) -> Ints:
        return _rounded(_unit(np.asarray(drawn[2], dtype=np.float64)))

    def weights(self, reports: Ints) -> Floats:
        return np.asarray(reports / (_UNIT * self.split.length))

    def value_squares(self, sums: Floats, squares: Floats, count: float) -> Floats:
        """Estimate from E w_k^2 = (u_k^2 a + (1 - u_k^2) b), a along u and b across it."""
        along = self.split.square / self.split.length**2
        across = (1.0 - self.split.square) / (self.width - 1.0) / self.split.length**2
        if along - across <= _UNIT_ERROR * across:  # nothing can be told, and beside the noise nothing matters
            return np.zeros(self.width)
        return np.asarray(np.clip((squares - count * across) / (along - across), 0.0, count))

    @property
    def dummy_moments(self) -> tuple[Floats, Floats]:
        return np.zeros(self.width), np.full(self.width, 1.0 / self.width / self.split.length**2)

    @property
    def typical_moments(self) -> tuple[Floats, Floats]:
        return self.dummy_moments  # of a direction that nobody knows

    def encoded(self, numbers: Ints) -> bytes:
        return numbers.astype(">i4").tobytes()

    def decoded(self, data: bytes) -> Ints:
        numbers = np.frombuffer(data, dtype=">i4").astype(np.int64)
        length = float(np.sum((numbers / _UNIT) ** 2))
        if abs(length - 1.0) > _UNIT_ERROR:
            raise MalformedReport("a report is no unit vector")
        return numbers


def _orthogonal(units: Floats, vectors: Floats) -> Floats:
    """Return the vectors' directions across the units, twice: nearly parallel ones lose digits the first time."""
    if units.shape[1] == 2:  # there are two such directions, and a vector may be parallel
        turned = np.stack((-units[:, 1], units[:, 0]), axis=1)
        return np.where(np.sum(vectors * turned, axis=1, keepdims=True) < 0.0, -turned, turned)
    for _ in range(2):
        vectors = _unit(vectors - units * np.sum(vectors * units, axis=1, keepdims=True))
    return vectors


def _unit(rows: Floats) -> Floats:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _rounded(rows: Floats) -> Ints:
    return np.rint(rows * _UNIT).astype(np.int64)
