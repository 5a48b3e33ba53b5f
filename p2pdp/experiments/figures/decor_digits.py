"""[AKFJG24] on digits: noise that cancels between pairs among 16 users on a ring, a torus and a complete graph.

As in the paper's experiments on pictures: 16 users, three graphs, one round of averaging after each step (K = 1), and
noise that is enough for whoever sees all messages and has no secret of any pair. Unlike there, pictures are the 8 x 8
digits of scikit-learn, the model is linear, each step takes all of a user's rows, so that nothing is sampled, and the
rate and the share of pair noise are the best of a few, for every method alike.

The unit is one row, replaced: it moves the sum of a user's clipped gradients by 2 at each step. The paper adds up Rényi
divergences, and the curve of one Gaussian is exact. Both hold if nobody colludes: a colluder knows what its neighbours
share with it, and the same noise then protects less, as its table says.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.core.spec import GraphPart
from p2pdp.experiments.contract import (
    Answers,
    Caption,
    Experiment,
    Line,
    Made,
    Picture,
    Piece,
    Setting,
    Table,
    holds,
    unknown,
)
from p2pdp.experiments.correlated import DIGITS, digits
from p2pdp.experiments.nets import Dealt, dealt
from p2pdp.experiments.style import Curve, draw_curves, legend_below, name_axes
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.pairwise import pair_leaks, pair_noise
from p2pdp.topology.components import ends_of
from p2pdp.topology.graphs import Graph, make_graph
from p2pdp.topology.weights import METROPOLIS, sparse_weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SEED: Final = 64
_DELTA: Final = 1e-5
USERS: Final = 16
_LOCAL, _PAIRS, _CURATOR, _NOTHING = "own noise", "pair noise", "trusted curator", "no noise"
_GRAPHS: Final = ("ring", "torus", "complete")
_ROUNDS: Final = (1, 10)  # of averaging after each step; one is the paper's


@dataclass(frozen=True, slots=True)
class _Size:
    steps: int = 100
    trials: int = 5
    epsilons: tuple[float, ...] = (1.0, 3.0, 10.0)
    rates: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0)
    slacks: tuple[float, ...] = (0.1, 1.0, 10.0)

    @property
    def facts(self) -> dict[str, Any]:
        return {name: list(one) if isinstance(one, tuple) else one for name, one in asdict(self).items()}


_QUICK: Final = _Size(steps=15, trials=2, epsilons=(3.0,), rates=(1.0,), slacks=(1.0,))


def _graph(kind: str) -> Graph:
    return make_graph(GraphPart(kind), USERS, _SEED)


def step_mu(size: _Size, epsilon: float) -> float:
    """Return the mu of one step in units of one row's gradient, which a replaced row moves twice as far."""
    return gaussian.mu_of_curve(epsilon, _DELTA) / (2.0 * math.sqrt(size.steps))


def amounts(kind: str, method: str, mu: float, slack: float) -> tuple[float, float]:
    """Return the deviations of own noise and of a pair's, on a sum of clipped gradients, in each step."""
    if method == _PAIRS:
        found = pair_noise(_graph(kind), mu, slack)
        return found.sigma, found.pair_sigma
    return {_LOCAL: 1.0 / mu, _CURATOR: 1.0 / (mu * math.sqrt(USERS)), _NOTHING: 0.0}[method], 0.0


def printed(mu: float) -> float:
    """Return epsilon as the paper adds it up: from Rényi divergences, at the best order."""
    return mu * mu / 2.0 + mu * math.sqrt(2.0 * math.log(1.0 / _DELTA))


def learned(setting: Setting, size: _Size, kind: str, method: str, rounds: int) -> dict[str, Any]:
    """Return for each epsilon the mean accuracy of users' own models, with its standard error over trials."""
    features, targets = digits(setting)
    graph = _graph(kind)
    weights = np.linalg.matrix_power(sparse_weights(graph, METROPOLIS).toarray(), rounds)
    if method in (_CURATOR, _NOTHING):
        weights = np.full((USERS, USERS), 1.0 / USERS)
    found = []
    for epsilon in size.epsilons if method != _NOTHING else (math.inf,):
        runs = []
        for slack in size.slacks if method == _PAIRS else (0.0,):
            noise = amounts(kind, method, step_mu(size, epsilon) if method != _NOTHING else 1.0, slack)
            for rate in size.rates:
                scores = []
                for trial in range(size.trials):
                    random = np.random.Generator(np.random.Philox(key=[_SEED, trial]))
                    rows = dealt(features, targets, USERS, 1, random)
                    models = _descended(rows, graph, weights, size.steps, rate, noise, random)
                    scores.append(DIGITS.net.measure(models, rows.test_features, rows.test_targets))
                runs.append((float(np.mean(scores)), float(np.std(scores)), rate, slack, noise))
        best, spread, rate, slack, noise = max(runs)
        error = spread / math.sqrt(max(1, size.trials - 1))
        told = {"accuracy": best, "error": error, "rate": rate, "slack": slack, "sigma": noise[0], "pair": noise[1]}
        found.append(told)
    return {"found": found}


def _descended(
    rows: Dealt,
    graph: Graph,
    weights: Floats,
    steps: int,
    rate: float,
    noise: tuple[float, float],
    random: np.random.Generator,
) -> Floats:
    net, (heads, tails), counts = DIGITS.net, ends_of(graph), rows.counts[:, 0]
    models = np.tile(net.start(random), (USERS, 1))
    for _ in range(steps):
        sums = net.clipped(models, rows.features[:, 0], rows.targets[:, 0], counts)
        if noise[0]:
            sums = sums + noise[0] * random.standard_normal(sums.shape)
        if noise[1]:
            pairs = noise[1] * random.standard_normal((len(heads), net.size))
            np.add.at(sums, heads, pairs)
            np.subtract.at(sums, tails, pairs)
        models = weights @ (models - rate * sums / counts[:, None])
    return models


def accounts(size: _Size, kind: str, slack: float) -> list[list[float | str]]:
    """Return for each epsilon what the paper adds up, the exact one, and that of the same noise if user 0 colludes."""
    found: list[list[float | str]] = []
    for epsilon in size.epsilons:
        noise = pair_noise(_graph(kind), step_mu(size, epsilon), slack)
        told: list[float | str] = []
        for without in ((), (0,)):
            leak = float(np.nanmax(pair_leaks(_graph(kind), noise.sigma, noise.pair_sigma, without)))
            told.append(2.0 * math.sqrt(size.steps * leak))
        alone, colluding = (float(mu) for mu in told)
        found.append([kind, epsilon, printed(alone), *(gaussian.epsilon_of(_DELTA, mu) for mu in (alone, colluding))])
    return found


def _cases() -> list[tuple[str, str, int]]:
    """Return graph, method and rounds; neither a curator nor a complete graph needs several."""
    found = [(kind, method, rounds) for kind in _GRAPHS for method in (_LOCAL, _PAIRS)
             for rounds in (_ROUNDS if kind != "complete" else _ROUNDS[:1])]  # fmt: skip
    return [*found, ("complete", _CURATOR, 1), ("complete", _NOTHING, 1)]


def _key(kind: str, method: str, rounds: int) -> str:
    return f"{kind}-{method.replace(' ', '-')}-{rounds}"


def _size(setting: Setting) -> _Size:
    return _QUICK if setting.quick else _Size()


def _pieces(setting: Setting) -> list[Piece]:
    size = _size(setting)
    return [
        Piece(_key(*case), partial(learned, setting, size, *case), {"seed": _SEED, "users": USERS, **size.facts})
        for case in _cases()
    ]


def _lines(setting: Setting, answers: Answers) -> list[Line]:
    size = _size(setting)
    epsilon, place = size.epsilons[len(size.epsilons) // 2], len(size.epsilons) // 2
    lines = []
    for kind in _GRAPHS:
        _, _, added, exact, colluding = accounts(size, kind, size.slacks[0])[place]
        lines += [
            holds(f"{kind}: epsilon of noise made for {epsilon:g}", float(exact), f"{float(added):.4g}",
                  true=float(exact) <= float(added), why="agrees where what the paper adds up is a bound"),
            unknown(f"{kind}: epsilon of the same noise if user 0 colludes", float(colluding),
                    "of the worst user left; the paper adds up for nobody colluding"),
        ]  # fmt: skip
    curator = answers[_key("complete", _CURATOR, 1)]["found"][place]["accuracy"]
    for kind in _GRAPHS:
        own, pairs = (answers[_key(kind, method, 1)]["found"][place]["accuracy"] for method in (_LOCAL, _PAIRS))
        lines.append(
            holds(f"{kind}: accuracy at epsilon {epsilon:g} with pair noise, K = 1", pairs, "better than own noise",
                  true=pairs > own, why=f"own noise: {own:.3f}, curator: {curator:.3f}; other pictures and model")
        )  # fmt: skip
    return lines


def _make(setting: Setting, answers: Answers) -> Made:
    size = _size(setting)
    keys = ("accuracy", "error", "rate", "slack", "sigma", "pair")
    rows = [
        [kind, method, rounds, epsilon, *(one[key] for key in keys)]
        for kind, method, rounds in _cases()
        for epsilon, one in zip(
            size.epsilons if method != _NOTHING else ("inf",), answers[_key(kind, method, rounds)]["found"], strict=True
        )
    ]
    named = ("accuracy", "standard error", "rate", "slack", "sigma", "pair sigma")
    units = ("graph", "made for", "as the paper adds up", "exact", "if user 0 colludes")
    told = [row for kind in _GRAPHS for row in accounts(size, kind, size.slacks[0])]
    tables = (
        Table("", ("graph", "method", "rounds", "epsilon", *named), rows),
        Table("epsilons", units, told),
    )
    return Made(tables, tuple(_lines(setting, answers)), (Picture("", 9.2, 3.6, partial(_draw, size, answers)),))


def _draw(size: _Size, answers: Answers, figure: Figure) -> None:
    panels: Any = figure.subplots(1, len(_GRAPHS), sharey=True)
    for axes, kind in zip(panels, _GRAPHS, strict=True):
        shown = [(k, method, rounds) for k, method, rounds in _cases() if k == kind and method in (_LOCAL, _PAIRS)]
        shown.append(("complete", _CURATOR, 1))
        for look, (of, method, rounds) in enumerate(shown):
            found = answers[_key(of, method, rounds)]["found"]
            middle = [one["accuracy"] for one in found]
            low, high = ([one["accuracy"] + sign * one["error"] for one in found] for sign in (-1.0, 1.0))
            label = method if method == _CURATOR else f"{method}, K = {rounds}"
            place = (look if len(shown) > 3 else 2 * look) if method != _CURATOR else 4
            draw_curves(axes, [Curve(label, list(size.epsilons), middle, low, high, look=place)])
        (free,) = answers[_key("complete", _NOTHING, 1)]["found"]
        axes.axhline(free["accuracy"], color="0.4", linewidth=0.9, label=_NOTHING)
        axes.set_xscale("log")
        axes.set_xticks(list(size.epsilons), [f"{one:g}" for one in size.epsilons])
        axes.minorticks_off()
        upright = "accuracy" if kind == _GRAPHS[0] else ""
        name_axes(axes, f"{kind}, {size.steps} steps", r"$\varepsilon$ of a row, all messages", upright)
    legend_below(figure, panels[0], 3)


DECOR_DIGITS: Final = Experiment(
    name="decor-digits",
    title="Learning digits with noise that cancels between pairs, on three graphs",
    pieces=_pieces,
    make=_make,
    caption=Caption(
        shows="Three panels, a ring, a torus and a complete graph, with curves of the accuracy on digits against "
        "epsilon, logarithmic; bars are one standard error over trials. The line without points is learning without "
        "noise.",
        compares="Own noise alone, noise that cancels between pairs, each with one and with ten rounds of averaging a "
        "step, and a trusted curator, at the same exact epsilon of one row.",
        see="With pair noise the complete graph learns as a curator does; on a ring and a torus it takes more rounds "
        "of averaging than the paper's one.",
        paper="Correlated noise learns nearly as well as with a trusted curator on three graphs of 16 users.",
        no_bound="What the paper adds up is a bound, but loose, and holds while nobody colludes.",
    ),
    seeds=(_SEED,),
)
