"""What users learn from: rows of features with a target, from a file, in the order in which that is done.

Columns are chosen (without `target` and `split_by`, unless they are named), standardized, clipped number by number
and scaled to unit length, as far as the spec says; then a 1 is added for the intercept. Standardizing goes by what is
in the spec alone: declared public ranges, `{ low, high }`, are mapped to -1 and 1, with what lies outside
moved to the ends; or `{ mean, deviation, epsilon, delta }` takes estimates that somebody made privately, and their cost
is added to every claim. Nothing is ever taken from the pooled data.

The target is a number, or with `rule`, a comparison with a public threshold, 1 where it holds and -1 elsewhere; for
logistic regression it may be 0 and 1, or -1 and 1. `target_range` maps a numeric target to -1 and 1.

User i of n has the rows that it would have of any table; with `split_by` all rows that are alike in that column are
one user's, and if there are more kinds than users, kinds that follow each other in order share one. `[task] test`
keeps a share of each user's own rows out of learning: row j of a user if the whole part of (j + 1) share is above that
of j share.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Bools, Floats, Ints
from p2pdp.core.errors import UsageError
from p2pdp.core.spec import DataPart, Spec
from p2pdp.files.tables import Moved, Table, chosen_columns, moved_in, place_of, read_table, refuse_cells
from p2pdp.protocols.learning import FEATURE_MAX, OWN, has_intercept, norm_bound
from p2pdp.tasks.examples import Examples, examples_of

_COMPARISONS: Final = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
}  # fmt: skip


def examples_of_users(
    spec: Spec, n: int, synthetic: Callable[[int], Any]
) -> tuple[int, Callable[[int], Examples], tuple[Moved, ...]]:
    """The length of a model, each user's examples, and what was moved into its bounds.

    No rule looks at the rows of several users together: an answer to that would tell something of all of them.
    """
    data = spec.data
    if data.kind not in ("csv", "npy"):  # one number each
        bound = norm_bound(data, 1, intercept=False)
        return 1, lambda i: examples_of(np.reshape(synthetic(i).rows, (1, 1)), np.zeros(1), bound), ()
    table, with_target = _read(data)
    columns = len(table.columns) - with_target
    if columns == 0:
        raise UsageError(f"{table.path}: has no column but the target, and nothing to tell it by.")
    owners = _owners(table, n)
    refuse_cells(table, ~np.isfinite(table.rows), "is not a finite number")
    targets = _targets(spec, table) if with_target else np.zeros(len(table.rows))
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
        raise UsageError(f"[task] test: no user has so many rows that {share:g} of them makes one.")

    def user(i: int) -> Examples:
        own = owners[i]
        kept = _is_test(len(own), share)
        learned, tested = own[~kept], own[kept]
        test = examples_of(features[tested], targets[tested], bound) if len(tested) else None
        return examples_of(features[learned], targets[learned], bound, int(clipped[own].sum()), test)

    dimension = features.shape[1]
    if spec.task.kind == OWN and spec.task.own is not None:
        dimension = int(spec.task.own.dimension(dimension))
    return dimension, user, moved


def _read(data: DataPart) -> tuple[Table, bool]:
    """The features, and the target last if there is one."""

    def choose(names: Sequence[str | int]) -> tuple[int, ...]:
        path = data.path or ""
        target = None if data.target is None else place_of(data.target, names, path, "target")
        split = None if data.split_by is None else place_of(data.split_by, names, path, "split_by")
        features = chosen_columns(data, names)
        if data.columns is None:
            features = tuple(place for place in features if place not in (target, split))
        elif target in features:
            raise UsageError(f"[data] columns: the target {data.target} cannot be a feature too; leave it out.")
        return features if target is None else (*features, target)

    return read_table(data, choose), data.target is not None


def _owners(table: Table, n: int) -> list[Ints]:
    """The rows of each user."""
    rows = len(table.rows)
    if table.groups is None:
        if rows < n:
            raise UsageError(f"{table.path}: has {rows} rows for {n} users; every user needs one at least.")
        return [np.arange(i * rows // n, (i + 1) * rows // n) for i in range(n)]
    kinds = {kind: number for number, kind in enumerate(sorted(set(table.groups), key=_in_order))}
    if len(kinds) < n:
        raise UsageError(f"[data] split_by: {table.path} has {len(kinds)} kinds of rows for {n} users.")
    owner = np.array([kinds[kind] * n // len(kinds) for kind in table.groups])
    return [np.flatnonzero(owner == user) for user in range(n)]


def _in_order(kind: str | float) -> tuple[int, float, str]:
    """Numbers by their size, and then all else by the alphabet."""
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
    """The features as they are learned from, and how often each number was moved into bounds."""
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
