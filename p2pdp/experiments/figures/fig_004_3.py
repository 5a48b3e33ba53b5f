"""[CEBM22, Figure 3]: leaks on exponential graphs (hypercubes) of 2^m users, by the distance.

By equation (6), and exactly. All observers are alike, so one is looked at. Equation (6) falls with n at every distance
beyond the first, as the paper says; the exact leak at distance k is m / C(m, k), and 1 opposite, on every hypercube.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from p2pdp.core.spec import GraphPart
from p2pdp.experiments.contract import JSON, Answers, Experiment, Made, Picture, Piece, Setting, Table, holds
from p2pdp.experiments.gossip_leaks import by_distance, gossip_on, printed_leaks, sized, spans
from p2pdp.experiments.style import Curve, draw_curves, legend_below, name_axes
from p2pdp.topology.graphs import make_graph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POWERS: Final = (5, 6, 7, 8, 9, 10, 11, 12)
_POWERS_QUICK: Final = (4, 5, 6, 7)
_DRAWN: Final = 4


def _leaks(power: int) -> dict[str, JSON]:
    on = gossip_on(make_graph(GraphPart("hypercube"), 2**power, 0))
    (span,) = spans(on, [0])
    return {"rounds": on.rounds, **by_distance(on, [0], span.leaks[:, None], printed_leaks(on, [0]))}


def _powers(setting: Setting) -> tuple[int, ...]:
    return _POWERS_QUICK if setting.quick else _POWERS


def _pieces(setting: Setting) -> list[Piece]:
    return [Piece(f"m-{power:02d}", partial(_leaks, power), {"m": power}) for power in _powers(setting)]


def _make(setting: Setting, answers: Answers) -> Made:
    powers = _powers(setting)
    found = {power: answers[f"m-{power:02d}"] for power in powers}
    printed_2 = [found[power]["printed_mean"][1] for power in powers]
    exact_2 = [found[power]["exact_mean"][1] for power in powers]
    opposite = [found[power]["exact_mean"][-1] for power in powers]
    off = max(
        abs(leak - power / math.comb(power, k))
        for power in powers
        for k, leak in zip(found[power]["distances"], found[power]["exact_mean"], strict=True)
        if k < power
    )
    lines = [
        holds(
            f"equation (6) at distance 2, m = {powers[0]} and {powers[-1]}",
            f"{printed_2[0]:.3g} and {printed_2[-1]:.3g}",
            "privacy guarantees improve with n",
            true=bool(np.all(np.diff(printed_2) < 0.0)),
            why="H.1; falls with every step of m",
        ),
        holds(
            f"exact leak at distance 2, m = {powers[0]} and {powers[-1]}",
            f"{exact_2[0]:.3g} and {exact_2[-1]:.3g}",
            "privacy guarantees improve with n",
            true=bool(np.all(np.diff(exact_2) < 0.0)),
            why=f"2 / (m - 1); the largest difference to m / C(m, k) at any distance is {off:.1e}",
        ),
        holds(
            "exact leak of the opposite user, least of all m",
            min(opposite),
            "the farther, the less is told",
            true=max(opposite) < 1.0,
            why="all is told, whatever n",
        ),
    ]
    rows = [
        [power, found[power]["rounds"], k, printed, exact]
        for power in powers
        for k, printed, exact in zip(
            found[power]["distances"], found[power]["printed_mean"], found[power]["exact_mean"], strict=True
        )
    ]
    table = Table("", ("m", "rounds", "distance", "equation (6)", "exact"), rows)
    return Made((table,), tuple(sized(setting, lines)), (Picture("", 7.2, 3.7, partial(_draw, found=found)),))


def _draw(figure: Figure, found: dict[int, Answers]) -> None:
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    shown = sorted(found)[:: max(1, len(found) // _DRAWN)] if len(found) > _DRAWN else sorted(found)
    for axes, name in ((left, "printed_mean"), (right, "exact_mean")):
        draw_curves(
            axes,
            [
                Curve(f"n = {2**power:,}", found[power]["distances"], found[power][name], look=at)
                for at, power in enumerate(shown)
            ],
        )
        axes.axhline(1.0, color="0.5", linewidth=0.8, linestyle=":", label="local privacy")
        axes.set_yscale("log")
    figure.suptitle("Gossip on hypercubes of n users", fontsize=10)
    name_axes(left, "equation (6), no bound for pairs", "distance in the graph", "leak (1: local privacy)")
    name_axes(right, "exact: the far side is exposed too", "distance in the graph", "")
    legend_below(figure, left, 5)


EXPERIMENT: Final = Experiment(
    "004-fig3",
    "Muffliato, figure 3",
    "Leaks on hypercubes of growing size",
    _pieces,
    _make,
)
