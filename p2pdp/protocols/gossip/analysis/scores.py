"""How good models are that were learned by gossip, and what local, central and no privacy would have come to.

The baselines take the same number of steps, with the same rates and rows, along the mean of all users' gradients: local
privacy with every gradient noised, central privacy with noise on the mean. Scores are told only where the launcher has
the data. Where nothing is published they are the mean of the scores of users' own models, of which on large runs
some are looked at, evenly spread over the users' numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from p2pdp.assembly.outcome import Number, Outcome
from p2pdp.assembly.pools import NONE, Pool
from p2pdp.core.arrays import Floats
from p2pdp.core.draws import Mechanism
from p2pdp.core.ids import Peer
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.protocols.gossip.learning_together import weight_of
from p2pdp.protocols.gossip.sgd import GossipSgdPlan
from p2pdp.protocols.learning import SCORES, noise_bound
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.tasks.descending import Population

_LOCAL: Final = "local"
_SCORED_MAX: Final = 256  # users' own models

Rows = Callable[[Peer], Any]
Sigmas = Mapping[str, float | None]


def gossip_baselines_of(run: RunPlan, sigmas: Sigmas) -> dict[str, dict[str, Any]]:
    """What is known of them without any data: noise, and how far that moves a model at most."""
    told: dict[str, dict[str, Any]] = {}
    for name, sigma in [*sigmas.items(), (NONE, 0.0)]:
        told[name] = {"standard_error": None if sigma is None else _error(run, name, sigma), "sigma": sigma}
    return told


def gossip_scored(
    run: RunPlan, found: Outcome, rows: Rows, truth: Number, sigmas: Sigmas, seed: int
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The scores of what was learned, and baselines with theirs."""
    users = [rows(user) for user in range(run.n)]
    pool, population = Pool(run, users), Population(run.plan.descent, users)
    told = gossip_baselines_of(run, sigmas)
    for name in told:
        sigma = told[name]["sigma"]
        if name == NONE and truth is not None:
            told[name] |= pool.scores(np.array(truth))
        elif sigma is None:
            told[name] |= dict.fromkeys(SCORES)
        else:
            told[name] |= pool.scores(_together(run, population, _of_mean(run, name, sigma), seed))
    return {"score_name": pool.score_name, **_own(run, found, pool)}, told


def _own(run: RunPlan, found: Outcome, pool: Pool) -> dict[str, float | None]:
    if found.published is not None:
        return pool.scores(found.published.reshape(-1, run.plan.shape[0]).mean(axis=0))
    users = sorted(found.finals)
    if not users:
        return dict.fromkeys(SCORES)
    chosen = np.unique(np.linspace(0, len(users) - 1, min(len(users), _SCORED_MAX)).astype(np.int64)).tolist()
    each = [pool.scores(found.finals[users[at]]) for at in chosen]
    means: dict[str, float | None] = {}
    for name in SCORES:
        known = [value for scores in each if (value := scores[name]) is not None]
        means[name] = sum(known) / len(known) if len(known) == len(each) else None
    return means


def _of_mean(run: RunPlan, name: str, sigma: float) -> float:
    """The standard deviation of the noise on the mean gradient."""
    return sigma / math.sqrt(run.n) if name == _LOCAL else sigma


def _together(run: RunPlan, population: Population, sigma: float, seed: int) -> Floats:
    """The model that steps along the mean of all users' gradients come to."""
    plan: GossipSgdPlan = run.plan
    sampler, unit = SeededSampler(seed, "baselines"), Mechanism("gaussian", 2.0**30)
    drawn = np.array(sampler.batch(unit, plan.shape, plan.gradients)) / unit.scale * sigma
    model, total, who = np.zeros(plan.shape[0]), np.zeros(plan.shape[0]), np.arange(run.n)
    for visit in range(plan.gradients):
        rate = plan.rate_at(visit + 1)
        gradients = population.contributions(np.tile(model, (run.n, 1)), who, np.full(run.n, visit))
        model = model * (1.0 - rate * plan.descent.regularization) - (gradients.mean(axis=0) + drawn[visit]) * rate
        total = total + model * weight_of(plan, visit + 1)
    return np.asarray(total / sum(weight_of(plan, visit + 1) for visit in range(plan.gradients)))


def _error(run: RunPlan, name: str, sigma: float) -> list[float] | None:
    plan: GossipSgdPlan = run.plan
    scale = math.ldexp(_of_mean(run, name, sigma), -plan.grid_exponent)
    noise = Mechanism("gaussian", scale) if sigma else Mechanism("none", 0.0)
    bound = noise_bound(plan.descent, noise, [plan.rate_at(step) for step in range(1, plan.gradients + 1)])
    return None if bound is None else [bound] * plan.descent.dimension
