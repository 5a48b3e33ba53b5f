"""The weights of one round of gossip on a graph that changes: of the pairs that met in it, by that round's degrees.

`drawn_pairs` draws who meets, for simulations and forecasts: users of a run toss for it in secret.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from p2pdp.topology.weights import edge_weight


def drawn_pairs(n: int, coin: float, generator: np.random.Generator) -> Any:
    """Each pair (u, v), u < v, with this probability, a row each."""
    starts = np.concatenate([[0], np.cumsum(np.arange(n - 1, 0, -1))])  # of each user's pairs with higher numbers
    count = generator.binomial(int(starts[-1]), coin)
    chosen = np.sort(generator.choice(int(starts[-1]), count, replace=False)) if count else np.zeros(0, np.int64)
    lower = np.searchsorted(starts, chosen, side="right") - 1
    return np.column_stack([lower, chosen - starts[lower] + lower + 1])


def meeting_weights(n: int, pairs: Any, weights: str, degree_max: int) -> Any:
    """The symmetric sparse matrix, its diagonal included; `pairs` has a row (u, v) for each of them, once.

    `degree_max` is the largest degree that there may be, which the users know beforehand.
    """
    from scipy.sparse import csr_array

    ends = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    degrees = np.bincount(ends.reshape(-1), minlength=n)
    largest = degrees[ends].max(axis=1)
    different, places = np.unique(largest, return_inverse=True)
    of_degree = np.array([float(edge_weight(weights, one, one, degree_max)) for one in different.tolist()])
    values = of_degree[places] if len(ends) else np.zeros(0)
    heads, tails = np.concatenate([ends, ends[:, ::-1]]).T
    left = 1.0 - np.bincount(heads, np.concatenate([values, values]), minlength=n)
    everybody = np.arange(n)
    rows, columns = np.concatenate([heads, everybody]), np.concatenate([tails, everybody])
    return csr_array((np.concatenate([values, values, left]), (rows, columns)), shape=(n, n))
