"""Leaks of gossip as [CEBM22] prints them, in units of what a user's own noised value tells.

[CEBM22, Theorem 1] (equation 6) adds, for each message that v got, the squared weight of u in it over the squared
length of all weights in it; [CEBM22, Theorem 12] does the same for users who pool. Messages share their noise, so the
sum is no bound on what they tell together: on a path of three users it prints 1/3 where all is told. Added up over all
users it is the number of messages, which is a bound on the sum of their leaks. [CEBM22, Corollary 1] bounds equation
(6) by return probabilities of a random walk, for fixed weights.

[CEBM22, Theorem 4] averages over graphs that v does not know beyond its own edges, and survives as a bound: the
neighbours' values are told, and what is left of the d T messages is shared by all others alike, with a factor of 2 for
the average (weak convexity), which needs sigma^2 >= Delta^2 alpha (alpha - 1) / 2. The printed form divides by n - d.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.privacy.linear.layers import Layers, View


def theorem_1(layers: Layers, views: Sequence[View]) -> Floats:
    """Return equation (6) of each user (row) for each view (column), as printed: it may exceed 1."""
    found = np.zeros((layers.users, len(views)))
    weights: Any = np.eye(layers.users)
    for number in range(1 + max((max(view.seen, default=0) for view in views), default=0)):
        if number:
            weights = layers.steps[number - 1].parents @ weights
        squares = weights**2
        squares /= np.maximum(squares.sum(axis=1), np.finfo(np.float64).tiny)[:, None]
        found += (_counts(views, number, len(squares)) @ squares).T
    return found


def _counts(views: Sequence[View], number: int, values: int) -> Any:
    from scipy.sparse import csr_array

    seen = [sorted(set(view.seen.get(number, ()))) for view in views]
    ends = np.cumsum([0, *(len(some) for some in seen)])
    places = np.array([place for some in seen for place in some], dtype=np.int64)
    return csr_array((np.ones(len(places)), places, ends), shape=(len(views), values))


def corollary_1(weights: Any, groups: Sequence[Sequence[int]], rounds: int) -> Floats:
    """Return the bound on each user (row) for users who pool (column): Corollary 1 for one, Corollary 3 for more."""
    size = weights.shape[0]
    found = np.zeros((size, len(groups)))
    reached: Any = np.zeros((size, len(groups)))
    factors = []
    for at, group in enumerate(groups):
        reached[list(group), at] = 1.0
        rows = weights[list(group)].tocoo()
        across = rows.data[~np.isin(rows.col, list(group)) & (rows.data > 0.0)]
        factors.append(size / float(across.min()) ** 2 if len(across) else 0.0)
    for _ in range(rounds):
        reached = weights @ reached
        found += reached**2
    return np.asarray(found * np.array(factors))


def theorem_4_leak(messages: int, first: int, others: int) -> float:
    """Return twice the share of each of the `others`, whom v never met, in what v's messages tell; in the same units.

    `first` of the messages came in the first round and tell their senders' values. alpha times half of the result,
    times Delta^2/sigma^2, is the Rényi divergence at alpha. On a fixed graph: 2 d (T - 1) / (n - 1 - d).
    """
    return 2.0 * (messages - first) / others


def theorem_4_alpha_most(sensitivity_in_sigmas: float) -> float:
    """Return the largest order at which Theorem 4 holds: alpha (alpha - 1) <= 2 sigma^2 / Delta^2."""
    return 0.5 + math.sqrt(0.25 + 2.0 / sensitivity_in_sigmas**2)
