"""Leaks of gossip on drawn graphs.

[CEBM22, Figure 2]: the graphs of figure 1a, each user shaded by what one fixed user learns of it.

Above by equation (6), below exactly. Grids and geometric graphs are drawn where their users are; the others in
circles, by the distance to the fixed user, which is the white cross.

[CEBM22, Figure 4]: leaks on random geometric graphs by the Euclidean distance of the two users.

By equation (6), which falls with the distance as the paper says, and exactly. Two radii: the default, at which every
draw is connected, and one near the threshold of connectivity, at which walks mix more slowly and gossip takes longer.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from p2pdp.core.spec import GraphPart
from p2pdp.experiments.contract import JSON, Answers, Caption, Experiment, Made, Picture, Piece, Setting, Table, holds
from p2pdp.experiments.figures.gossip_distances import KINDS, USERS, USERS_QUICK
from p2pdp.experiments.gossip_leaks import NO_BOUND, distances_from, evenly, gossip_on, printed_leaks, sized, spans
from p2pdp.experiments.style import COLOURS, LEAK_COLOURS, LEAK_SHADES, MARKERS, name_axes
from p2pdp.topology.graphs import Graph, make_graph
from p2pdp.topology.kinds import FIXED_KINDS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SEED: Final = 0
_SMALL: Final = 0.01


def _shades(n: int, kind: str) -> dict[str, JSON]:
    graph = make_graph(GraphPart(kind), n, _SEED)
    places = _places(graph, kind)
    middle = places.mean(axis=0) if kind in {"grid", "geometric"} else places[0]
    observer = int(np.argmin(((places - middle) ** 2).sum(axis=1)))
    on = gossip_on(graph)
    (span,) = spans(on, [observer])
    away = distances_from(graph, observer)
    return {
        "observer": observer,
        "rounds": on.rounds,
        "places": np.round(places, 4).tolist(),
        "distance": away,
        "exact": span.leaks.tolist(),
        "printed": printed_leaks(on, [observer])[:, 0].tolist(),
    }


def _places(graph: Graph, kind: str) -> Any:
    if kind == "geometric":
        return np.asarray(graph.positions)
    if kind == "grid":
        edges = FIXED_KINDS["grid"](GraphPart("grid"), graph.n)
        columns = int(np.max(edges[:, 1] - edges[:, 0]))  # the step from a row to the next
        return np.array([(user % columns, user // columns) for user in range(graph.n)], dtype=np.float64)
    away = np.array(distances_from(graph, 0))
    places = np.zeros((graph.n, 2))
    for radius in range(1, int(away.max()) + 1):
        ring = np.nonzero(away == radius)[0]
        angles = 2.0 * np.pi * (np.arange(len(ring)) + 0.5 * (radius % 2)) / len(ring)
        places[ring] = radius * np.column_stack([np.cos(angles), np.sin(angles)])
    return places


def _pieces_2(setting: Setting) -> list[Piece]:
    n = USERS_QUICK if setting.quick else USERS
    return [Piece(kind, partial(_shades, n, kind), {"n": n, "kind": kind, "seed": _SEED}) for kind in KINDS]


def _make_2(setting: Setting, answers: Answers) -> Made:
    lines = []
    for kind in KINDS:
        found = answers[kind]
        others = np.array(found["distance"]) > 0
        exact, printed = np.array(found["exact"])[others], np.array(found["printed"])[others]
        lines.append(
            holds(
                f"{kind}: share of users of whom less than {_SMALL:g} of local privacy is told, exactly",
                float(np.mean(exact < _SMALL)),
                f"{float(np.mean(printed < _SMALL)):.3g} by equation (6)",
                true=float(np.mean(exact < _SMALL)) >= float(np.mean(printed < _SMALL)),
                why="one observer; figure 2 prints no numbers, the second is equation (6) as we compute it",
            )
        )
    rows = [
        [kind, user, *answers[kind]["places"][user], answers[kind]["distance"][user], answers[kind]["exact"][user],
         answers[kind]["printed"][user]]
        for kind in KINDS
        for user in range(len(answers[kind]["exact"]))
    ]  # fmt: skip
    table = Table("", ("graph", "user", "x", "y", "distance", "exact", "equation (6)"), rows)
    return Made((table,), tuple(sized(setting, lines)), (Picture("", 7.2, 4.4, partial(_draw_2, answers=answers)),))


def _draw_2(figure: Figure, answers: Answers) -> None:
    from matplotlib.colors import LogNorm

    panes: Any = figure.subplots(2, len(KINDS))
    shade = LogNorm(*LEAK_SHADES)
    size = 5.0 + 2_000.0 / len(answers["grid"]["exact"])
    drawn: Any = None
    for column, (kind, label) in enumerate(KINDS.items()):
        found = answers[kind]
        places, observer = np.array(found["places"]), found["observer"]
        for row, name in enumerate(("printed", "exact")):
            axes = panes[row, column]
            values = np.clip(found[name], *LEAK_SHADES)
            drawn = axes.scatter(
                *places.T, c=values, s=size, norm=shade, cmap=LEAK_COLOURS, linewidths=0,
                rasterized=True,
            )  # fmt: skip
            axes.scatter(
                *places[observer], marker="X", s=60, color="white", edgecolors="black", linewidths=0.9, zorder=3
            )
            axes.set(xticks=[], yticks=[], facecolor="0.9")
            axes.set_aspect("equal", adjustable="datalim")
            for spine in axes.spines.values():
                spine.set_visible(False)
        panes[0, column].set_title(label.split(",")[0], fontsize=9)
    panes[0, 0].set_ylabel("by equation (6)")
    panes[1, 0].set_ylabel("exactly")
    figure.colorbar(
        drawn, ax=panes, label="leak towards the crossed user (1: local privacy)", extend="both", shrink=0.8
    )
    figure.suptitle("Whom of all users does one user learn about by gossip?", fontsize=10)


FIGURE_2: Final = Experiment(
    "004-fig2",
    "Leaks drawn on four synthetic graphs",
    _pieces_2,
    _make_2,
    caption=Caption(
        shows="Four graphs in columns, each user drawn as a dot and shaded by what the user at the white cross "
        "learns of it, from light, a hundredth of local privacy and less, to dark, all of it.",
        compares="Above by equation (6), below exactly.",
        see="Above shades fade with the distance. Below the grid and the geometric graph are dark throughout:"
        " all is told about nearly everybody. On the hypercube the middle distances are lighter and the "
        "opposite user is dark again.",
        paper="Privacy is amplified with the distance (section 5).",
        no_bound=NO_BOUND,
    ),
    seeds=(_SEED,),
)

_USERS: Final = 2048
_USERS_QUICK: Final = 128
_OBSERVERS: Final = 16
_OBSERVERS_QUICK: Final = 4
_RADII: Final = {"default": None, "near the threshold": 1.3}  # times sqrt(ln n / (pi n))
_BINS: Final = 20
_SHOWN: Final = 400  # points of one observer
_LEAST_4: Final = 1e-9


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


def _pieces_4(setting: Setting) -> list[Piece]:
    n, count = (_USERS_QUICK, _OBSERVERS_QUICK) if setting.quick else (_USERS, _OBSERVERS)
    return [
        Piece(
            f"radius-{at}",
            partial(_leaks, n, factor, count),
            {"n": n, "factor": factor, "observers": count, "seed": _SEED},
        )
        for at, factor in enumerate(_RADII.values())
    ]


def _make_4(setting: Setting, answers: Answers) -> Made:
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
    return Made((table,), tuple(sized(setting, lines)), (Picture("", 7.2, 3.7, partial(_draw_4, found=found)),))


def _draw_4(figure: Figure, found: dict[str, Answers]) -> None:
    panes: Any = figure.subplots(1, len(found), sharey=True)
    lowest = 0.1
    for axes, one in zip(panes, found.values(), strict=True):
        points = np.maximum(np.array(one["points"]), _LEAST_4)
        for column, at, label in ((1, 2, "equation (6), no bound"), (2, 0, "exact")):
            axes.scatter(
                points[:, 0], points[:, column], s=9, marker=MARKERS[at], color=COLOURS[at], alpha=0.6, linewidths=0,
                label=f"{label}: one observer",
            )  # fmt: skip
            means = one["printed_mean" if column == 1 else "exact_mean"]
            axes.plot(one["middle"], means, color=COLOURS[at], linestyle=("-", "--", "-.")[at], label=f"{label}: mean")
        axes.set_yscale("log")
        low = min(float(points[:, 1:].min()), *one["printed_mean"], *one["exact_mean"])
        lowest = min(lowest, max(low, _LEAST_4))
        title = f"{one['degree_mean']:.3g} neighbours each, {one['rounds']} rounds"
        name_axes(axes, title, "Euclidean distance (side of the square: 1)", "")
    panes[0].set_ylim(lowest / 2.0, 100.0)
    panes[0].set_ylabel("leak (1: local privacy)")
    figure.suptitle("Gossip on random geometric graphs: what is told of users at a distance", fontsize=10)
    handles, labels = panes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)


FIGURE_4: Final = Experiment(
    "004-fig4",
    "Leaks by Euclidean distance on geometric graphs",
    _pieces_4,
    _make_4,
    caption=Caption(
        shows="Two panels, for many and for few neighbours, of the leak, logarithmic, against the Euclidean "
        "distance of two users; dots are pairs of one observer, lines means over all pairs.",
        compares="Equation (6), and the exact leak.",
        see="Equation (6) falls with the distance; the exact leak stays near 1 wherever users are.",
        paper="Leak and Euclidean distance are extremely well correlated (H.3).",
        no_bound=NO_BOUND,
    ),
    seeds=(_SEED,),
)
