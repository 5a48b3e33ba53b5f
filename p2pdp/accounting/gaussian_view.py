"""The exact Gaussian leak of a linear view.

An observer holds rows A x + B z, with z independent Gaussian draws that it does not know and x the users'
inputs; what it knows itself is already dropped. Replacing user u's input moves the rows by a with |x - x'| at
most the sensitivity, and the view is as telling as one Gaussian with mu^2 = a' (B S B')^+ a, infinite where
a is outside the range (accounting notes, section 1). For several inputs of one user the supremum over their
changes is at most min(sum |X_kl|, K lambda_max(X)) with X the Gram block, and equal to the first for X >= 0.

All results are in units of the sensitivity squared. Exact only for Gaussian draws and for inputs that do not
depend on messages. Rank decisions may only raise a leak: whatever is not clearly within the range is infinite.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_RANK_TOLERANCE = 1e-12  # of the largest eigenvalue
_RANGE_TOLERANCE = 1e-9  # of the length of a


def disjoint_leaks(
    rows: int, users: int, noise_row: Ints, variance: Floats, input_row: Ints, user: Ints, weight: Floats
) -> Floats:
    """mu^2 / sensitivity^2 of each user where no draw is in two rows and no weight is negative.

    Then the rows' noises are independent and each row counts for itself: with S_r the variance of row r and
    c_r the summed weight of u's inputs in it, the leak is the sum of c_r^2 / S_r.
    """
    noise = np.bincount(noise_row, weights=variance, minlength=rows)
    keys, place = np.unique(input_row * users + user, return_inverse=True)
    summed = np.bincount(place, weights=weight, minlength=len(keys))
    with np.errstate(divide="ignore"):
        parts = np.where(summed > 0.0, summed**2 / noise[keys // users], 0.0)
    leaks = np.zeros(users)
    np.add.at(leaks, keys % users, parts)
    return leaks


def general_leak(noise: Floats, inputs: Floats) -> float:
    """mu^2 / sensitivity^2 of one user for any rows.

    `noise` has a column per draw, scaled by its standard deviation; `inputs` a column per input of the user.
    """
    moved = inputs[:, np.any(inputs != 0.0, axis=0)]
    if moved.size == 0:
        return 0.0
    values, vectors = np.linalg.eigh(noise @ noise.T)
    kept = values > max(values.max(initial=0.0), 0.0) * _RANK_TOLERANCE * max(1, len(values))
    outside = vectors[:, ~kept].T @ moved
    if np.any(np.linalg.norm(outside, axis=0) > _RANGE_TOLERANCE * np.linalg.norm(moved, axis=0)):
        return float("inf")
    inside = vectors[:, kept].T @ moved
    gram = inside.T @ (inside / values[kept][:, None])
    total = float(np.abs(gram).sum())
    return min(total, float(len(gram) * np.linalg.eigvalsh(gram)[-1])) if len(gram) > 1 else total
