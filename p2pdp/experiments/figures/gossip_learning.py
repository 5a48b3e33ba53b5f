"""[CEBM22, Figure 1c and Table 2]: logistic regression on houses by gossip among 2,000 and 4,000 users.

As printed: 10 trials, steps of 0.7, Erdős–Rényi graphs of probability ln n / n drawn anew for each round, rows of unit
length split over the users, and as a baseline a trusted aggregator that takes the same steps with the noise that the
mean of all gradients has. The paper prints neither the noise nor how many gradients: here they are `_SIGMA` times the
clip and `_GRADIENTS`. Privacy is what user 0 learns: by the paper's sum over messages (Theorem 11), and soundly by
composition over each user's gradients, which is the local value and all that is proved for learning.

A user's model is looked at before the last round of gossip of each block. Trials have graphs in common.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from p2pdp.core.spec import DataPart, GraphPart, NoisePart, PrivacyPart, RunPart, Spec, TaskPart
from p2pdp.experiments.contract import (
    JSON,
    Answers,
    Caption,
    Experiment,
    Made,
    Picture,
    Piece,
    Setting,
    Table,
    holds,
    unknown,
)
from p2pdp.experiments.descents import dealt
from p2pdp.experiments.inputs import table, table_file
from p2pdp.experiments.style import Curve, draw_curves, name_axes
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.renyi import renyi_epsilons
from p2pdp.protocols.gossip.analysis.descent_account import printed_leaks
from p2pdp.protocols.gossip.analysis.fast import changing_rounds
from p2pdp.protocols.gossip.options import GossipPart
from p2pdp.protocols.gossip.sgd import GossipSgdPlan, learn
from p2pdp.protocols.run_plan import plan_run
from p2pdp.tasks.descending import Population
from p2pdp.tasks.examples import Examples
from p2pdp.tasks.regression import LogisticRegression

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SEED: Final = 14
_DELTA: Final = 1e-6
_USERS: Final = (2000, 4000)
_USERS_QUICK: Final = (40, 80)
_TRIALS: Final = 10
_TRIALS_QUICK: Final = 2
_GRADIENTS: Final = 30
_GRADIENTS_QUICK: Final = 10
_RATE: Final = 0.7
_CLIP: Final = 1.0  # of each example's gradient: the logistic loss of rows of unit length is 1-Lipschitz
_SIGMA: Final = 4.0
_LOOKED_AT: Final = 16  # users, evenly spread
_GAIN: Final = 0.99
_NEAR: Final = 0.02  # of the accuracy


def _plan(n: int, gradients: int, columns: int) -> GossipSgdPlan:
    spec = Spec(
        run=RunPart("gossip.sgd", n, seed=_SEED),
        graph=GraphPart("erdos_renyi", probability=math.log(n) / n, changing=True),
        options=GossipPart(rounds="auto", accelerated=True),
        noise=NoisePart("gaussian", sigma=_SIGMA),
        data=DataPart("csv", path="-", target="class", unit_norm=True),
        task=TaskPart("logistic_regression", clip=_CLIP, rate=_RATE, rounds=gradients),
        privacy=PrivacyPart(delta=_DELTA),
    )
    plan: GossipSgdPlan = plan_run(spec, n, columns, None, sampler="seeded").plan
    return plan


def _learned(setting: Setting, n: int, trials: int, gradients: int) -> dict[str, JSON]:
    users, _, test = dealt(table(setting, "houses"), n)
    numbers = users[0].features.shape[1]
    plan = _plan(n, gradients, numbers)
    assert plan.coin is not None
    matrices = list(changing_rounds(plan, plan.coin, _SEED))
    population = Population(plan.descent, users)
    random = np.random.Generator(np.random.Philox(key=[_SEED, n]))
    objective, looked = LogisticRegression(), np.unique(np.linspace(0, n - 1, _LOOKED_AT).astype(np.int64))
    seen: list[list[float]] = []

    def watch(number: int, models: Any) -> None:
        if number % plan.block == 0:
            each = [[objective.score(model, test) or 0.0 for model in of] for of in models[looked].swapaxes(0, 1)]
            seen.append(np.mean(each, axis=1).tolist())

    noise = partial(_noise, random, (n, trials, numbers))
    learn(plan, population, matrices, noise, columns=trials, watch=watch)
    leak = np.delete(printed_leaks(plan, matrices, [[0]])[:, 0], 0)
    mu = 2.0 * _CLIP / _SIGMA
    return {
        "block": plan.block,
        "gossip": seen,
        "trusted": _trusted(plan, population, n, trials, test),
        "printed_leak": np.quantile(leak, np.linspace(0.0, 1.0, 21)).tolist(),
        "printed_leak_mean": float(leak.mean()),
        "epsilon_printed": renyi_epsilons(mu**2 * np.quantile(leak, np.linspace(0.0, 1.0, 21)), _DELTA).tolist(),
        "epsilon_printed_mean": float(renyi_epsilons(mu**2 * leak, _DELTA).mean()),
        "epsilon_sound": gaussian.epsilon_of(_DELTA, mu * math.sqrt(gradients)),
    }


def _noise(random: np.random.Generator, shape: tuple[int, ...], _visit: int) -> Any:
    return _SIGMA * random.standard_normal(shape)


def _trusted(plan: GossipSgdPlan, population: Population, n: int, trials: int, test: Examples) -> list[list[float]]:
    """Return the accuracy of each trial after each step along the noised mean gradient."""
    random = np.random.Generator(np.random.Philox(key=[_SEED + 1, n]))
    models, who, seen = np.zeros((trials, plan.shape[0])), np.arange(n), []
    for visit in range(plan.gradients):
        for trial in range(trials):
            each = population.contributions(np.tile(models[trial], (n, 1)), who, np.full(n, visit))
            drawn = random.normal(0.0, _SIGMA / math.sqrt(n), plan.shape[0])
            models[trial] -= plan.rate_at(visit + 1) * (each.mean(axis=0) + drawn)
        seen.append([LogisticRegression().score(model, test) or 0.0 for model in models])
    return seen


def _size(setting: Setting) -> tuple[tuple[int, ...], int, int]:
    if setting.quick:
        return _USERS_QUICK, _TRIALS_QUICK, _GRADIENTS_QUICK
    return _USERS, _TRIALS, _GRADIENTS


def _pieces(setting: Setting) -> list[Piece]:
    users, trials, gradients = _size(setting)
    facts = {"trials": trials, "gradients": gradients, "rate": _RATE, "sigma": _SIGMA, "clip": _CLIP, "seed": _SEED}
    return [Piece(f"n-{n}", partial(_learned, setting, n, trials, gradients), {"n": n, **facts}) for n in users]


def _make(setting: Setting, answers: Answers) -> Made:
    users, _, gradients = _size(setting)
    found = {n: answers[f"n-{n}"] for n in users}
    few, many = (found[n]["printed_leak_mean"] / gradients for n in users)
    lines = [
        holds(
            f"mean printed leak over local, n = {users[0]} and {users[1]}",
            f"{few:.4g} and {many:.4g}",
            "clear gains over LDP that increase with the number of nodes",
            true=many < few < 1.0,
            why="section 5; of the sum over messages, which bounds the mean but no pair",
        ),
        holds(
            f"sound epsilon, n = {users[0]} and {users[1]}",
            f"{found[users[0]]['epsilon_sound']:.4g} and {found[users[1]]['epsilon_sound']:.4g}",
            "clear gains over LDP that increase with the number of nodes",
            true=found[users[1]]["epsilon_sound"] < _GAIN * found[users[0]]["epsilon_sound"],
            why="what is proved for gradients that depend on what was heard before is composition over them, for any n",
        ),
    ]
    for n, one in found.items():
        gap = float(np.mean(one["trusted"][-1]) - np.mean(one["gossip"][-1]))
        lines.append(
            holds(
                f"n = {n}: accuracy of the trusted aggregator less that of gossip, in the end",
                gap,
                "the same behavior",
                true=abs(gap) < _NEAR,
                why=f"section 5; within {_NEAR}; {len(one['gossip'][0])} trials, steps of {_RATE} (Table 2)",
            )
        )
        lines.append(
            unknown(
                f"n = {n}: accuracy by gossip in the end",
                float(np.mean(one["gossip"][-1])),
                f"printed in a picture only; noise and number of gradients are ours; local epsilon "
                f"{one['epsilon_sound']:.4g}, mean by the printed sum {one['epsilon_printed_mean']:.4g}",
            )
        )
    if setting.data is None:
        lines = [unknown(line.what, line.ours, "of a stand-in, not of the paper's table") for line in lines]
    rows = [
        [n, step + 1, float(np.mean(one["gossip"][step])), float(np.std(one["gossip"][step])),
         float(np.mean(one["trusted"][step])), float(np.std(one["trusted"][step]))]
        for n, one in found.items()
        for step in range(len(one["gossip"]))
    ]  # fmt: skip
    columns = ("n", "gradients", "accuracy gossip", "deviation", "accuracy trusted", "deviation trusted")
    leaks = [
        [n, 5 * at, *numbers]
        for n, one in found.items()
        for at, numbers in enumerate(zip(one["printed_leak"], one["epsilon_printed"], strict=True))
    ]
    tables = (Table("", columns, rows), Table("leaks", ("n", "percentile of users", "printed leak", "epsilon"), leaks))
    return Made(tables, tuple(lines), (Picture("", 7.4, 3.8, partial(_draw, found=found)),))


def _draw(figure: Figure, found: dict[int, Answers]) -> None:
    left, right = figure.subplots(1, 2)
    for at, (n, one) in enumerate(found.items()):
        curves = []
        for kind, (name, label) in enumerate((("gossip", "gossip"), ("trusted", "trusted aggregator"))):
            seen = np.array(one[name])
            mean, spread = seen.mean(axis=1), seen.std(axis=1)
            steps = list(range(1, len(mean) + 1))
            ends = ((mean - spread).tolist(), (mean + spread).tolist())
            curves.append(Curve(f"{label}, n = {n:,}", steps, mean.tolist(), *ends, look=2 * at + kind, band=True))
        draw_curves(left, curves)
        percent = np.linspace(0.0, 100.0, len(one["epsilon_printed"])).tolist()
        draw_curves(right, [Curve(f"printed sum, n = {n:,}", percent, one["epsilon_printed"], look=2 * at)])
    sound = next(iter(found.values()))["epsilon_sound"]
    right.axhline(sound, color="black", linewidth=1.0, label="sound: local composition, any n")
    right.set_yscale("log")
    name_axes(left, "Houses: accuracy (bands: one deviation)", "gradients of each user", "accuracy on test rows")
    name_axes(
        right, r"$\varepsilon$ towards user 0, $\delta = 10^{-6}$", "percentile of the other users", r"$\varepsilon$"
    )
    handles = [*left.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)


FIGURE_1C: Final = Experiment(
    "004-fig1c",
    "Learning by gossip: accuracy and privacy, with Table 2",
    _pieces,
    _make,
    caption=Caption(
        shows="Left curves of the accuracy on test rows against the number of gradients of each user, with "
        "bands of one deviation; right epsilon towards user 0, logarithmic, over the other users in "
        "order.",
        compares="Gossip and a trusted aggregator, for two numbers of users; right the paper's sum over messages "
        "against the sound composition of local losses.",
        see="How near gossip comes to the aggregator for each number of users, and how far the printed sums are from "
        "the sound line, which is the same for every user.",
        paper="Gossip learns nearly as well as a trusted aggregator at a better privacy loss (Table 2).",
        no_bound="The sum over messages (Theorem 11) rests on the account by equation (6), which is no bound for "
        "pairs; what is proved for learning is the local composition.",
    ),
    needs=(table_file("houses"),),
    seeds=(_SEED,),
)
