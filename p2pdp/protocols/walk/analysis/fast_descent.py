"""Descents of many trials at once, without peers, frames or ledgers (`fast.py` has the walks that sum).

Guarantee: paths and models have the law that they have in the simulated world when nobody is gone and nothing is
lost, but for the dithers of models, less than a millionth of how far they go, and given path and noise a model is the
machines' own but for these and rounding (`tasks/descending.py`). Tokens go on side by side, a step each, which decides
whose batches are used when; in a world they may overtake each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from p2pdp.assembly.outcome import Outcome
from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.ids import Peer
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.analysis.fast import path_of
from p2pdp.protocols.walk.sgd import SgdPlan
from p2pdp.sim.trials import Trials
from p2pdp.tasks.descending import Population, visits_along

_AT_ONCE_MAX: Final = 1 << 20  # numbers of noise in memory

LANES_MAX: Final = 256


def fast_trials_of_descents(trials: Trials) -> Iterator[Outcome]:
    """As many trials at once as there is room for, if all are of one plan and the same data."""
    at_once = max(1, LANES_MAX // trials.run.plan.tokens) if trials.same else 1
    for begin in range(0, trials.count, at_once):
        end = min(begin + at_once, trials.count)
        for number in range(begin, end):
            trials.started(number)
        run, rows = trials.again(begin)
        yield from fast_descents(run, rows, range(trials.seed + begin, trials.seed + end))


def fast_descents(run: RunPlan, rows: Callable[[Peer], Any], seeds: Sequence[int]) -> list[Outcome]:
    """One trial for each seed. `rows(user)` gives a user's examples."""
    plan: SgdPlan = run.plan
    trials = [_paths(run, seed) for seed in seeds]
    path = np.concatenate([found for found, _ in trials], axis=1)
    visits = np.concatenate([visits_along(found) for found, _ in trials], axis=1)
    population = Population(plan.descent, [rows(user) for user in range(run.n)])
    noised = population.descend(path, visits, plan.rates, _Noise(plan, seeds).of)
    clean = population.descend(path, visits, plan.rates, lambda _step: None)
    outcomes = []
    for number, (_, messages) in enumerate(trials):
        mine = slice(number * plan.tokens, (number + 1) * plan.tokens)
        pairs = np.stack([path[:, mine], visits[:, mine]], axis=2)
        times = np.bincount(path[:, mine].reshape(-1), minlength=run.n)
        outcomes.append(
            Outcome(
                published=noised[mine].mean(axis=0),
                counted={user: {0: int(count)} for user, count in enumerate(times) if count},
                messages=messages,
                paths=[[(int(user), int(visit)) for user, visit in pairs[:, token]] for token in range(plan.tokens)],
                truth=[float(part) for part in clean[mine].mean(axis=0)],
            )
        )
    return outcomes


def _paths(run: RunPlan, seed: int) -> tuple[Ints, int]:
    """Who contributes at each step of each token, and how many messages that takes."""
    key = int.from_bytes(SeededEntropy(seed, "fast").salt(), "big")
    generator = np.random.Generator(np.random.Philox(key=key))
    found = [path_of(run, start.user, generator) for start in run.plan.starts]
    return np.stack([path for path, _ in found], axis=1), sum(sent for _, sent in found)


class _Noise:
    """The noise of each lane, some steps ahead."""

    def __init__(self, plan: SgdPlan, seeds: Sequence[int]) -> None:
        self._plan = plan
        self._samplers = [SeededSampler(seed, f"fast/{token}") for seed in seeds for token in range(plan.tokens)]
        self._ahead = max(1, _AT_ONCE_MAX // (len(self._samplers) * plan.shape[0]))
        self._drawn: Floats | None = None

    def of(self, step: int) -> Floats | None:
        plan = self._plan
        if plan.noise.name == "none":
            return None
        place = (step - 1) % self._ahead
        if place == 0 or self._drawn is None:
            count = min(self._ahead, plan.steps - step + 1)
            batches = [np.array(sampler.batch(plan.noise, plan.shape, count)) for sampler in self._samplers]
            self._drawn = np.stack(batches, axis=1) * plan.descent.step
        return np.asarray(self._drawn[place])
