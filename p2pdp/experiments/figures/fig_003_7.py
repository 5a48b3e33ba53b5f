"""[LTT22, Figure 7]: all reports sent on against a single one of each user, on the Twitch and Google graphs.

By Theorems 5.3 and 5.5 as printed; the sound claim is one for both protocols, because sending one report is computed
from sending all. Of the Google graph only n and Gamma are known, as Table 4 prints them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from p2pdp.experiments import inputs
from p2pdp.experiments.contract import JSON, Answers, Experiment, Made, Picture, Piece, Setting, Table, holds, unknown
from p2pdp.experiments.shuffle_claims import DELTA, KAPPA_AUTO, printed_all, printed_single, sound
from p2pdp.experiments.shuffle_graphs import GOOGLE_PRINTED, Rested, rested, social_graph
from p2pdp.experiments.style import Curve, draw_curves, legend_below, name_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_EPSILONS: Final = tuple(round(0.2 * k, 1) for k in range(1, 11))
_GRAPHS: Final = ("twitch", "google")


def _curves(setting: Setting, name: str) -> dict[str, JSON]:
    if name == "google":
        n, gamma = GOOGLE_PRINTED
        found = Rested(n, 0, gamma / n, 0, KAPPA_AUTO)
    else:
        found = rested(social_graph(setting, name))
    return {
        "n": found.n,
        "all": [printed_all(e, found.n, found.sum_p2) for e in _EPSILONS],
        "single": [printed_single(e, found.sum_p2) for e in _EPSILONS],
        "sound": [sound(e, found.n, found.kappa) for e in _EPSILONS],
    }


def _pieces(setting: Setting) -> list[Piece]:
    facts = {"epsilons": list(_EPSILONS), "delta": DELTA}
    return [Piece(name, partial(_curves, setting, name), {"graph": name, **facts}) for name in _GRAPHS]


def _make(setting: Setting, answers: Answers) -> Made:
    lines = []
    for name in _GRAPHS:
        found = answers[name]
        ratio = found["all"][-1] / found["single"][-1]
        lines += [
            holds(
                f"{name}: Theorem 5.3 over Theorem 5.5 at epsilon_0 = {_EPSILONS[-1]}",
                ratio,
                "single amplifies more at large epsilon_0",
                true=ratio > 1.0,
                why="caption of figure 7; e^(3 epsilon_0) against e^(2 epsilon_0)",
            ),
            unknown(
                f"{name}: sound epsilon of both protocols at epsilon_0 = 1",
                found["sound"][_EPSILONS.index(1.0)],
                f"printed: {found['all'][_EPSILONS.index(1.0)]:.4g} all, "
                f"{found['single'][_EPSILONS.index(1.0)]:.4g} single; figure 7 prints no numbers",
            ),
        ]
    if setting.data is None:
        lines = [unknown(line.what, line.ours, "of a stand-in, not of the paper's graph") for line in lines]
    rows = [
        [name, *numbers]
        for name in _GRAPHS
        for numbers in zip(_EPSILONS, *(answers[name][key] for key in ("all", "single", "sound")), strict=True)
    ]
    table = Table("", ("graph", "epsilon_0", "all, Theorem 5.3", "single, Theorem 5.5", "sound, both"), rows)
    return Made((table,), tuple(lines), (Picture("", 7.2, 3.6, partial(_draw, answers=answers)),))


def _draw(figure: Figure, answers: Answers) -> None:
    panes = figure.subplots(1, len(_GRAPHS), sharey=True)
    for axes, name in zip(panes, _GRAPHS, strict=True):
        found = answers[name]
        draw_curves(
            axes,
            [
                Curve("all, Theorem 5.3 (no bound)", _EPSILONS, found["all"], look=1),
                Curve("single, Theorem 5.5 (no bound)", _EPSILONS, found["single"], look=2),
                Curve("sound, both protocols", _EPSILONS, found["sound"], look=0),
            ],
        )
        axes.plot(_EPSILONS, _EPSILONS, color="0.5", linewidth=0.8, label=r"$\varepsilon = \varepsilon_0$")
        axes.set_yscale("log")
        name_axes(axes, f"{name}, n = {found['n']:,}", r"$\varepsilon_0$ of one report", "")
    figure.suptitle("Network shuffling: all reports sent on, or one of each user", fontsize=10)
    panes[0].set_ylabel(r"$\varepsilon$ towards the curator")
    legend_below(figure, panes[0], 2)


EXPERIMENT: Final = Experiment(
    "003-fig7",
    "Network Shuffling, figure 7",
    "All reports or a single one of each user",
    _pieces,
    _make,
    needs=(inputs.graph_file("twitch"),),
)
