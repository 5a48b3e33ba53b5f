"""[CEBM22, Figure 4]: leaks on random geometric graphs by the Euclidean distance of the two users.

By equation (6), which falls with the distance as the paper says, and exactly. Two radii: the default, at which every
draw is connected, and one near the threshold of connectivity, at which walks mix more slowly and gossip takes longer.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from p2pdp.core.spec import GraphPart
from p2pdp.experiments.contract import JSON, Answers, Experiment, Made, Picture, Piece, Setting, Table, holds
from p2pdp.experiments.gossip_leaks import evenly, gossip_on, printed_leaks, sized, spans
from p2pdp.experiments.style import COLOURS, MARKERS, name_axes
from p2pdp.topology.graphs import make_graph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SEED: Final = 0
_USERS: Final = 2048
_USERS_QUICK: Final = 128
_OBSERVERS: Final = 16
_OBSERVERS_QUICK: Final = 4
_RADII: Final = {"default": None, "near the threshold": 1.3}  # times sqrt(ln n / (pi n))
_BINS: Final = 20
_SHOWN: Final = 400  # points of one observer
_LEAST: Final = 1e-9


def _leaks(n: int, factor: float | None, count: int) -> dict[str, JSON]:
    from scipy.stats import spearmanr

    radius = None if factor is None else factor * math.sqrt(math.log(n) / (math.pi * n))
    graph = make_graph(GraphPart("geometric", radius=radius), n, _SEED)
    on, observers = gossip_on(graph), evenly(n, count)
    exact = np.stack([span.leaks for span in spans(on, observers)], axis=1)
    printed = printed_leaks(on, observers)
    away = np.linalg.norm(graph.positions[:, None] - graph.positions[None, observers], axis=2)
    others = away > 0.0
    edges = np.linspace(0.0, float(away.max()) * (1.0 + 1e-12), _BINS + 1)
    places = np.digitize(away, edges) - 1
    bins = [others & (places == k) for k in range(_BINS)]
    some = np.nonzero(others[:, 0])[0][:: max(1, n // _SHOWN)]
    constant = float(np.ptp(exact[others])) < 1e-6
    return {
        "rounds": on.rounds,
        "degree_mean": 2.0 * graph.edge_count / n,
        "middle": [float(edges[k] + edges[k + 1]) / 2.0 for k in range(_BINS) if bins[k].any()],
        "exact_mean": [float(exact[chosen].mean()) for chosen in bins if chosen.any()],
        "printed_mean": [float(printed[chosen].mean()) for chosen in bins if chosen.any()],
        "correlation_printed": float(spearmanr(away[others], printed[others]).statistic),
        "correlation_exact": 0.0 if constant else float(spearmanr(away[others], exact[others]).statistic),
        "leak_mean": float(exact[others].mean()),
        "exceeded": float(np.mean(exact[others] > printed[others] * (1.0 + 1e-9) + 1e-9)),
        "points": np.column_stack([away[some, 0], printed[some, 0], exact[some, 0]]).tolist(),
    }


def _pieces(setting: Setting) -> list[Piece]:
    n, count = (_USERS_QUICK, _OBSERVERS_QUICK) if setting.quick else (_USERS, _OBSERVERS)
    return [
        Piece(
            f"radius-{at}",
            partial(_leaks, n, factor, count),
            {"n": n, "factor": factor, "observers": count, "seed": _SEED},
        )
        for at, factor in enumerate(_RADII.values())
    ]


def _make(setting: Setting, answers: Answers) -> Made:
    found = {name: answers[f"radius-{at}"] for at, name in enumerate(_RADII)}
    lines = []
    for name, one in found.items():
        said = f"radius {name}, {one['degree_mean']:.3g} neighbours, {one['rounds']} rounds"
        for kind, label in (("printed", "equation (6)"), ("exact", "the exact leak")):
            rank = one[f"correlation_{kind}"]
            lines.append(
                holds(
                    f"{said}: rank correlation of distance and {label}",
                    rank,
                    "extremely well correlated",
                    true=rank < -0.9,
                    why="H.3; at most -0.9 passes, and 0 stands for a leak that is the same for all",
                )
            )
        lines.append(
            holds(
                f"{said}: share of pairs above equation (6)",
                one["exceeded"],
                "Theorem 1: a tight computation",
                true=one["exceeded"] == 0.0,
                why=f"the mean exact leak is {one['leak_mean']:.3g} of local privacy",
            )
        )
    rows = [
        [name, *numbers]
        for name, one in found.items()
        for numbers in zip(one["middle"], one["printed_mean"], one["exact_mean"], strict=True)
    ]
    table = Table("", ("radius", "distance", "equation (6), mean", "exact, mean"), rows)
    return Made((table,), tuple(sized(setting, lines)), (Picture("", 7.2, 3.7, partial(_draw, found=found)),))


def _draw(figure: Figure, found: dict[str, Answers]) -> None:
    panes = figure.subplots(1, len(found), sharey=True)
    for axes, one in zip(panes, found.values(), strict=True):
        points = np.maximum(np.array(one["points"]), _LEAST)
        for column, at, label in ((1, 2, "equation (6), no bound"), (2, 0, "exact")):
            axes.scatter(
                points[:, 0], points[:, column], s=9, marker=MARKERS[at], color=COLOURS[at], alpha=0.6, linewidths=0,
                label=f"{label}: one observer",
            )  # fmt: skip
            means = one["printed_mean" if column == 1 else "exact_mean"]
            axes.plot(one["middle"], means, color=COLOURS[at], linestyle=("-", "--", "-.")[at], label=f"{label}: mean")
        axes.set_yscale("log")
        axes.set_ylim(_LEAST / 2.0, 100.0)
        title = f"{one['degree_mean']:.3g} neighbours each, {one['rounds']} rounds"
        name_axes(axes, title, "Euclidean distance (side of the square: 1)", "")
    panes[0].set_ylabel("leak (1: local privacy)")
    figure.suptitle("Gossip on random geometric graphs: what is told of users at a distance", fontsize=10)
    handles, labels = panes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)


EXPERIMENT: Final = Experiment(
    "004-fig4",
    "Muffliato, figure 4",
    "Leaks by Euclidean distance on geometric graphs",
    _pieces,
    _make,
    seeds=(_SEED,),
)
