"""[LTT22, Table 4]: users n and irregularity Gamma of real graphs, as the paper defines it and as it prints it.

The printed Gammas come out to the last digit if each edge counts at its lower-numbered end only, and a loop once, in
place of degrees: half of a symmetric adjacency matrix was read. As defined, n times the sum of squared stationary
chances, they are others. The Google graph is in no data folder; its numbers stay the paper's.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from p2pdp.experiments import inputs
from p2pdp.experiments.contract import (
    JSON,
    Answers,
    Experiment,
    Line,
    Made,
    Picture,
    Piece,
    Setting,
    Table,
    compared,
    unknown,
)
from p2pdp.experiments.shuffle_graphs import GOOGLE_PRINTED, looped_users
from p2pdp.experiments.style import COLOURS, name_axes
from p2pdp.experiments.walk_spread import gamma, gamma_printed
from p2pdp.topology.graphs import graph_of_edges

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRINTED: Final = {  # n, Gamma
    "facebook": (22_470, 5.0064),
    "twitch": (9_498, 7.5840),
    "deezer": (28_281, 3.5633),
    "enron": (33_696, 36.866),
}
_DIGITS: Final = {"facebook": 5.1e-5, "twitch": 5.1e-5, "deezer": 5.1e-5, "enron": 5.1e-4}  # half of the last printed


def _gammas(setting: Setting, name: str) -> dict[str, JSON]:
    edges = inputs.graph(setting, name)
    loops = looped_users(setting, name)
    return {
        "n": edges.n,
        "edges": len(edges.edges),
        "defined": gamma(graph_of_edges(edges.n, edges.edges)),
        "one_end": gamma_printed(edges.n, edges.edges, loops),
    }


def _pieces(setting: Setting) -> list[Piece]:
    return [Piece(name, partial(_gammas, setting, name), {"graph": name}) for name in PRINTED]


def _make(setting: Setting, answers: Answers) -> Made:
    lines: list[Line] = []
    for name, (n, printed) in PRINTED.items():
        found = answers[name]
        if setting.data is None:
            lines.append(unknown(f"{name}: Gamma as defined", found["defined"], "a stand-in, not the paper's graph"))
            continue
        by_degree = "degrees of the undirected graph, as Table 2 defines Gamma"
        half = "each edge at its lower-numbered end only: what must have been computed"
        lines += [
            compared(f"{name}: users of the largest component", found["n"], n, "Table 4"),
            compared(f"{name}: Gamma as defined", found["defined"], printed, by_degree, absolute=_DIGITS[name]),
            compared(f"{name}: Gamma from half of the matrix", found["one_end"], printed, half, absolute=_DIGITS[name]),
        ]
    missing = "the SNAP web graph is in no data folder; counts published elsewhere suggest a Gamma near 17.0 as defined"
    lines.append(unknown(f"google: Gamma, printed as {GOOGLE_PRINTED[1]}", "not computed", missing))
    rows = [
        [name, found["n"], found["edges"], found["defined"], found["one_end"], *PRINTED[name]]
        for name, found in answers.items()
    ]
    columns = ("graph", "n", "edges", "Gamma as defined", "Gamma from one end", "n printed", "Gamma printed")
    return Made((Table("", columns, rows),), tuple(lines), (Picture("", 5.2, 3.4, partial(_draw, rows=rows)),))


def _draw(figure: Figure, rows: list[list[float]]) -> None:
    axes = figure.subplots()
    places = np.arange(len(rows))
    kinds = (
        ("as defined, by degrees", 3, ""),
        ("each edge at one end only", 4, "///"),
        ("printed in Table 4", 6, "..."),
    )
    for at, (label, column, hatch) in enumerate(kinds):
        heights = [row[column] for row in rows]
        bars = axes.bar(
            places + 0.27 * (at - 1), heights, 0.25, label=label, hatch=hatch, color=(COLOURS[1], "0.75", "0.95")[at],
            edgecolor="black", linewidth=0.6,
        )  # fmt: skip
        axes.bar_label(bars, fmt="%.3g", fontsize=7, padding=1)
    axes.set_xticks(places, [f"{row[0]}\nn = {row[1]:,}" for row in rows])
    axes.set_yscale("log")
    name_axes(axes, "How uneven real graphs are (1: regular)", "", r"$\Gamma = n \sum_i \pi_i^2$")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)


EXPERIMENT: Final = Experiment(
    "003-table4",
    "Network Shuffling, Table 4",
    "Users and irregularity of real graphs",
    _pieces,
    _make,
    needs=tuple(inputs.graph_file(name) for name in PRINTED),
)
