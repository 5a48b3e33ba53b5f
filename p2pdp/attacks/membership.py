"""Whether a user's examples took part, told from one view of a walk of descent: replays for tests of claims.

The run's path is held, and its noise drawn anew in each replay, with the user's examples as they were and replaced. A
view is what the observer saw of the model: whenever the token came to it and left it, and in the end. The
weights that separate the two best (`likelihood.statistic`) give each replay a score; what scores prove is in
`likelihood.py`. Accountants play no part here, so a mistake in those cannot hide itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from p2pdp.attacks.likelihood import statistic
from p2pdp.core.ids import Peer
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.protocols.walk_sgd import SgdPlan
from p2pdp.tasks.descending import Ints, Population
from p2pdp.tasks.examples import Examples

Floats = npt.NDArray[np.float64]


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


def scores(without: Floats, with_: Floats) -> tuple[Floats, Floats]:
    """Of the second halves of the replays, by weights that the first halves gave."""
    half = len(without) // 2
    weights = statistic(without[:half], with_[:half])
    return without[half:] @ weights, with_[half:] @ weights
