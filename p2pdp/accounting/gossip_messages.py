"""What noise on messages leaves of the leaks of synchronous gossip: a bound that a plan can afford.

The observer knows what it sent itself, so its own column and row are cut out of the weights, and what it hears in
round t are the rows P_t(W~)_w of its neighbours w, each with fresh noise of deviation ratio * sigma. The noise that
others add to what they send each other is taken to be known to it, which can only raise a leak (guide/accounting.md,
section 3: checked against the exact replay, at most a fifth above it). In units of a user's own noised value

    leak_u = r_u' (R R' + ratio^2 I)^-1 r_u,    r_u the column of user u in R.

Without that noise see `gossip_krylov.py`: rows that are parallel up to rounding matter there, and not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from p2pdp.core.arrays import Floats


def noised_leaks(
    weights: Any, heard: Sequence[int], observer: int, rounds: int, gamma: float, ratios: Sequence[float]
) -> Floats:
    """A row for each ratio, which is above 0; `heard` are the observer's neighbours, `gamma` is 1 without acceleration.

    What the observer knows of itself is given as 0.
    """
    size = weights.shape[0]
    before = np.zeros((size, len(heard)))
    now = before.copy()
    now[list(heard), np.arange(len(heard))] = 1.0
    wide = rounds * len(heard) < size
    rows = []
    square = np.zeros((0, 0) if wide else (size, size))
    for number in range(rounds):
        if wide:
            rows.append(now)
        else:
            square += now @ now.T
        moved = weights @ now
        moved[observer] = 0.0
        before, now = now, moved if number == 0 else gamma * moved + (1.0 - gamma) * before
    if wide:
        every = np.concatenate(rows, axis=1) if rows else now[:, :0]
        values, vectors = np.linalg.eigh(every.T @ every)
        parts = (every @ vectors) ** 2
        return np.stack([parts @ (1.0 / (np.maximum(values, 0.0) + ratio**2)) for ratio in ratios])
    values, vectors = np.linalg.eigh(square)
    values = np.maximum(values, 0.0)
    return np.stack([vectors**2 @ (values / (values + ratio**2)) for ratio in ratios])
