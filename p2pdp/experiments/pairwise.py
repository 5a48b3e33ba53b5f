"""Noise that cancels between pairs, in experiments: amounts for a target, and learning with it.

Learning is `gossip.sgd` with K rounds of gossip after each step (`protocols/gossip/sgd.py`, `learn`), with noise drawn
anew for each step: own noise of every user, and for each edge a draw that one end adds and the other subtracts. Whoever
sees all messages and knows the colluders' draws learns of each other user as much as from steps Gaussians with the leak
of one step each, whatever the gradients depend on, so mu^2 = steps (2 clip)^2 leak is a bound [AKFJG24].

Local noise is own noise alone. The curator adds noise to the mean of all gradients once. Columns are mapped from their
ranges, which count as public, to -1 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.core.spec import DataPart, GraphPart, NoisePart, PrivacyPart, RunPart, Spec, TaskPart
from p2pdp.experiments.contract import Setting
from p2pdp.experiments.descents import dealt
from p2pdp.experiments.inputs import prices
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.pairwise import PairNoise, pair_noise
from p2pdp.protocols.gossip.options import GossipPart
from p2pdp.protocols.gossip.sgd import GossipSgdPlan, learn
from p2pdp.protocols.run_plan import plan_run
from p2pdp.tasks.descending import Population
from p2pdp.tasks.examples import Examples
from p2pdp.tasks.regression import LogisticRegression
from p2pdp.topology.components import ends_of, taken_out
from p2pdp.topology.graphs import Graph, make_graph
from p2pdp.topology.weights import METROPOLIS, sparse_weights

SEED: Final = 24
DELTA: Final = 1e-5
SLACKS: Final = (0.1, 1.0, 10.0)
PAIRWISE: Final = "pairwise"
LOCAL: Final = "local"
CURATOR: Final = "curator"
NOTHING: Final = "no noise"
_NUMBERS: Final = 9  # eight columns and the intercept


@cache
def regular(n: int, degree: int, seed: int = SEED) -> Graph:
    return make_graph(GraphPart("regular", degree=degree), n, seed)


def pair_noise_of(n: int, degree: int, colluders: int, mu: float, slack: float) -> PairNoise:
    """Return noise for sensitivity 1 on a regular graph with colluders at random."""
    return pair_noise(regular(n, degree), mu, slack, taken_out(range(n), colluders, SEED, 0))


@dataclass(frozen=True, slots=True)
class Learning:
    """The size of the experiment on learning; each user's rows are its unit of privacy."""

    n: int = 100
    degree: int = 10
    colluders: int = 10
    steps: int = 60
    clip: float = 1.0
    trials: int = 10
    rates: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)

    @property
    def facts(self) -> dict[str, Any]:
        return {**asdict(self), "rates": list(self.rates), "seed": SEED}


QUICK: Final = Learning(n=20, degree=4, colluders=2, steps=10, trials=2, rates=(0.1, 1.0))


def learned(setting: Setting, size: Learning, method: str, rounds: int, epsilon: float) -> dict[str, Any]:
    """Return accuracy on test rows at the best rate and slack, and at each rate with the best slack.

    `accuracy` is the mean over users of that of their own models, `of_mean` that of the mean of all models. What is
    best is chosen by the first, for every method alike, which costs privacy that nobody counts here.
    """
    data = prices(setting)
    users, _, test = dealt(data, size.n, ranges=True)
    plan = _plan(size, users[0].features.shape[1], rounds)
    population = Population(plan.descent, users)
    matrix: Any = sparse_weights(regular(size.n, size.degree), METROPOLIS)
    if method in (CURATOR, NOTHING):
        matrix = np.full((size.n, size.n), 1.0 / size.n)
    runs = []
    for slack in SLACKS if method == PAIRWISE else (0.0,):
        for rate in size.rates:
            noise = noise_of(size, method, epsilon, slack)
            models = learn(replace(plan, rate=rate), population, [matrix] * plan.rounds, noise, columns=size.trials)
            own = models[:1] if method in (CURATOR, NOTHING) else models
            runs.append((slack, rate, _scores(own, test), _scores(models.mean(axis=0, keepdims=True), test)))
    slack, rate, scores, of_mean = max(runs, key=lambda run: run[2].mean())
    sigma, pair_sigma = amounts_of(size, method, epsilon, slack)
    largest = float(max(np.mean(data.labels > 0.0), np.mean(data.labels < 0.0)))
    return {
        "accuracy": float(scores.mean()),
        "deviation": float(scores.std()),
        "of_mean": float(of_mean.mean()),
        "rate": rate,
        "slack": slack,
        "sigma": sigma,
        "pair_sigma": pair_sigma,
        "rates": [float(run[2].mean()) for run in runs if run[0] == slack],
        "majority": largest,
    }


def _scores(models: Floats, test: Examples) -> Floats:
    """Return the mean accuracy of users' models, [user, trial, number], of each trial."""
    objective = LogisticRegression()
    return np.array([np.mean([objective.score(model, test) or 0.0 for model in of]) for of in models.swapaxes(0, 1)])


def step_mu(size: Learning, epsilon: float) -> float:
    """Return the mu of one step, over the sensitivity of a gradient."""
    return gaussian.mu_of_curve(epsilon, DELTA) / (2.0 * size.clip * math.sqrt(size.steps))


def amounts_of(size: Learning, method: str, epsilon: float, slack: float) -> tuple[float, float]:
    """Return the standard deviations of a user's own noise and of the noise of a pair, in each step."""
    mu = step_mu(size, epsilon)
    if method == PAIRWISE:
        found = pair_noise_of(size.n, size.degree, size.colluders, mu, slack)
        return found.sigma, found.pair_sigma
    return {NOTHING: 0.0, LOCAL: 1.0 / mu, CURATOR: 1.0 / (mu * math.sqrt(size.n))}[method], 0.0


def noise_of(size: Learning, method: str, epsilon: float, slack: float) -> Callable[[int], Floats | None]:
    """Return the noise of a step by its number: [user, trial, number]."""
    if method == NOTHING:
        return lambda _visit: None
    sigma, pair_sigma = amounts_of(size, method, epsilon, slack)
    random = np.random.Generator(np.random.Philox(key=[SEED, round(1000 * epsilon)]))
    shape = (size.n, size.trials, _NUMBERS)
    heads, tails = ends_of(regular(size.n, size.degree))

    def drawn(_visit: int) -> Floats:
        each = sigma * random.standard_normal(shape)
        if pair_sigma:
            pairs = pair_sigma * random.standard_normal((len(heads), *shape[1:]))
            np.add.at(each, heads, pairs)
            np.subtract.at(each, tails, pairs)
        return each

    return drawn


def _plan(size: Learning, columns: int, rounds: int) -> GossipSgdPlan:
    spec = Spec(
        run=RunPart("gossip.sgd", size.n, seed=SEED),
        graph=GraphPart("regular", degree=size.degree),
        options=GossipPart(rounds=rounds),
        noise=NoisePart("gaussian", sigma=1.0),
        data=DataPart("csv", path="-", target="class", unit_norm=True),
        task=TaskPart("logistic_regression", clip=size.clip, rate=1.0, rounds=size.steps),
        privacy=PrivacyPart(delta=DELTA),
    )
    plan: GossipSgdPlan = plan_run(spec, size.n, columns, None, sampler="seeded").plan
    return plan


def relative_error(n: int, noise: PairNoise, mu: float) -> float:
    """Return the error of the sum over that of a trusted curator, which needs 1 / mu."""
    return math.sqrt(n) * noise.sigma * mu
