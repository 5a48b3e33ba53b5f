"""The users' data: made up from the seed, read from a file, or given from Python (`files/given.py`).

`load_data(spec, n)` returns a `DataSet`; `DataSet.user(i)` returns what user i contributes: `Bounded` rows for numbers,
`Categories` for histograms, `Examples` for learning. Everything is checked when it is read: a cell that is missing, no
number, not finite or no category is an error that names file, line (of an npy file: row) and column, never the value.

Synthetic users have one value each, from a random stream of their own, so that user i's value does not depend on how
many users there are. A spec without a seed has the data of seed 0: the values are made up and protect nobody, so that
is no secret.

Of a file with R rows user i of n has the rows ⌊iR/n⌋ to ⌊(i+1)R/n⌋ − 1. A value is one row, or a number where there is
one column. Where directions are reported (privunit), rows are scaled to length 1; a row of zeros is refused.

Rows to learn from have features and a target. Columns are chosen (without `target` and `split_by`, unless they are
named), standardized, clipped number by number and scaled to unit length, in this order and as far as the spec says;
then a 1 is added for the intercept. Standardizing follows from the spec alone: declared public ranges, `{ low, high }`,
are mapped to -1 and 1, with what lies outside moved to the ends; `{ mean, deviation, epsilon, delta }` holds estimates
that were made privately, and their cost is added to every claim. Nothing is ever taken from the pooled data.

The target is a number, or with `rule`, a comparison with a public threshold, 1 where it holds and -1 elsewhere; for
logistic regression it may be 0 and 1, or -1 and 1. `target_range` maps a numeric target to -1 and 1.

With `split_by`, or `partition = "by"`, all rows that are alike in that column are one user's, and if there are more
kinds than users, consecutive kinds share one. With `partition = "dirichlet"` rows are dealt out class by class
(`files/partition.py`). `[task] test` keeps a share of each user's own rows out of learning: row j of a user if the
whole part of (j + 1) share is above that of j share.
"""

from __future__ import annotations

import hashlib
import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Bools, Floats, Ints
from p2pdp.core.errors import UsageError
from p2pdp.core.spec import REAL_DATA, DataPart, Spec
from p2pdp.files.checks import unit_vectors
from p2pdp.files.partition import dealt_out
from p2pdp.files.tables import Moved, Table, chosen_columns, moved_in, place_of, read_table, refuse_cells, source_of
from p2pdp.mechanisms.clipping import Bounded, Bounds, clip
from p2pdp.protocols.learning import FEATURE_MAX, dimension_of, has_intercept, norm_bound
from p2pdp.tasks.examples import Examples, examples_of
from p2pdp.tasks.unit_mixture import DIMENSIONS, mixed_direction

_LEARNING_KEYS: Final = ("target", "rule", "target_range", "standardize", "unit_norm", "split_by")
_UNIT_BALL: Final = Bounds(-1.0, 1.0)  # bounds of each number of a direction


@dataclass(frozen=True, slots=True)
class Categories:
    """One user's values: an int64 array of numbers from 0 to categories - 1."""

    rows: Any = field(repr=False)
    categories: int

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class DataSet:
    """The data of n users; `dimensions` is the number of numbers in one value.

    `moved` tells the owner of a whole file, and nobody else, how many of its numbers are clipped.
    """

    n: int
    dimensions: int
    user_rows: Callable[[int], Any] = field(repr=False)
    moved: tuple[Moved, ...] = field(default=(), repr=False)

    def user(self, i: int) -> Any:
        if not 0 <= i < self.n:
            raise UsageError(f"There is no user {i}: users are numbered from 0 to {self.n - 1}.")
        return self.user_rows(i)

    @property
    def stated(self) -> tuple[int, ...]:
        """Return how many rows each user has, which the users state where the unit is a record."""
        return tuple(len(self.user(i)) for i in range(self.n))


def load_data(spec: Spec, n: int) -> DataSet:
    """Load the data of this spec for n users."""
    data = spec.data
    if spec.run.protocol.endswith(".sgd"):
        from p2pdp.files.data import examples_of_users

        return DataSet(n, *examples_of_users(spec, n, lambda i: _synthetic(spec, i)))
    for key in _LEARNING_KEYS:
        value = getattr(data, key)
        if key == "unit_norm" and unit_vectors(spec):
            continue
        if value is not None and value is not False:  # column 0 is a target too
            raise UsageError(f"[data] {key}: comes with learning tasks; {spec.run.protocol} cannot use it.")
    if data.kind == "unit_mixture":
        return DataSet(n, DIMENSIONS, lambda i: _of_mixture(spec, i, n))
    if data.kind not in REAL_DATA:
        return DataSet(n, 1, lambda i: _synthetic(spec, i))
    table = read_table(data)
    table.check_users(n)
    refuse_cells(table, ~np.isfinite(table.rows), "is not a finite number")
    if spec.task.kind == "histogram":
        return _categories_of(table, spec.task.categories, n)
    if unit_vectors(spec):
        return _directions_of(table, n)
    rows = table.rows[:, 0] if len(table.columns) == 1 else table.rows
    bounds = _bounds(data)
    moved = moved_in(table.columns, (table.rows < bounds.low) | (table.rows > bounds.high))
    return DataSet(n, len(table.columns), lambda i: clip(rows[table.own(i, n)], bounds), moved)


def _bounds(data: DataPart) -> Bounds:
    if data.clip is None:
        raise UsageError("[data] clip: missing; numbers need bounds [low, high].")
    return Bounds(*data.clip)


def _checked_categories(categories: int | None) -> int:
    if categories is None:
        raise UsageError("[task] categories: missing; a histogram needs their number.")
    return categories


def _uniforms(spec: Spec, i: int, shape: tuple[int, ...]) -> Any:
    """Return user i's own random numbers."""
    name = f"{spec.data.kind} {spec.run.seed or 0} {i}"
    key = hashlib.blake2b(name.encode(), digest_size=16, person=b"p2pdp data").digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(key, "big"))).random(shape)


def _synthetic(spec: Spec, i: int) -> Bounded | Categories:
    """Return user i's one value; category k is drawn with a probability proportional to 1/(k + 1)."""
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
        raise UsageError(f"{table.row(row)}: is all zeros, and so has no direction.")
    scaled = table.rows / largest[:, None]  # so that squares neither vanish nor overflow
    rows = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return DataSet(n, len(table.columns), lambda i: clip(rows[table.own(i, n)], _UNIT_BALL))


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
    return DataSet(n, 1, lambda i: _frozen_categories(whole[table.own(i, n)], categories))


def _frozen_categories(values: Any, categories: int) -> Categories:
    rows = np.array(values, dtype=np.int64)
    rows.setflags(write=False)
    return Categories(rows, categories)


_COMPARISONS: Final = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
}  # fmt: skip


def examples_of_users(
    spec: Spec, n: int, synthetic: Callable[[int], Any]
) -> tuple[int, Callable[[int], Examples], tuple[Moved, ...]]:
    """Return the length of a model, each user's examples, and what was moved into its bounds.

    No rule looks at the rows of several users together: an answer to that would tell something of all of them.
    """
    data = spec.data
    if data.kind not in REAL_DATA:  # one number each
        bound = norm_bound(data, 1, intercept=False)
        return 1, lambda i: examples_of(np.reshape(synthetic(i).rows, (1, 1)), np.zeros(1), bound), ()
    table, with_target = _read(data)
    columns = len(table.columns) - with_target
    if columns == 0:
        raise UsageError(f"{table.path}: has no column but the target; add a column of features.")
    owners = _owners(data, table, n) if data.partition != "dirichlet" else None
    refuse_cells(table, ~np.isfinite(table.rows), "is not a finite number")
    targets = _targets(spec, table) if with_target else np.zeros(len(table.rows))
    if owners is None:
        table.check_users(n)
        assert data.alpha is not None
        owners = dealt_out(targets, n, data.alpha, spec.run.seed or 0)
    features, clipped = _features(data, table, columns)
    moved = moved_in(table.columns, clipped)
    if with_target and data.target_range is not None:
        low, high = data.target_range
        raw = table.rows[:, columns:]
        moved += moved_in(table.columns[columns:], (raw < low) | (raw > high))
    intercept = has_intercept(spec)
    if intercept:
        features = np.column_stack([features, np.ones(len(features))])
    bound = norm_bound(data, columns, intercept=intercept)
    share = spec.task.test or 0.0
    if share and all(len(own) * share < 1.0 for own in owners):
        raise UsageError(f"[task] test: no user has so many rows that {share:g} of them makes one; raise the share.")

    def user(i: int) -> Examples:
        own = owners[i]
        kept = _is_test(len(own), share)
        learned, tested = own[~kept], own[kept]
        test = examples_of(features[tested], targets[tested], bound) if len(tested) else None
        return examples_of(features[learned], targets[learned], bound, int(clipped[own].sum()), test)

    return dimension_of(spec, features.shape[1]), user, moved


def _read(data: DataPart) -> tuple[Table, bool]:
    """Read the features, and the target last if there is one."""

    def choose(names: Sequence[str | int]) -> tuple[int, ...]:
        path = source_of(data)
        target = None if data.target is None else place_of(data.target, names, path, "target")
        split = None if data.groups is None else place_of(data.groups[1], names, path, data.groups[0])
        features = chosen_columns(data, names)
        if data.columns is None:
            features = tuple(place for place in features if place not in (target, split))
        elif target in features:
            raise UsageError(f"[data] columns: the target {data.target} cannot be a feature too; leave it out.")
        return features if target is None else (*features, target)

    return read_table(data, choose), data.target is not None


def _owners(data: DataPart, table: Table, n: int) -> list[Ints]:
    """Return the rows of each user."""
    if table.groups is None:
        table.check_users(n)
        rows = np.arange(len(table.rows))  # once, as each slice of an array keeps all of it in memory
        return [rows[table.own(i, n)] for i in range(n)]
    kinds = {kind: number for number, kind in enumerate(sorted(set(table.groups), key=_in_order))}
    if len(kinds) < n:
        assert data.groups is not None
        raise UsageError(f"[data] {data.groups[0]}: {table.path} has {len(kinds)} kinds of rows for {n} users.")
    owner = np.array([kinds[kind] * n // len(kinds) for kind in table.groups])
    return np.split(np.argsort(owner, kind="stable"), np.cumsum(np.bincount(owner, minlength=n))[:-1])


def _in_order(kind: str | float) -> tuple[int, float, str]:
    """Return a sorting key: numbers come first by size, then all else by the alphabet."""
    try:
        return 0, float(kind), ""
    except ValueError:
        return 1, 0.0, str(kind)


def _targets(spec: Spec, table: Table) -> Floats:
    column = len(table.columns) - 1
    raw = table.rows[:, column]
    if spec.data.rule is not None:
        match = re.fullmatch(r"(<=|>=|==|<|>) *(.*)", spec.data.rule)
        assert match is not None  # the spec's reader has made sure of it
        holds = _COMPARISONS[match[1]](raw, float(match[2]))
        return np.where(holds, 1.0, -1.0)
    if spec.task.kind == "logistic_regression":
        unfit = np.zeros(table.rows.shape, dtype=bool)
        unfit[:, column] = (raw != -1.0) & (raw != 0.0) & (raw != 1.0)
        refuse_cells(table, unfit, "is no class: that is 1, or else 0 or -1; a [data] rule makes classes of numbers")
        return np.where(raw == 1.0, 1.0, -1.0)
    if spec.data.target_range is not None:
        low, high = spec.data.target_range
        return np.asarray((2.0 * np.clip(raw, low, high) - low - high) / (high - low))
    return np.asarray(raw)


def _features(data: DataPart, table: Table, columns: int) -> tuple[Floats, Ints]:
    """Return the features as they are learned from, and how often each number was moved into bounds."""
    features = np.array(table.rows[:, :columns])
    clipped = np.zeros(features.shape, dtype=np.int64)
    if data.standardize is not None:
        ends = [np.array(value) for value in data.standardize.values() if isinstance(value, list)]
        if len(ends[0]) != columns:
            raise UsageError(
                f"[data] standardize: has {len(ends[0])} entries for {columns} columns: "
                f"{', '.join(map(str, table.columns[:columns]))}."
            )
        if "low" in data.standardize:
            low, high = ends
            clipped += (features < low) | (features > high)
            features = (2.0 * np.clip(features, low, high) - low - high) / (high - low)
        else:
            features = (features - ends[0]) / ends[1]
    if data.clip is not None:
        clipped += (features < data.clip[0]) | (features > data.clip[1])
        features = np.clip(features, *data.clip)
    too_long = np.abs(features) > FEATURE_MAX
    refuse_cells(table, too_long, f"is beyond {FEATURE_MAX:g}; [data] standardize or clip keep features in bounds")
    if data.unit_norm:
        lengths = np.sqrt((features**2).sum(axis=1))
        features = features / np.where(lengths > 0.0, lengths, 1.0)[:, None]
    return features, clipped


def _is_test(rows: int, share: float) -> Bools:
    whole = np.floor(np.arange(rows + 1) * share * (1.0 + 1e-12))
    return np.asarray(whole[1:] > whole[:-1])


def _kind_of_file(path: str) -> str:
    name = path.removesuffix(".gz")
    return next((kind for kind in ("npy", "parquet") if name.endswith(f".{kind}")), "csv")


def public_examples(spec: Spec, dimensions: int) -> Examples | None:
    """Return the rows of `[data] public`, made as those to learn from are; None where the spec declares none.

    Refuse rows on which models of `dimensions` numbers cannot be scored.
    """
    data = spec.data
    if data.public is None and data.public_own is None:
        return None
    kind = "own" if data.public is None else _kind_of_file(data.public)
    try:
        table, with_target = _read(replace(data, kind=kind, path=data.public, own=data.public_own))
        refuse_cells(table, ~np.isfinite(table.rows), "is not a finite number")
        targets = _targets(spec, table) if with_target else np.zeros(len(table.rows))
        features, _ = _features(data, table, len(table.columns) - with_target)
    except UsageError as error:
        raise UsageError(f"[data] public: {error}") from None
    if not len(features):
        raise UsageError(f"[data] public: {table.path} has no rows.")
    if has_intercept(spec):
        features = np.column_stack([features, np.ones(len(features))])
    found = dimension_of(spec, features.shape[1])
    if found != dimensions:
        raise UsageError(f"[data] public: its rows make models of {found} numbers, and those of the data {dimensions}.")
    return examples_of(features, targets, None)
