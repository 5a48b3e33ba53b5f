"""Local randomizers turn one user's value into one report, and reports into estimates over all values.

A `Randomizer` is public and never changes. It takes its randomness from `draws.noise` only, always by the same draws in
the same order (`needs`), whatever the value and also for a dummy, so that what a ledger records of them tells nothing.
A report is a few whole numbers and has one length in bytes, `report_bytes`. A dummy is a report of nobody's value
[LTT22, Algorithm 2]: it has that length too, and its mean is known.

Guarantee: `epsilon` is pure and rounded up, for replacing the value by any other; infinite where nothing is noised,
None where no pure epsilon exists (Gaussian noise). `weights` turns reports into numbers whose mean is the value
(for categories: a vector with a single 1), over all that chance decides; estimates are sums of these
(`report_estimates`). A report's text shows no number.

The caller gives values within what the randomizer was made for; others are refused without being quoted. Bytes of a
peer that are no report raise `MalformedReport`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.draws import Draws, Mechanism, Sampler, Shape

NO_NEEDS: Final[tuple[tuple[Mechanism, Shape], ...]] = ()


class MalformedReport(Exception):
    """Bytes that are no report of this randomizer."""


class Report(NamedTuple):
    """The numbers of one report, as small as they are: a category, bits, grid integers, coordinates."""

    numbers: tuple[int, ...]

    def __repr__(self) -> str:
        return f"Report({len(self.numbers)} numbers)"


class Randomizer(ABC):
    """The interface of every local randomizer; reports of many users are int64 arrays with a row for each."""

    needs: tuple[tuple[Mechanism, Shape], ...]  # the draws of one report or dummy
    epsilon: float | None
    width: int  # numbers of a report
    outputs: int  # numbers of a weight
    counted: bool  # whether the estimate is the sum of the values, as of counts, and not their mean
    report_bytes: int
    exponent = 0  # a number of a report stands for so many times 2^exponent

    @abstractmethod
    def applied(self, values: Any, drawn: Sequence[Any]) -> Ints:
        """Return reports of these values, one row each; `drawn` has an array for each of `needs`, a row for each."""

    @abstractmethod
    def dummies(self, count: int, drawn: Sequence[Any]) -> Ints:
        """Return so many dummies, from the same draws."""

    @abstractmethod
    def weights(self, reports: Ints) -> Floats:
        """Return an unbiased number (or vector, a row) for the value of each report."""

    @abstractmethod
    def value_squares(self, sums: Floats, squares: Floats, count: float) -> Floats:
        """Return the sum of the squared values, estimated from the sums of weights and of their squares."""

    @property
    def least_variance(self) -> float:
        """Return what the weight of each report varies by at least, whatever the value; 0 where that is not used."""
        return 0.0

    @property
    @abstractmethod
    def dummy_moments(self) -> tuple[Floats, Floats]:
        """Return the mean of a dummy's weight, and of its square."""

    @property
    @abstractmethod
    def typical_moments(self) -> tuple[Floats, Floats]:
        """Return the mean of a report's weight and of its square, if all values are equally likely."""

    @abstractmethod
    def encoded(self, numbers: Ints) -> bytes:
        """Return the bytes of one report, `report_bytes` of them."""

    @abstractmethod
    def decoded(self, data: bytes) -> Ints:
        """Return the numbers in so many bytes; raise `MalformedReport` where they are no report's."""

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        return tuple(mechanism for mechanism, _ in self.needs)

    def draw(self, draws: Draws) -> tuple[Any, ...]:
        """Draw all randomness of one report or dummy."""
        return tuple(draws.noise(mechanism, shape) for mechanism, shape in self.needs)

    def report(self, value: Any, randomness: Sequence[Any]) -> bytes:
        """Return one user's report as bytes."""
        return self.encoded(self._one(value, randomness))

    def dummy(self, randomness: Sequence[Any]) -> bytes:
        """Return a report of nobody's value as bytes."""
        return self.encoded(self.dummies(1, _stacked(randomness))[0])

    def randomize(self, value: Any, draws: Draws) -> Report:
        """Return one user's report as numbers."""
        return _report(self._one(value, self.draw(draws)))

    def _one(self, value: Any, randomness: Sequence[Any]) -> Ints:
        found: Ints = self.applied(np.array([value]), _stacked(randomness))[0]
        return found

    def encode(self, report: Report) -> bytes:
        return self.encoded(np.array(report.numbers, dtype=np.int64))

    def decode(self, data: bytes) -> Report:
        if len(data) != self.report_bytes:
            raise MalformedReport("the bytes are not as many as those of a report")
        return _report(self.decoded(data))


def rows_of(reports: Sequence[Report]) -> Ints:
    """Return many reports as one array."""
    return np.array([report.numbers for report in reports], dtype=np.int64)


def vectors(values: Any) -> Floats:
    """Return numbers, or rows of them, as rows."""
    rows = np.asarray(values, dtype=np.float64)
    return rows[:, None] if rows.ndim == 1 else rows


def drawn_of(needs: Sequence[tuple[Mechanism, Shape]], count: int, sampler: Sampler) -> list[Any]:
    """Return the draws of many reports at once, for simulations without ledgers."""
    if count == 0:
        return [np.zeros((0, *shape), dtype=np.int64) for _, shape in needs]
    return [np.array(sampler.batch(mechanism, shape, count)) for mechanism, shape in needs]


def _stacked(randomness: Sequence[Any]) -> list[Any]:
    return [np.array([drawn]) for drawn in randomness]


def _report(numbers: Ints) -> Report:
    return Report(tuple(numbers.tolist()))
