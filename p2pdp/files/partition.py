"""The division of one table's rows among users by the classes of a target, as published comparisons make it.

Each class is dealt out in shares that are drawn from a Dirichlet distribution: with a small alpha most users see few
classes. A user who would get nothing gets one row of the user who then has most. Draws follow from the seed alone.
"""

from __future__ import annotations

import hashlib
import math
from typing import Final

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.errors import UsageError

CLASSES_MAX: Final = 1000


def dealt_out(targets: Floats, n: int, alpha: float, seed: int) -> list[Ints]:
    """Return the rows of each of n users, in order; there are at least n rows."""
    classes = np.unique(targets)
    if len(classes) > min(CLASSES_MAX, len(targets) // 2):
        raise UsageError('[data] partition: "dirichlet" deals out classes, and the target is none; add a [data] rule.')
    key = hashlib.blake2b(f"{seed} {alpha!r}".encode(), digest_size=16, person=b"p2pdp partition").digest()
    random = np.random.Generator(np.random.Philox(key=int.from_bytes(key, "big")))
    owner = np.empty(len(targets), dtype=np.int64)
    for kind in classes:
        rows = np.flatnonzero(targets == kind)
        rows = rows[np.argsort(random.random(len(rows)), kind="stable")]
        ends = np.floor(np.cumsum(_shares(n, alpha, random)) * len(rows) + 0.5).astype(np.int64)
        owner[rows] = np.searchsorted(ends[:-1], np.arange(len(rows)), side="right")
    counts = np.bincount(owner, minlength=n)
    for user in np.flatnonzero(counts == 0).tolist():
        richest = int(np.argmax(counts))
        owner[np.flatnonzero(owner == richest)[-1]] = user
        counts[richest] -= 1
        counts[user] += 1
    return [np.flatnonzero(owner == user) for user in range(n)]


def _shares(n: int, alpha: float, random: np.random.Generator) -> Floats:
    """Draw from a symmetric Dirichlet distribution: gamma variables, divided by their sum."""
    logarithms = np.array([_log_gamma_variable(alpha, random) for _ in range(n)])
    found = np.exp(logarithms - logarithms.max())
    return np.asarray(found / found.sum())


def _log_gamma_variable(alpha: float, random: np.random.Generator) -> float:
    """Draw by the method of Marsaglia and Tsang (2000), from uniforms, which numpy keeps the same in all releases."""
    boost = math.log(1.0 - random.random()) / alpha if alpha < 1.0 else 0.0
    d = (alpha + 1.0 if alpha < 1.0 else alpha) - 1.0 / 3.0
    while True:
        first, second, third = random.random(3).tolist()
        x = math.sqrt(-2.0 * math.log1p(-first)) * math.cos(2.0 * math.pi * second)
        v = (1.0 + x / math.sqrt(9.0 * d)) ** 3
        if v > 0.0 and math.log1p(-third) < x * x / 2.0 + d - d * v + d * math.log(v):
            return math.log(d * v) + boost
