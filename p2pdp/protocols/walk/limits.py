"""How often a user contributes to a random walk at most: the limit that its node enforces, whatever its peers send.

Guarantee: a user of a run in which everybody follows the protocol, and nobody is excluded, is visited more often than
that with probability `CHANCE` at most. So results do not change, and what a user contributes is bounded although peers
may send it tokens as often as they like.

On the complete graph visits are binomial; beyond the mean the terms of that law fall at least as fast as a geometric
series from the first one on. On another graph the returns to a user take independent times R. For any z in (0, 1),
P(R_1 + ... + R_m <= t) <= z^-t E[z^R]^m (Markov), where E[z^R] = 1 - 1/G(z), and G(z) generates the chances to be at
the user again after 0, 1, 2, ... moves; it follows from the eigenvalues of the walk. Of several tokens, each way in
which m returns can be spread over them is counted on its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

CHANCE: Final = 1e-9
USERS_MAX: Final = 1000  # beyond that there is no limit on other graphs than the complete one but the number of steps
_DEMANDED: Final = -math.log(CHANCE) + 1e-3  # with room for rounding
_RATES: Final = 400


def complete_limit(n: int, steps: int, tokens: int) -> int:
    """For each step's holder drawn uniformly from all n; a single token starts at user 0, who may be any."""
    sure = 1 if tokens == 1 else 0
    trials = steps * tokens - sure
    if n == 1:
        return steps * tokens
    low, high = -1, trials  # more than `low` visits are too likely, more than `high` are not
    while high - low > 1:
        middle = (low + high) // 2
        if _log_tail(trials, 1.0 / n, middle + 1) <= -_DEMANDED:
            high = middle
        else:
            low = middle
    return sure + high


def _log_tail(trials: int, chance: float, count: int) -> float:
    """At least the logarithm of the chance of so many successes or more; 0 up to the mean."""
    if count <= (trials + 1) * chance:
        return 0.0
    if count > trials:
        return -math.inf
    ways = math.lgamma(trials + 1) - math.lgamma(count + 1) - math.lgamma(trials - count + 1)
    first = ways + count * math.log(chance) + (trials - count) * math.log1p(-chance)
    ratio = (trials - count) * chance / ((count + 1) * (1.0 - chance))
    return first - math.log1p(-ratio)


def graph_limit(neighbours: Sequence[Sequence[int]], steps: int, tokens: int) -> int:
    """For each next holder drawn uniformly from the neighbours; the same limit for all users."""
    n, most = len(neighbours), steps * tokens
    if n == 1 or n > USERS_MAX or steps == 1:
        return most
    import numpy as np

    degrees = np.array([len(row) for row in neighbours], dtype=np.float64)
    walk = np.zeros((n, n))
    for user, row in enumerate(neighbours):
        walk[user, list(row)] = 1.0 / np.sqrt(degrees[user] * degrees[list(row)])
    values, vectors = np.linalg.eigh(walk)
    rates = np.geomspace(1e-3 / steps, 10.0, _RATES)  # z = exp(-rate)
    generated = vectors**2 @ (1.0 / (1.0 - np.clip(values, -1.0, 1.0)[:, None] * np.exp(-rates)))
    costs = -np.log1p(-1.0 / np.maximum(generated, 1.0 + 1e-12)) * (1.0 - 1e-9)  # of one return, for each user
    returns = np.zeros(costs.shape)
    while True:  # more returns can be spread over the tokens in more ways, which takes more of them
        ways = (tokens - 1) * (1.0 + np.log(1.0 + returns / max(1, tokens - 1)))  # at least the logarithm of how many
        more = np.minimum(np.ceil((_DEMANDED + tokens * (steps - 1) * rates + ways) / costs), most)
        if np.all(more <= returns):
            break
        returns = more
    return min(most, int(returns.min(axis=1).max()) - 1 + tokens)
