"""The users' data: made up from the seed, or read from a csv or npy file.

`load_data(spec, n)` gives a `DataSet`; `DataSet.user(i)` gives what user i contributes: `Bounded`
rows for numbers, `Categories` for histograms, `Examples` (`files/examples.py`) for learning.
Everything is checked when it is read: a cell that is missing, no number, not finite or no category
is an error that names file, line (of an npy file: row) and column, never the value.

Where directions are reported (privunit), rows are scaled to length 1; one of zeros has none and is refused.

Synthetic users have one value each, from a random stream of their own, so that user i's value does
not depend on how many users there are. A spec without a seed has the data of seed 0: the values are
made up and protect nobody, so that is no secret. Of a file with R rows user i of n has the rows
⌊iR/n⌋ to ⌊(i+1)R/n⌋ − 1. A value is one row, or a number where there is one column.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import DataPart, Spec
from p2pdp.files.combinations import unit_vectors
from p2pdp.files.tables import Moved, Table, moved_in, read_table, refuse_cells
from p2pdp.mechanisms.clipping import Bounded, Bounds, clip
from p2pdp.tasks.unit_mixture import DIMENSIONS, mixed_direction

_LEARNING_KEYS: Final = ("target", "rule", "target_range", "standardize", "unit_norm", "split_by")
_UNIT_BALL: Final = Bounds(-1.0, 1.0)  # of each number of a direction


@dataclass(frozen=True, slots=True)
class Categories:
    """One user's values: an int64 array of numbers from 0 to categories - 1."""

    rows: Any = field(repr=False)
    categories: int

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class DataSet:
    """What n users hold; `dimensions` is the number of numbers in one value.

    `moved` says of a file how many of its numbers are clipped, for whoever owns all of it and for nobody else.
    """

    n: int
    dimensions: int
    user_rows: Callable[[int], Any] = field(repr=False)
    moved: tuple[Moved, ...] = field(default=(), repr=False)

    def user(self, i: int) -> Any:
        if not 0 <= i < self.n:
            raise UsageError(f"There is no user {i}: users are numbered from 0 to {self.n - 1}.")
        return self.user_rows(i)


def load_data(spec: Spec, n: int) -> DataSet:
    """The data of this spec for n users."""
    data = spec.data
    if spec.run.protocol.endswith(".sgd"):
        from p2pdp.files.examples import examples_of_users

        return DataSet(n, *examples_of_users(spec, n, lambda i: _synthetic(spec, i)))
    for key in _LEARNING_KEYS:
        value = getattr(data, key)
        if key == "unit_norm" and unit_vectors(spec):
            continue
        if value is not None and value is not False:  # column 0 is a target too
            raise UsageError(f"[data] {key}: comes with learning tasks; {spec.run.protocol} cannot use it.")
    if data.kind == "unit_mixture":
        return DataSet(n, DIMENSIONS, lambda i: _of_mixture(spec, i, n))
    if data.kind not in ("csv", "npy"):
        return DataSet(n, 1, lambda i: _synthetic(spec, i))
    table = read_table(data)
    if len(table.rows) < n:
        raise UsageError(f"{table.path}: has {len(table.rows)} rows for {n} users; every user needs one at least.")
    refuse_cells(table, ~np.isfinite(table.rows), "is not a finite number")
    if spec.task.kind == "histogram":
        return _categories_of(table, spec.task.categories, n)
    if unit_vectors(spec):
        return _directions_of(table, n)
    rows = table.rows[:, 0] if len(table.columns) == 1 else table.rows
    bounds = _bounds(data)
    moved = moved_in(table.columns, (table.rows < bounds.low) | (table.rows > bounds.high))
    return DataSet(n, len(table.columns), lambda i: clip(rows[_own(i, n, len(rows))], bounds), moved)


def _own(i: int, n: int, rows: int) -> slice:
    return slice(i * rows // n, (i + 1) * rows // n)


def _bounds(data: DataPart) -> Bounds:
    if data.clip is None:
        raise UsageError("[data] clip: missing; numbers need bounds [low, high].")
    return Bounds(*data.clip)


def _checked_categories(categories: int | None) -> int:
    if categories is None:
        raise UsageError("[task] categories: missing; a histogram needs their number.")
    return categories


def _uniforms(spec: Spec, i: int, shape: tuple[int, ...]) -> Any:
    """User i's own random numbers."""
    name = f"{spec.data.kind} {spec.run.seed or 0} {i}"
    key = hashlib.blake2b(name.encode(), digest_size=16, person=b"p2pdp data").digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(key, "big"))).random(shape)


def _synthetic(spec: Spec, i: int) -> Bounded | Categories:
    """User i's one value; category k is drawn with a probability proportional to 1/(k + 1)."""
    first, second = _uniforms(spec, i, (2,)).tolist()
    if spec.data.kind == "categories":
        categories = _checked_categories(spec.task.categories)
        shares = np.cumsum(1 / np.arange(1, categories + 1))
        return _frozen_categories(np.searchsorted(shares[:-1], [first * shares[-1]], side="right"), categories)
    bounds = _bounds(spec.data)
    if spec.data.kind == "uniform":
        return clip([bounds.low + (bounds.high - bounds.low) * first], bounds)
    # Box and Muller's method: numpy's own normal draws may change from one release to the next.
    return clip([math.sqrt(-2 * math.log1p(-first)) * math.cos(2 * math.pi * second)], bounds)


def _of_mixture(spec: Spec, i: int, n: int) -> Bounded:
    first, second = _uniforms(spec, i, (2, DIMENSIONS))
    normals = np.sqrt(-2.0 * np.log1p(-first)) * np.cos(2.0 * np.pi * second)
    return clip(mixed_direction(i, n, normals)[None], _UNIT_BALL)


def _directions_of(table: Table, n: int) -> DataSet:
    if len(table.columns) < 2:
        raise UsageError("[data] columns: privunit reports directions in two dimensions or more, and this is one.")
    largest = np.abs(table.rows).max(axis=1)
    if np.any(largest == 0.0):
        row = int(np.argmin(largest))
        raise UsageError(f"{table.path} {table.unit} {table.lines[row]}: is all zeros, and so has no direction.")
    scaled = table.rows / largest[:, None]  # whose squares neither vanish nor grow beyond all numbers
    rows = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return DataSet(n, len(table.columns), lambda i: clip(rows[_own(i, n, len(rows))], _UNIT_BALL))


def _categories_of(table: Table, given: int | None, n: int) -> DataSet:
    categories = _checked_categories(given)
    if len(table.columns) != 1:
        raise UsageError(
            f"{table.path}: categories are in one column of these {len(table.columns)}; name it in [data] columns."
        )
    rows = table.rows
    unfit = (rows < 0) | (rows >= categories) | (rows != np.floor(rows))
    refuse_cells(table, unfit, f"is not a whole number from 0 to {categories - 1}")
    whole = rows[:, 0].astype(np.int64)
    return DataSet(n, 1, lambda i: _frozen_categories(whole[_own(i, n, len(whole))], categories))


def _frozen_categories(values: Any, categories: int) -> Categories:
    rows = np.array(values, dtype=np.int64)
    rows.setflags(write=False)
    return Categories(rows, categories)
