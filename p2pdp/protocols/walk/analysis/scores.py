"""How good a learned model is, and what local, central and no privacy would have come to on the same path.

Scores are told only where the launcher has the data, as it has the truth; nothing here is ever shown while a run
goes on. Noise of the baselines is drawn from a stream of its own, named after the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from p2pdp.assembly.outcome import Number, Outcome
from p2pdp.assembly.pools import NONE, Pool
from p2pdp.core.arrays import Floats
from p2pdp.core.draws import Mechanism
from p2pdp.core.ids import Peer
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.protocols.learning import SCORES, noise_bound
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.analysis.outcome_descent import lanes
from p2pdp.protocols.walk.sgd import SgdPlan
from p2pdp.tasks.descending import Population

Rows = Callable[[Peer], Any]

_AHEAD: Final = 4096  # steps for which noise is drawn at once


def baselines_of(run: RunPlan, sigmas: dict[str, float | None]) -> dict[str, dict[str, Any]]:
    """What is known of them without any data: noise, and how far that moves a model at most."""
    told: dict[str, dict[str, Any]] = {}
    for name, sigma in [*sigmas.items(), (NONE, 0.0)]:
        told[name] = {"standard_error": None if sigma is None else _error(run, sigma), "sigma": sigma}
    return told


def scored(
    run: RunPlan, found: Outcome, rows: Rows, truth: Number, sigmas: dict[str, float | None], seed: int
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The scores of the model, and baselines with theirs."""
    pool = Pool(run, [rows(user) for user in range(run.n)])
    told = baselines_of(run, sigmas)
    models = _models(run, found, rows, sigmas, seed)
    if truth is not None:
        models[NONE] = np.array(truth)
    for name in told:
        told[name] |= pool.scores(models[name]) if name in models else dict.fromkeys(SCORES)
    own = dict.fromkeys(SCORES) if found.published is None else pool.scores(found.published)
    return {"score_name": pool.score_name, **own}, told


def _models(run: RunPlan, found: Outcome, rows: Rows, sigmas: dict[str, float | None], seed: int) -> dict[str, Floats]:
    """The same steps with other noise, all levels side by side."""
    plan: SgdPlan = run.plan
    levels = {name: sigma for name, sigma in sigmas.items() if sigma is not None}
    if not levels or found.paths is None:
        return {}
    path, visits = lanes(found.paths)
    population = Population(plan.descent, [rows(user) for user in range(run.n)])
    scales = np.repeat(list(levels.values()), plan.tokens)[:, None]
    sampler = SeededSampler(seed, "baselines")
    unit = Mechanism("gaussian", 2.0**30)
    drawn = np.zeros((0, 0, 0))

    def noise(step: int) -> Floats:
        nonlocal drawn
        place = (step - 1) % _AHEAD
        if place == 0:
            shape = (len(scales), plan.shape[0])
            count = min(_AHEAD, plan.steps - step + 1)
            drawn = np.reshape(sampler.batch(unit, (math.prod(shape),), count), (count, *shape)) / unit.scale * scales
        return np.asarray(drawn[place])

    width = len(levels)
    models = population.descend(np.tile(path, (1, width)), np.tile(visits, (1, width)), plan.rates, noise)
    means = models.reshape(width, plan.tokens, -1).mean(axis=1)
    return dict(zip(levels, means, strict=True))


def _error(run: RunPlan, sigma: float) -> list[float] | None:
    plan: SgdPlan = run.plan
    noise = Mechanism("gaussian", math.ldexp(sigma, -plan.grid_exponent)) if sigma else Mechanism("none", 0.0)
    bound = noise_bound(plan.descent, noise, plan.rates)
    return None if bound is None else [bound] * plan.descent.dimension
