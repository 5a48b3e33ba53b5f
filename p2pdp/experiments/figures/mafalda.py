"""[BCFGLT26]: learning by gossip with noise that is correlated over time, on houses and on digits, and its accounting.

What whoever sees all messages learns of a row is told by the encoder alone, and soundly: all that gradients may depend
on is in that view. For what one other user sees the paper has the same formula for its part of the messages. That is
exact for gradients fixed beforehand, and no bound where they follow models that the observer does not see: for
quadratic losses the exact value is computed beside it, on a path of three users (`told_following`).

The paper counts a row against none. Where a row is replaced by another, mu is twice that, and a user's whole data are
all its rows in all batches. Paper: a network on 919 users at most, 20 seeds, Femnist with a convolutional network.
Here: the same network on houses, a linear model on the 8 x 8 digits of scikit-learn, fewer trials.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

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
from p2pdp.experiments.correlated import (
    CORRELATED,
    DIGITS,
    EGO,
    FLORENTINE,
    HOUSES,
    INDEPENDENT,
    LOCAL_BEST,
    MAFALDA,
    METHODS,
    NOTHING,
    SEED,
    Size,
    Task,
    encoded,
    florentine,
    graph_of,
    learned,
)
from p2pdp.experiments.factorized import (
    encoder_of,
    gossip_gram,
    neighbour_means,
    sensitivity,
    told,
    told_following,
    total_error,
)
from p2pdp.experiments.inputs import EGO_FILE, table_file
from p2pdp.experiments.style import Curve, draw_curves, legend_below, name_axes
from p2pdp.mechanisms import gaussian
from p2pdp.topology.graphs import Graph, make_graph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DELTA: Final = 1e-5
_QUICK: Final = Size(times=3, period=4, trials=2, mus=(0.05, 1.0))
_FULL: Final = Size()
_DIGITS: Final = Size(rates=(0.3, 1.0, 3.0), mus=(0.5, 1.0, 2.0, 5.0, 10.0))
_DIGITS_QUICK: Final = Size(times=3, period=4, trials=2, mus=(1.0, 5.0), rates=(1.0,))
CURVED: Final = (0.0, 1.5, 0.5)  # of the losses of the three users on a path, times the rate
_WATCHED: Final = 10  # steps, as in the paper's picture of distances
_NEAR: Final = 1e-6


def _size(setting: Setting, task: Task) -> Size:
    if task is DIGITS:
        return _DIGITS_QUICK if setting.quick else _DIGITS
    return _QUICK if setting.quick else _FULL


def _graphs(setting: Setting, task: Task) -> tuple[str, ...]:
    return (FLORENTINE,) if setting.quick or task is DIGITS else (FLORENTINE, EGO)


def _keyed(setting: Setting, task: Task) -> list[tuple[str, str]]:
    return [("ego" if graph == EGO else "florentine", graph) for graph in _graphs(setting, task)]


def leaks(setting: Setting) -> dict[str, Any]:
    """Return what user 0 is told of the others by their distance, on average, in parts of what local noise leaves."""
    steps = 4 if setting.quick else _WATCHED
    named: dict[str, Graph] = {FLORENTINE: florentine()}
    if not setting.quick:
        probability = math.log(100) / 100
        named["Erdős–Rényi, 100 users"] = make_graph(GraphPart("erdos_renyi", probability=probability), 100, SEED)
        named[EGO] = graph_of(setting, EGO)
    found = {}
    for name, graph in named.items():
        of_users, distance = told(neighbour_means(graph), steps, 0), _distances(graph)
        by = {int(d): float(of_users[distance == d].mean()) / steps for d in np.unique(distance[1:])}
        found[name] = [[one, by[one]] for one in sorted(by)]
    path = neighbour_means(make_graph(GraphPart("path"), 3, 0))
    exact = told_following(path, 2, 0, 1, np.array(CURVED))
    return {"by_distance": found, "printed": float(told(path, 2, 0)[1]), "following": exact, "steps": steps}


def _distances(graph: Graph) -> Any:
    distance, reached = np.full(graph.n, -1), [0]
    distance[0] = 0
    for user in reached:
        for other in graph.neighbours[user]:
            if distance[other] < 0:
                distance[other] = distance[user] + 1
                reached.append(other)
    return distance


def noise(setting: Setting, graph_name: str, size: Size) -> dict[str, Any]:
    """Return the squared error that each method's noise leaves in all models, over that of independent noise."""
    graph = graph_of(setting, graph_name)
    gram = gossip_gram(neighbour_means(graph), size.steps)
    grams = {method: encoded(graph, method, size) for method in CORRELATED}
    errors = {method: total_error(gram, one, size.period) for method, one in grams.items()}
    return {
        "error": {method: error / errors[INDEPENDENT] for method, error in errors.items()},
        "whole": {method: _of_user(one, size.period) for method, one in grams.items()},
    }


def _of_user(gram: Any, period: int) -> float:
    """Return how far all steps together move the encoder, over what those of one batch do."""
    return float(np.sqrt(np.abs(gram).sum())) / sensitivity(gram, period)


def all_seen() -> dict[str, Any]:
    """Return mu of one row by whoever sees all messages of a small run: from the whole view, and by the encoder."""
    size, graph = _QUICK, florentine()
    weights, users, steps = neighbour_means(graph), graph.n, size.steps
    gram = encoded(graph, MAFALDA, size)
    decoder = np.linalg.inv(encoder_of(gram))
    shifts = np.zeros((users, steps, users, steps))  # [model, step, contributor, its step]
    power = np.eye(users)
    for late in range(steps):
        for step in range(steps - late):
            shifts[:, step + late, :, step] = power
        power = weights @ power
    moved = shifts.reshape(users * steps, users * steps)
    noised = (shifts @ decoder).reshape(users * steps, users * steps)
    hit = np.zeros((users, steps))
    hit[0, :: size.period] = 1.0
    whitened = np.linalg.solve(noised, moved @ hit.reshape(-1))
    signed = gram[:: size.period, :: size.period]
    return {"from_view": float(np.sqrt(whitened @ whitened)), "by_encoder": float(np.sqrt(signed.sum()))}


def _pieces(task: Task, setting: Setting) -> list[Piece]:
    size = _size(setting, task)
    pieces = []
    for key, graph in _keyed(setting, task):
        for method in METHODS:
            work = partial(learned, setting, task, graph, method, size)
            pieces.append(Piece(f"{key}-{_key(method)}", work, {"graph": graph, "method": method, **size.facts}))
        pieces.append(Piece(f"{key}-noise", partial(noise, setting, graph, size), {"graph": graph, **size.facts}))
    if task is HOUSES:
        pieces.append(Piece("leaks", partial(leaks, setting), {"steps": _WATCHED, "quick": setting.quick}))
        pieces.append(Piece("all-seen", all_seen, _QUICK.facts))
    return pieces


def _key(method: str) -> str:
    return method.lower().replace(" ", "-")


def _at(answers: Answers, graph: str, method: str, mu: float) -> dict[str, Any]:
    found = answers[f"{graph}-{_key(method)}"]["found"]
    picked: dict[str, Any] = next(one for one in found if one["mu"] in (mu, "inf"))
    return picked


def _accounts(answers: Answers, size: Size) -> list[list[float | str]]:
    """Return the epsilons of each mu: as printed, of a row replaced, and of a user's whole data."""
    rows = answers[f"florentine-{_key(MAFALDA)}"]["rows"]
    found: list[list[float | str]] = []
    for mu in size.mus:
        whole = {method: 2.0 * rows * mu * answers["florentine-noise"]["whole"][method] for method in CORRELATED}
        epsilons = [gaussian.epsilon_of(_DELTA, one) for one in (mu, 2.0 * mu, whole[INDEPENDENT], whole[MAFALDA])]
        found.append([mu, *epsilons])
    return found


def _lines(task: Task, setting: Setting, answers: Answers) -> list[Line]:
    size, mu = _size(setting, task), 1.0
    errors = answers["florentine-noise"]["error"]
    lines = [
        holds(
            f"squared noise in all models over that of independent noise, {FLORENTINE}", errors[MAFALDA],
            "least of all local correlations", true=errors[MAFALDA] <= min(errors.values()),
            why=f"{LOCAL_BEST}: {errors[LOCAL_BEST]:.4g}; optimized for the very graph",
        )
    ]  # fmt: skip
    if task is HOUSES:
        seen, leak = answers["all-seen"], answers["leaks"]
        ratio = seen["from_view"] / seen["by_encoder"]
        lines += [
            holds("mu of a row by all messages, from all models, over that of the encoder", ratio, "equal",
                  true=abs(ratio - 1.0) <= _NEAR, why="a bound: gradients depend on nothing that is not in this view"),
            holds(
                "squared mu of user 1 by user 0 on a path of 3, 2 steps, where gradients follow the models",
                leak["following"], f"at most {leak['printed']:.4g}", true=leak["following"] <= leak["printed"] + _NEAR,
                why="quadratic losses, steps that contract; the pairwise matrix bounds gradients fixed beforehand only",
            ),
        ]  # fmt: skip
    if task is HOUSES:
        nearest = dict(map(tuple, answers["leaks"]["by_distance"][FLORENTINE]))[1]
        lines.append(
            unknown(f"share of the local leak that a neighbour is told, {FLORENTINE}, by the pairwise matrix", nearest,
                    "above 1 where entries of the matrix are negative; the local ceiling holds besides")
        )  # fmt: skip
    for key, graph in _keyed(setting, task):
        for at in dict.fromkeys((size.mus[0], mu)):
            once, ours, free = (_at(answers, key, method, at) for method in (INDEPENDENT, MAFALDA, NOTHING))
            better = task.better(once["mean"], ours["mean"]) == ours["mean"]
            why = f"{INDEPENDENT}: {once['mean']:.4g}, no noise: {free['mean']:.4g}, standard error {ours['error']:.2g}"
            what = f"{task.measure} at mu {at:g}, {graph}: {MAFALDA}"
            line = holds(what, ours["mean"], f"better than {INDEPENDENT}", true=better, why=why)
            of_stand_in = setting.data is None and task is HOUSES
            lines.append(unknown(what, ours["mean"], "of a stand-in, not of a table") if of_stand_in else line)
    for row in _accounts(answers, size):
        printed, replaced, *_ = row[1:]
        if row[0] == mu:
            lines.append(
                unknown("epsilon at mu 1 of a row that is replaced by another", replaced,
                        f"the paper counts a row against none: {printed:.4g}; both at delta {_DELTA:g}")
            )  # fmt: skip
            lines.append(
                unknown("epsilon at mu 1 of a user's whole data, MAFALDA-SGD", row[4],
                        "all rows of all batches; the paper promises nothing about it")
            )  # fmt: skip
    return lines


def _make(task: Task, setting: Setting, answers: Answers) -> Made:
    size = _size(setting, task)
    graphs = _keyed(setting, task)
    rows = [
        [graph, method, one["mu"], one["rate"], one["mean"], one["error"]]
        for key, graph in graphs
        for method in METHODS
        for one in answers[f"{key}-{_key(method)}"]["found"]
    ]
    epsilons = (
        "mu",
        "a row against none (paper)",
        "a row replaced",
        "a user, independent noise",
        "a user, MAFALDA-SGD",
    )
    tables = [
        Table("", ("graph", "method", "mu", "rate", task.measure, "standard error"), rows),
        Table("epsilons", epsilons, _accounts(answers, size)),
    ]
    if task is HOUSES:
        by = answers["leaks"]["by_distance"]
        leaked = [[graph, *one] for graph, found in by.items() for one in found]
        tables.append(Table("distances", ("graph", "distance from user 0", "share of local leak, on average"), leaked))
    width = 3.7 * len(graphs) + 0.6
    pictures = (Picture("", max(width, 4.6), 3.6, partial(_draw, task, size, graphs, answers)),)
    return Made(tuple(tables), tuple(_lines(task, setting, answers)), pictures)


def _draw(task: Task, size: Size, graphs: list[tuple[str, str]], answers: Answers, figure: Figure) -> None:
    panels: Any = np.atleast_1d(figure.subplots(1, len(graphs)))
    for axes, (key, graph) in zip(panels, graphs, strict=True):
        for look, method in enumerate(METHODS[:-1]):
            found = answers[f"{key}-{_key(method)}"]["found"]
            middle = [one["mean"] for one in found]
            low, high = ([one["mean"] + sign * one["error"] for one in found] for sign in (-1.0, 1.0))
            draw_curves(axes, [Curve(method, list(size.mus), middle, low, high, look=look)])
        (free,) = answers[f"{key}-{_key(NOTHING)}"]["found"]
        axes.axhline(free["mean"], color="0.4", linewidth=0.9, label=NOTHING)
        axes.set_xscale("log")
        axes.set_xticks(list(size.mus), [f"{mu:g}" for mu in size.mus])
        axes.minorticks_off()
        if task is HOUSES:
            axes.set_yscale("log")
        name_axes(axes, f"{task.name}, {graph}, {size.steps} steps", r"$\mu$ of a row, all messages", task.measure)
    legend_below(figure, panels[0], 3)


def _experiment(name: str, task: Task, title: str, needs: tuple[str, ...]) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        pieces=partial(_pieces, task),
        make=partial(_make, task),
        caption=Caption(
            shows=f"Curves of the {task.measure} of users' own models on {task.name} against mu, logarithmic; bars are "
            "one standard error over trials. The line without points is learning without noise.",
            compares="Independent noise, noise correlated as is best for one user alone, noise correlated as is best "
            "for gossip on this graph, and a trusted curator, at the same mu.",
            see="Where noise matters, at small mu, correlated noise learns better than independent noise, the best for "
            "the graph is ahead, and a curator ahead of all. Elsewhere all come to what learning without noise does.",
            paper="MAFALDA-SGD outperforms other ways to correlate noise on synthetic and real graphs.",
            no_bound="What one user sees of another, by the pairwise matrix, is exact for gradients that are fixed "
            "beforehand, and no bound where gradients follow models that the observer does not see.",
        ),
        needs=needs,
        seeds=(SEED,),
    )


MAFALDA_HOUSES: Final = _experiment(
    "mafalda", HOUSES, "Learning with noise correlated over time on houses", (table_file("houses"), EGO_FILE)
)
MAFALDA_DIGITS: Final = _experiment("mafalda-digits", DIGITS, "Learning with noise correlated over time on digits", ())
