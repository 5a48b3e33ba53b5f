"""Logistic regression by a walk over the papers' tables: the published experiment, and ours at the same epsilon.

The published one [ABR23, section 5] as its text and its authors' code have it: columns standardized by the
pooled table, rows of unit length with an intercept, 80 % to learn from, the same number of rows for each user, noise by
`privacy.theorems.sgd_calibration`, rates 0.067 (local) and 0.034; noise is added first and the sum shortened to L;
after 1.25 T/n contributions a user adds noise only (local: nothing). Ours is `walk.sgd` as it runs live: each
example's gradient is shortened first, then noised, and the noise is what `plan --target-epsilon` finds for the
same epsilon against one other user, at the same rate, or where that noise is above 1 at one that is so much lower
(what is told does not depend on a constant rate). Standardizing by the pooled table costs privacy that nobody counts
here either.

Trials are side by side in one pass over the steps; all differ in path and noise, none in how rows are dealt out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.errors import Refused
from p2pdp.core.spec import DataPart, GraphPart, NoisePart, PrivacyPart, RunPart, Spec, TaskPart
from p2pdp.experiments.contract import Piece, Setting
from p2pdp.experiments.inputs import Labelled, table
from p2pdp.privacy.contract import account
from p2pdp.protocols.run_plan import plan_run
from p2pdp.protocols.walk.options import WalkPart
from p2pdp.protocols.walk.sgd import SgdPlan
from p2pdp.runs.target import Planned, target_of
from p2pdp.tasks.descending import Population, visits_along
from p2pdp.tasks.descent import Descent
from p2pdp.tasks.examples import Examples, examples_of
from p2pdp.tasks.regression import LogisticRegression

SEED: Final = 20_220_328
DELTA: Final = 1e-6
METHODS: Final = ("central", "local", "network")
OURS: Final = "ours"
_RATES: Final = {"central": 0.0341667, "local": 0.0673333, "network": 0.0341667}
_MORE: Final = 1.25  # contributions allowed, in multiples of T/n, where a case does not say how many
_BLOCK: Final = 256  # steps whose noise is drawn at a time
_LEARNED: Final = 0.8


@dataclass(frozen=True, slots=True)
class Case:
    """One setting of the experiment; `updates` is how often a user may contribute, None for 1.25 T/n."""

    data: str = "houses"
    n: int = 2000
    steps: int = 20_000
    epsilon: float = 10.0
    updates: int | None = None
    lipschitz: float = 0.4
    trials: int = 24
    points: int = 40  # of each curve


def quick(case: Case) -> Case:
    """Return a smaller case with a twentieth of the users and steps, for a stand-in or a glance."""
    return Case(case.data, case.n // 20, case.steps // 20, case.epsilon, case.updates, case.lipschitz, 2, 10)


def case_in(setting: Setting, case: Case) -> Case:
    return quick(case) if setting.quick else case


def named(setting: Setting, case: Case, *, epsilon: bool = True) -> str:
    """Return the case in a picture, as it is really run."""
    case = case_in(setting, case)
    sizes = f"n = {case.n:,} users, T = {case.steps:,} steps"
    return f"{sizes}, ε = {case.epsilon:g}" if epsilon else sizes


def piece(setting: Setting, key: str, case: Case) -> Piece:
    case = case_in(setting, case)
    return Piece(key, lambda: learned(setting, case), {**asdict(case), "seed": SEED})


def learned(setting: Setting, case: Case) -> dict[str, Any]:
    """Return the steps, and for each method accuracy on test rows and loss on learned rows, with deviations."""
    users, train, test = dealt(table(setting, case.data), case.n)
    columns = train.features.shape[1] - 1
    found: dict[str, Any] = {"columns": columns, "noise": noise_levels(case)}
    watched = Watched(train, test, case)
    _published(case, users, found["noise"], watched)
    for place, method in enumerate(METHODS):
        found[method] = watched.told(slice(place * case.trials, (place + 1) * case.trials))
    plan, sigma = our_plan(case, columns)
    watched = Watched(train, test, case)
    _our_walk(case, plan, sigma, users, watched)
    found[OURS] = watched.told(slice(None))
    found["noise"] |= {OURS: sigma}
    found |= {"steps": watched.steps, "trials": case.trials}
    return found


def dealt(data: Labelled, n: int, *, ranges: bool = False) -> tuple[list[Examples], Examples, Examples]:
    """Return each user's rows, all learned rows, and the test rows, with as many of each class as in the table.

    Columns are standardized by mean and deviation, or with `ranges` mapped from their ranges to -1 and 1.
    """
    low, high = data.features.min(axis=0), data.features.max(axis=0)
    middle = (low + high) / 2.0 if ranges else data.features.mean(axis=0)
    spread = (high - low) / 2.0 if ranges else data.features.std(axis=0)
    features = (data.features - middle) / np.where(spread > 0.0, spread, 1.0)
    lengths = np.sqrt((features * features).sum(axis=1, keepdims=True))
    features = np.column_stack([features / np.where(lengths > 0.0, lengths, 1.0), np.ones(len(features))])
    random = np.random.Generator(np.random.Philox(key=SEED))
    kept: list[int] = []
    left: list[int] = []
    for label in (-1.0, 1.0):
        rows = random.permutation(np.flatnonzero(data.labels == label))
        cut = round(_LEARNED * len(rows))
        kept += rows[:cut].tolist()
        left += rows[cut:].tolist()
    order = random.permutation(np.array(kept))
    bound = float(np.nextafter(np.sqrt(2.0), 2.0))
    each = len(order) // n
    users = [order[user * each : (user + 1) * each] for user in range(n)]
    made = [examples_of(features[rows], data.labels[rows], bound) for rows in (*users, order, np.array(left))]
    return made[:-2], made[-2], made[-1]


def noise_levels(case: Case) -> dict[str, float]:
    """Return noise levels by the published recipe; methods for which it has none are left out."""
    each = 1.2 if case.updates is None else (case.updates - 1e-9) * case.n / case.steps
    try:
        found = account("sgd_calibration", {
            "epsilon": case.epsilon, "delta": DELTA, "lipschitz": case.lipschitz, "n": case.n, "hops": case.steps,
            "contributions": each,
        }).outputs  # fmt: skip
    except Refused:
        return {}
    return {
        "local": found["sigma_local"], "central": found["sigma_central"], "network": found["sigma_network"],
        "network_first": found["sigma_network_first"],
    }  # fmt: skip


def our_plan(case: Case, columns: int) -> tuple[SgdPlan, float]:
    """Plan `walk.sgd` with the noise that keeps what one other user learns within epsilon, soundly."""
    return _sound_plan(case.n, case.steps, case.epsilon, case.lipschitz, columns)


@cache
def _sound_plan(n: int, steps: int, epsilon: float, lipschitz: float, columns: int) -> tuple[SgdPlan, float]:
    spec = Spec(
        run=RunPart("walk.sgd", n),
        graph=GraphPart("complete"),
        noise=NoisePart("gaussian", sigma=1.0),
        data=DataPart("csv", path="-", target="class", unit_norm=True),
        task=TaskPart("logistic_regression", clip=lipschitz, rate=_RATES["network"]),
        options=WalkPart("random", hops=steps),
        privacy=PrivacyPart(delta=DELTA),
    )
    run = plan_run(spec, n, columns + 1, None, sampler="seeded")
    sigma = target_of(Planned(run, None, one_value=False), epsilon).value
    slower = replace(spec, task=replace(spec.task, rate=_RATES["network"] / max(1.0, sigma)))
    return plan_run(slower, n, columns + 1, None, sampler="seeded").plan, sigma


class Watched:
    """Looks at all models now and then."""

    def __init__(self, train: Examples, test: Examples, case: Case) -> None:
        self._objective = LogisticRegression()
        self._train, self._test = train, test
        every = max(1, case.steps // case.points)
        self.steps = [0, *range(every, case.steps + 1, every)]
        self._due = frozenset(self.steps)
        self._seen: list[list[tuple[float, float]]] = []

    def look(self, step: int, models: Floats) -> None:
        if step in self._due:
            self._seen.append(
                [
                    (self._objective.score(model, self._test) or 0.0, self._objective.loss(model, self._train))
                    for model in models
                ]
            )

    def told(self, lanes: slice) -> dict[str, list[float]]:
        seen = np.array(self._seen)[:, lanes]
        mean, deviation = seen.mean(axis=1), seen.std(axis=1)
        return {
            "accuracy": mean[:, 0].tolist(), "accuracy_deviation": deviation[:, 0].tolist(),
            "loss": mean[:, 1].tolist(), "loss_deviation": deviation[:, 1].tolist(),
        }  # fmt: skip


def _paths(case: Case, lanes: int, number: int) -> tuple[Ints, np.random.Generator]:
    """Return the token's holder at each step of each lane, and the generator of the noise."""
    random = np.random.Generator(np.random.Philox(key=[SEED, number]))
    return random.integers(case.n, size=(case.steps, lanes)), random


def _blocks(random: np.random.Generator, lanes: int, numbers: int) -> Callable[[int], Floats]:
    """Yield the standard normal numbers of a step, counted from 1 and asked for in turn."""
    drawn = np.empty(0)

    def of(step: int) -> Floats:
        nonlocal drawn
        place = (step - 1) % _BLOCK
        if place == 0:
            drawn = random.standard_normal((_BLOCK, lanes, numbers))
        return np.asarray(drawn[place])

    return of


def _published(case: Case, users: list[Examples], noise: dict[str, float], watched: Watched) -> None:
    """Run all trials of the three methods side by side: lanes of central, then of local, then of network."""
    lanes = len(METHODS) * case.trials
    method = np.repeat(np.arange(len(METHODS)), case.trials)
    sigma = np.array([noise.get(name, 0.0) for name in METHODS])[method][:, None]
    rate = np.array([_RATES[name] for name in METHODS])[method][:, None]
    allowed = case.updates if case.updates is not None else _MORE * case.steps / case.n
    most = np.array([np.inf, allowed, allowed])[method]
    path, random = _paths(case, lanes, 1)
    visits = np.stack([visits_along(path[:, [lane]])[:, 0] for lane in range(lanes)], axis=1)
    numbers = users[0].features.shape[1]
    normal = _blocks(random, lanes, numbers)
    population = Population(_unclipped(numbers), users)
    models = np.zeros((lanes, numbers))
    watched.look(0, models)
    for step in range(1, case.steps + 1):
        spent = visits[step - 1] >= most
        moved = population.contributions(models, path[step - 1], visits[step - 1])
        moved[spent] = 0.0
        silent = spent & (method == METHODS.index("local"))
        moved += np.where(silent[:, None], 0.0, sigma) * normal(step)
        lengths = np.sqrt((moved * moved).sum(axis=1, keepdims=True))
        models = models - rate * moved * np.minimum(1.0, case.lipschitz / np.maximum(lengths, 1e-300))
        watched.look(step, models)


def _unclipped(numbers: int) -> Descent:
    """Clip nothing: gradients of rows no longer than sqrt(2) are never longer than that."""
    objective = LogisticRegression()
    return Descent(objective, objective.guarantees(2.0), numbers, 2.0, -40)


def _our_walk(case: Case, plan: SgdPlan, sigma: float, users: list[Examples], watched: Watched) -> None:
    path, random = _paths(case, case.trials, 2)
    visits = np.stack([visits_along(path[:, [lane]])[:, 0] for lane in range(case.trials)], axis=1)
    normal = _blocks(random, case.trials, plan.descent.dimension)
    watched.look(0, np.zeros((case.trials, plan.descent.dimension)))
    Population(plan.descent, users).descend(
        path,
        visits,
        plan.rates,
        lambda step: sigma * normal(step),
        lambda step, _before, after: watched.look(step, after),
    )
