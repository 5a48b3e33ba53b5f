"""Learning by gossip for all users at once: what the machines of `sgd.py` come to, as products of matrices.

Guarantee: with the same weights in each round and the same noise the models are the machines' own but for the rounding
of sums and the dithers of messages, in rounds in which every message arrived. One in ten million contributions may so
land on the next step of the grid, which is less than a millionth of the noise. Columns are runs that know nothing of
each other, on the same weights: trials, or replays of one run.

The caller owes a matrix of weights for each round: symmetric, sparse, its diagonal included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.protocols.gossip.sgd import LAST, LINEAR, GossipSgdPlan
from p2pdp.tasks.descending import Population

Noise = Callable[[int], Floats | None]  # of a gradient, counted from 0: [user, column, number] in data units
Extra = Callable[[Any, Floats], Floats]  # weights and what is sent -> what noise on messages adds to each state
Watch = Callable[[int, Floats], None]  # round, and what users send in it


def learn(
    plan: GossipSgdPlan,
    population: Population,
    matrices: Iterable[Any],
    noise: Noise,
    *,
    columns: int = 1,
    extra: Extra | None = None,
    watch: Watch | None = None,
) -> Floats:
    """Each user's result, [user, column, number]."""
    shape = (plan.n, columns, plan.shape[0])
    now = before = np.zeros(shape)
    total = np.zeros(shape)
    who = np.repeat(np.arange(plan.n), columns)
    for number, matrix in enumerate(matrices, start=1):
        if plan.begins_block(number):
            visit = (number - 1) // plan.block
            total = total + now * weight_of(plan, visit)
            gradients = population.contributions(now.reshape(-1, shape[2]), who, np.full(len(who), visit))
            direction, added = gradients.reshape(shape), noise(visit)
            rate = plan.rate_at(visit + 1)
            now = now * (1.0 - rate * plan.descent.regularization)
            now = now - (direction if added is None else direction + added) * rate
        if watch is not None:
            watch(number, now)
        gamma, moved = plan.gamma_at(number), (matrix @ now.reshape(plan.n, -1)).reshape(shape)
        if extra is not None:
            moved = moved + extra(matrix, now)
        before, now = now, moved if gamma == 1.0 else gamma * moved + (1.0 - gamma) * before
    if plan.averaging == LAST:
        return now
    weights = [weight_of(plan, visit) for visit in range(1, plan.gradients + 1)]
    return np.asarray((total + now * weights[-1]) / sum(weights))


def weight_of(plan: GossipSgdPlan, gradients: int) -> float:
    """Of the model after so many gradients and the gossip that followed them, in a user's result; up to a factor."""
    if plan.averaging == LAST:
        return float(gradients == plan.gradients)
    return float(gradients if plan.averaging == LINEAR else gradients > 0)
