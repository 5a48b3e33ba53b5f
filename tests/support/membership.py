"""Whether a user's examples took part, told from one view of a run of descent: replays for tests of claims.

The run's path is held, and its noise drawn anew in each replay, with the user's examples as they were and replaced. A
view is what the observer saw of the model: whenever the token came to it and left it, and in the end; of gossip all
states that neighbours sent it, and its own gradients' noise. The
weights that separate the two best (`likelihood.statistic`) give each replay a score; what scores prove is in
`likelihood.py`. Accountants play no part here, so a mistake in those cannot hide itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.ids import Peer
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.protocols.gossip.sgd import GossipSgdPlan, learn
from p2pdp.protocols.walk.sgd import SgdPlan
from p2pdp.tasks.descending import Population
from p2pdp.tasks.examples import Examples
from tests.support.likelihood import statistic


def views(
    plan: SgdPlan, users: Sequence[Examples], path: Ints, visits: Ints, observer: Peer | None, count: int, seed: int
) -> Floats:
    """A row a replay. `path` and `visits` are [step, token]; without an observer, what the published model tells."""
    lanes = np.tile(path, (1, count)), np.tile(visits, (1, count))
    sampler = SeededSampler(seed, "membership")
    tokens = path.shape[1]
    seen: list[Floats] = []

    def noise(_step: int) -> Floats | None:
        if plan.noise.name == "none":
            return None
        return np.array(sampler.batch(plan.noise, plan.shape, count * tokens)) * plan.descent.step

    def watch(step: int, before: Floats, after: Floats) -> None:
        for token in np.flatnonzero(path[step - 1] == observer) if observer is not None else ():
            seen.extend((before[token::tokens], after[token::tokens]))

    models = Population(plan.descent, users).descend(*lanes, plan.rates, noise, watch)
    seen.append(models.reshape(count, tokens, -1).mean(axis=1))
    return np.concatenate(seen, axis=1)


def gossip_views(
    plan: GossipSgdPlan,
    users: Sequence[Examples],
    matrices: Sequence[Any],
    observer: Peer,
    count: int,
    seed: int,
) -> Floats:
    """A row a replay of learning by gossip with these weights in each round; the caller owes messages without noise."""
    sampler = SeededSampler(seed, "membership")
    seen: list[Floats] = []

    def noise(_visit: int) -> Floats | None:
        if plan.noise.name == "none":
            return None
        drawn = np.array(sampler.batch(plan.noise, plan.shape, plan.n * count)).reshape(plan.n, count, -1) * plan.step
        seen.append(drawn[observer])
        return np.asarray(drawn)

    def watch(number: int, sent: Floats) -> None:
        row = matrices[number - 1][[observer]].tocoo()
        seen.extend(sent[near] for near in np.unique(row.col[row.data != 0.0]) if near != observer)

    learn(plan, Population(plan.descent, users), matrices, noise, columns=count, watch=watch)
    return np.concatenate(seen, axis=1)


def scores(without: Floats, with_: Floats) -> tuple[Floats, Floats]:
    """Of the second halves of the replays, by weights that the first halves gave."""
    half = len(without) // 2
    weights = statistic(without[:half], with_[:half])
    return without[half:] @ weights, with_[half:] @ weights
