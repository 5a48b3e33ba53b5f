"""The exact Gaussian leak of a linear view.

An observer holds rows A x + B z, with z independent Gaussian draws that it does not know and x the users'
inputs; what it knows itself is already dropped. Replacing user u's input moves the rows by a with |x - x'| at
most the sensitivity, and the view is as telling as one Gaussian with mu^2 = a' (B S B')^+ a, infinite where
a is outside the range (guide/accounting.md, section 1). For several inputs of one user the supremum over their
changes is at most min(sum |X_kl|, K lambda_max(X)) with X the Gram block, and equal to the first for X >= 0.

All results are in units of the sensitivity squared. Exact only for Gaussian draws and for inputs that do not
depend on messages. Rank decisions may only raise a leak: whatever is not clearly within the range is infinite.
What is not a finite number is refused, for it would pass every comparison as a leak of nothing.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from p2pdp.core.arrays import Bools, Floats, Ints
from p2pdp.core.errors import UsageError

ROUNDED_UP: Final = 1.0 + 1e-12  # more than the sums behind a leak can be off
_RANK_TOLERANCE = 1e-12  # of the largest singular value
_RANGE_TOLERANCE = 1e-12  # of the length of a


def disjoint_leaks(
    rows: int, users: int, noise_row: Ints, variance: Floats, input_row: Ints, user: Ints, weight: Floats
) -> Floats:
    """Return mu^2 / sensitivity^2 of each user where no draw is in two rows and no weight is negative.

    Then the rows' noises are independent and each row counts for itself: with S_r the variance of row r and
    c_r the summed weight of u's inputs in it, the leak is the sum of c_r^2 / S_r.
    """
    _check_finite(variance, weight)
    if min(variance.min(initial=0.0), weight.min(initial=0.0)) < 0.0:
        raise UsageError("Rows that count for themselves need variances and weights of at least 0.")
    noise = np.bincount(noise_row, weights=variance, minlength=rows)
    keys, summed = _summed(input_row * users + user, weight, rows * users)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(summed > 0.0, summed**2 / noise[keys // users], 0.0)
    leaks = np.zeros(users)
    np.add.at(leaks, keys % users, parts)
    return leaks


_SPARSE: Final = 8  # times as many possible keys as there are entries: then sorting these is quicker


def _summed(keys: Ints, weights: Floats, size: int) -> tuple[Ints, Floats]:
    """Return keys below `size` in order, and the sum of the weights of each, added up in their order."""
    if size > _SPARSE * len(keys):
        found, place = np.unique(keys, return_inverse=True)
        return found, np.asarray(np.bincount(place, weights=weights, minlength=len(found)), dtype=np.float64)
    summed = np.asarray(np.bincount(keys, weights=weights, minlength=size), dtype=np.float64)
    kept = np.flatnonzero(summed)
    return kept, summed[kept]


def general_leaks(
    rows: int, users: int, noise_row: Ints, draw: Ints, deviation: Floats, input_row: Ints, user: Ints, number: Ints,
    weight: Floats,
) -> Floats:  # fmt: skip
    """Return mu^2 / sensitivity^2 of each user for any rows, from entries: which row holds which draw, and whose input.

    Rows that share no draw, not even through others, are independent: each such block is dealt with alone, and
    the Gram blocks of a user add up.
    """
    _check_finite(deviation, weight)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    draws, draw = np.unique(draw, return_inverse=True)
    edges = coo_array((np.ones(len(draw)), (noise_row, rows + draw)), shape=(rows + len(draws),) * 2)
    _, block = connected_components(edges, directed=False)
    names, column = np.unique(np.stack([user, number]), axis=1, return_inverse=True)
    column = column.reshape(-1)
    owners: Ints = names[0]
    counts = np.bincount(owners, minlength=users)
    own = np.split(np.argsort(owners, kind="stable"), np.cumsum(counts)[:-1])
    grams = [np.zeros((count, count)) for count in counts.tolist()]
    singles = np.zeros(users) if counts.max(initial=0) <= 1 else None
    infinite = np.zeros(users, dtype=np.bool_)
    by_noise, by_input = _grouped(block[noise_row]), _grouped(block[input_row])
    for part, entries in by_input.items():
        members = np.nonzero(block[:rows] == part)[0]
        columns = np.unique(column[entries])
        moved = _dense(members, columns, input_row[entries], column[entries], weight[entries])
        noisy = by_noise.get(part, np.zeros(0, dtype=np.int64))
        noise = _dense(members, np.unique(draw[noisy]), noise_row[noisy], draw[noisy], deviation[noisy])
        whitened, outside = _whitened(noise, moved)
        infinite[owners[columns[outside]]] = True
        if singles is not None and len(whitened) == 1:
            singles[owners[columns]] += whitened[0] * whitened[0]
            continue
        for one in np.unique(owners[columns]):
            mine = np.nonzero(owners[columns] == one)[0]
            place = np.searchsorted(own[one], columns[mine])
            grams[one][np.ix_(place, place)] += whitened[:, mine].T @ whitened[:, mine]
    leaks = np.array([_supremum(gram) for gram in grams])
    return np.where(infinite, np.inf, leaks if singles is None else leaks + singles)


def _check_finite(*numbers: Floats) -> None:
    if not all(np.all(np.isfinite(some)) for some in numbers):
        raise UsageError("The weights and deviations of a view must be finite numbers.")


def _grouped(keys: Ints) -> dict[int, Ints]:
    order = np.argsort(keys, kind="stable")
    found, starts = np.unique(keys[order], return_index=True)
    return dict(zip(found.tolist(), np.split(order, starts[1:]), strict=True)) if len(keys) else {}


def _dense(rows: Ints, columns: Ints, row: Ints, column: Ints, value: Floats) -> Floats:
    """Return a dense matrix of sorted rows and columns from entries, of which several may fall on one place."""
    matrix = np.zeros((len(rows), len(columns)))
    np.add.at(matrix, (np.searchsorted(rows, row), np.searchsorted(columns, column)), value)
    return matrix


def _whitened(noise: Floats, inputs: Floats) -> tuple[Floats, Bools]:
    """Return the inputs' columns where the noise has unit variance, and which of them are not within its range."""
    if noise.shape[1] > noise.shape[0]:
        noise = np.transpose(np.linalg.qr(noise.T, mode="r"))  # the same vectors and values, from a square matrix
    vectors, some, _ = np.linalg.svd(noise)
    values = np.zeros(len(vectors))
    values[: len(some)] = some
    largest, count = values.max(initial=0.0), max(1, len(values))
    kept = values > largest * _RANK_TOLERANCE * count
    outside = np.linalg.norm(vectors[:, ~kept].T @ inputs, axis=0) > _RANGE_TOLERANCE * count * np.linalg.norm(
        inputs, axis=0
    )
    smallest = values[kept] - largest * count * np.finfo(np.float64).eps  # as small as rounding may have hidden
    return vectors[:, kept].T @ inputs / smallest[:, None], outside


def _supremum(gram: Floats) -> float:
    """Bound the leak over all changes of a user's inputs; exact where no entry is negative."""
    total = float(np.abs(gram).sum())
    return min(total, float(len(gram) * np.linalg.eigvalsh(gram)[-1])) if len(gram) > 1 else total
