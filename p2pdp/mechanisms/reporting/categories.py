"""Reports of one category of L: as it is (k-ary randomized response), in unary, or in binary.

    kary      the category, or with probability gamma a uniform one; epsilon = ln(1 + L (1 - gamma) / gamma)
    unary     L bits, a single one set: optimized unary encoding [WBLJ17]. The set bit becomes a
              fair coin, and each other bit is turned with probability 1/(e^epsilon + 1); two categories
              differ in two places, whose chances have the ratio e^epsilon together
    binary    the bits of the category's number, each answered by binary randomized response of epsilon / bits; two
              categories differ in all bits at most
    none      the category itself

Weights are unbiased for the vector with a single 1. A dummy is a report of category 0, as [LTT22, Algorithm 2]
has it, but in unary one of no category: no bit is set and each is turned as above, which weighs 0 on the average.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.draws import Mechanism
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms import randomized_response
from p2pdp.mechanisms.reporting.contract import NO_NEEDS, MalformedReport, Randomizer
from p2pdp.mechanisms.rounding import whole

_BYTE: Final = 8
_RESPONSE: Final = "randomized_response"


class _Categories(Randomizer):
    counted = True

    def __init__(self, categories: int) -> None:
        self.categories = self.outputs = whole("The number of categories", categories, 2)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.categories})"

    def dummies(self, count: int, drawn: Sequence[Any]) -> Ints:
        return self.applied(np.zeros(count, dtype=np.int64), drawn)

    def _checked(self, values: Any) -> Ints:
        found = np.asarray(values)
        if found.ndim != 1 or found.dtype.kind not in "iu" or np.any((found < 0) | (found >= self.categories)):
            raise UsageError(f"A category must be a whole number from 0 to {self.categories - 1}.")
        return found.astype(np.int64)

    @property
    def typical_moments(self) -> tuple[Floats, Floats]:
        """Return what a category's own report tells of all categories on average, by symmetry."""
        square = float(self.dummy_moments[1].mean())
        return np.full(self.categories, 1.0 / self.categories), np.full(self.categories, square)

    def value_squares(self, sums: Floats, squares: Floats, count: float) -> Floats:
        return np.asarray(np.clip(sums, 0.0, count))  # the squares of 0 and 1 are 0 and 1

    @property
    def least_variance(self) -> float:
        """Return the least variance of one category's weight; a dummy varies as a report of another category does."""
        mean, square = self.dummy_moments
        return max(0.0, float(np.min(square - mean**2)))


class KaryReports(_Categories):
    """Epsilon None stands for no noise."""

    def __init__(self, categories: int, epsilon: float | None) -> None:
        super().__init__(categories)
        self.gamma = 0.0 if epsilon is None else randomized_response.gamma_of(epsilon, categories)
        self.epsilon = math.inf if epsilon is None else randomized_response.epsilon_of(self.gamma, categories)
        self.needs = NO_NEEDS if epsilon is None else ((Mechanism(_RESPONSE, self.gamma, categories), ()),)
        self.width = 1
        self.report_bytes = -(-(categories - 1).bit_length() // _BYTE)

    def applied(self, values: Any, drawn: Sequence[Any]) -> Ints:
        kept = self._checked(values)
        return np.asarray(np.where(drawn[0] < 0, kept, drawn[0]) if drawn else kept)[:, None]

    def weights(self, reports: Ints) -> Floats:
        found = np.full((len(reports), self.categories), -self.gamma / self.categories)
        found[np.arange(len(reports)), reports[:, 0]] += 1.0
        return np.asarray(found / (1.0 - self.gamma))

    @property
    def dummy_moments(self) -> tuple[Floats, Floats]:
        named, other = 1.0 - self.gamma / self.categories, -self.gamma / self.categories
        chances = np.full(self.categories, self.gamma / self.categories)
        chances[0] += 1.0 - self.gamma
        squares = (chances * named**2 + (1.0 - chances) * other**2) / (1.0 - self.gamma) ** 2
        return _only_first(self.categories), squares

    def encoded(self, numbers: Ints) -> bytes:
        return int(numbers[0]).to_bytes(self.report_bytes, "big")

    def decoded(self, data: bytes) -> Ints:
        category = int.from_bytes(data, "big")
        if category >= self.categories:
            raise MalformedReport("a report names no category")
        return np.array([category])


class _Bits(_Categories):
    """Reports of bits, packed into bytes from the highest bit on; bits that fill up the last byte are 0."""

    def _sized(self, bits: int) -> None:
        self.width = bits
        self.report_bytes = -(-bits // _BYTE)

    def encoded(self, numbers: Ints) -> bytes:
        return np.packbits(numbers.astype(np.uint8)).tobytes()

    def decoded(self, data: bytes) -> Ints:
        bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8))
        if np.any(bits[self.width :]):
            raise MalformedReport("a report sets bits that it does not have")
        return bits[: self.width].astype(np.int64)


class UnaryReports(_Bits):
    def __init__(self, categories: int, epsilon: float) -> None:
        super().__init__(categories)
        gamma = randomized_response.gamma_of(epsilon, 2)
        self.turned = gamma / 2.0
        self.epsilon = randomized_response.epsilon_of(gamma, 2)
        self.needs = (
            (Mechanism(_RESPONSE, gamma, 2), (categories,)),
            (Mechanism(_RESPONSE, 1.0, 2), ()),
        )
        self._sized(categories)

    def applied(self, values: Any, drawn: Sequence[Any]) -> Ints:
        kept = self._checked(values)
        found = self.dummies(len(kept), drawn)
        found[np.arange(len(kept)), kept] = drawn[1]
        return found

    def dummies(self, count: int, drawn: Sequence[Any]) -> Ints:
        return np.maximum(np.asarray(drawn[0], dtype=np.int64), 0)

    def weights(self, reports: Ints) -> Floats:
        return np.asarray((reports - self.turned) / (0.5 - self.turned))

    @property
    def dummy_moments(self) -> tuple[Floats, Floats]:
        square = self.turned * (1.0 - self.turned) / (0.5 - self.turned) ** 2
        return np.zeros(self.categories), np.full(self.categories, square)

    @property
    def typical_moments(self) -> tuple[Floats, Floats]:
        share = 1.0 / self.categories
        own = (0.5 - self.turned + self.turned**2) / (0.5 - self.turned) ** 2  # of a fair coin
        other = float(self.dummy_moments[1][0])
        return np.full(self.categories, share), np.full(self.categories, share * own + (1.0 - share) * other)


class BinaryReports(_Bits):
    def __init__(self, categories: int, epsilon: float) -> None:
        super().__init__(categories)
        self._sized((categories - 1).bit_length())
        self.gamma = randomized_response.gamma_of(epsilon / self.width, 2)
        self.epsilon = randomized_response.epsilon_of(self.gamma, 2) * self.width * (1.0 + 2.0**-50)
        self.needs = ((Mechanism(_RESPONSE, self.gamma, 2), (self.width,)),)
        self._codes = np.arange(categories)[:, None] >> np.arange(self.width)[::-1] & 1

    def applied(self, values: Any, drawn: Sequence[Any]) -> Ints:
        return np.asarray(np.where(drawn[0] < 0, self._codes[self._checked(values)], drawn[0]), dtype=np.int64)

    def weights(self, reports: Ints) -> Floats:
        """Return the product over bits of an unbiased number for whether that bit is as in the category."""
        found = np.ones((len(reports), self.categories))
        for bit in range(self.width):
            alike = reports[:, bit, None] == self._codes[None, :, bit]
            found *= (alike - self.gamma / 2.0) / (1.0 - self.gamma)
        return found

    @property
    def dummy_moments(self) -> tuple[Floats, Floats]:
        alike, other = (1.0 - self.gamma / 2.0) / (1.0 - self.gamma), -self.gamma / 2.0 / (1.0 - self.gamma)
        chances = np.where(self._codes == 0, 1.0 - self.gamma / 2.0, self.gamma / 2.0)
        squares = np.prod(chances * alike**2 + (1.0 - chances) * other**2, axis=1)
        return _only_first(self.categories), np.asarray(squares)


def _only_first(categories: int) -> Floats:
    found = np.zeros(categories)
    found[0] = 1.0
    return found
