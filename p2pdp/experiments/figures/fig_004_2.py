"""[CEBM22, Figure 2]: the graphs of figure 1a, each user shaded by what one fixed user learns of it.

Above by equation (6), below exactly. Grids and geometric graphs are drawn where their users are; the others in
circles, by the distance to the fixed user, which is the white cross.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from p2pdp.core.spec import GraphPart
from p2pdp.experiments.contract import JSON, Answers, Experiment, Made, Picture, Piece, Setting, Table, holds
from p2pdp.experiments.distances import distances_from
from p2pdp.experiments.figures.fig_004_1a import KINDS, USERS, USERS_QUICK
from p2pdp.experiments.gossip_leaks import gossip_on, printed_leaks, sized, spans
from p2pdp.topology.graphs import Graph, make_graph
from p2pdp.topology.kinds import FIXED_KINDS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SEED: Final = 0
_LEAST: Final = 1e-4  # of the shades
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


def _pieces(setting: Setting) -> list[Piece]:
    n = USERS_QUICK if setting.quick else USERS
    return [Piece(kind, partial(_shades, n, kind), {"n": n, "kind": kind, "seed": _SEED}) for kind in KINDS]


def _make(setting: Setting, answers: Answers) -> Made:
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
    return Made((table,), tuple(sized(setting, lines)), (Picture("", 8.0, 4.2, partial(_draw, answers=answers)),))


def _draw(figure: Figure, answers: Answers) -> None:
    from matplotlib.colors import LogNorm

    panes = figure.subplots(2, len(KINDS))
    shade = LogNorm(_LEAST, 1.0)
    drawn: Any = None
    for column, (kind, label) in enumerate(KINDS.items()):
        found = answers[kind]
        places, observer = np.array(found["places"]), found["observer"]
        for row, name in enumerate(("printed", "exact")):
            axes = panes[row, column]
            values = np.clip(found[name], _LEAST, 1.0)
            drawn = axes.scatter(*places.T, c=values, s=5, norm=shade, cmap="viridis_r", linewidths=0, rasterized=True)
            axes.scatter(
                *places[observer], marker="X", s=60, color="white", edgecolors="black", linewidths=0.9, zorder=3
            )
            axes.set(xticks=[], yticks=[])
            axes.set_aspect("equal", adjustable="datalim")
            for spine in axes.spines.values():
                spine.set_visible(False)
        panes[0, column].set_title(label.split(",")[0], fontsize=9)
    panes[0, 0].set_ylabel("by equation (6)")
    panes[1, 0].set_ylabel("exactly")
    figure.colorbar(drawn, ax=panes, label="leak towards the crossed user (1: local privacy)", shrink=0.8)
    figure.suptitle("Whom of all users does one user learn about by gossip?", fontsize=10)


EXPERIMENT: Final = Experiment(
    "004-fig2",
    "Muffliato, figure 2",
    "Leaks drawn on four synthetic graphs",
    _pieces,
    _make,
    seeds=(_SEED,),
)
