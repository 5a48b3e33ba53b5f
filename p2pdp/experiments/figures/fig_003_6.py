"""[LTT22, Figure 6]: epsilon against epsilon_0 on five graphs, all reports sent on, after the mixing time.

By Theorem 5.3 as printed, with sum of P^2 by equation (7), and by the sound claim after the rounds that our own rule
asks for. Of the Google graph only n and Gamma are known, as Table 4 prints them: its curves take the walk to have
mixed, and for the sound claim to overlap as our rule makes it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from p2pdp.experiments import inputs
from p2pdp.experiments.contract import JSON, Answers, Experiment, Made, Picture, Piece, Setting, Table, holds, unknown
from p2pdp.experiments.shuffle_claims import DELTA, KAPPA_AUTO, printed_all, sound
from p2pdp.experiments.shuffle_graphs import GOOGLE_PRINTED, SOCIAL, Rested, rested, social_graph
from p2pdp.experiments.style import Curve, draw_curves, legend_below, name_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_EPSILONS: Final = tuple(round(0.1 * k, 1) for k in range(1, 13))
_ALL: Final = (*SOCIAL, "google")


def _curves(setting: Setting, name: str) -> dict[str, JSON]:
    if name == "google":
        n, gamma = GOOGLE_PRINTED
        found = Rested(n, 0, gamma / n, 0, KAPPA_AUTO)
    else:
        found = rested(social_graph(setting, name))
    return {
        "n": found.n,
        "sum_p2": found.sum_p2,
        "auto": found.auto,
        "printed": [printed_all(e, found.n, found.sum_p2) for e in _EPSILONS],
        "sound": [sound(e, found.n, found.kappa) for e in _EPSILONS],
    }


def _pieces(setting: Setting) -> list[Piece]:
    facts = {"epsilons": list(_EPSILONS), "delta": DELTA}
    return [Piece(name, partial(_curves, setting, name), {"graph": name, **facts}) for name in _ALL]


def _make(setting: Setting, answers: Answers) -> Made:
    printed = {name: np.array(answers[name]["printed"]) for name in _ALL}
    amplified = {name: [e for e, p in zip(_EPSILONS, printed[name], strict=True) if p < e] for name in _ALL}
    lines = [
        holds(
            "the graph with the least epsilon by Theorem 5.3 at every epsilon_0",
            min(_ALL, key=lambda name: float(printed[name].sum())),
            "google",
            true=all(np.all(printed["google"] <= printed[name]) for name in SOCIAL),
            why="caption of figure 6; n and Gamma of google are those that Table 4 prints",
        ),
        holds(
            "Theorem 5.3 is below epsilon_0 up to epsilon_0 = 1.2 on graphs",
            ", ".join(f"{name} up to {max(amplified[name], default=0.0)}" for name in _ALL),
            "amplification for epsilon_0 from 0.1 to 1.2",
            true=all(max(amplified[name], default=0.0) >= max(_EPSILONS) for name in _ALL),
            why="beyond that the theorem prints more than what a report tells alone",
        ),
    ]
    lines += [
        unknown(
            f"{name}: sound epsilon at epsilon_0 = 1 after {answers[name]['auto'] or 'enough'} rounds",
            answers[name]["sound"][_EPSILONS.index(1.0)],
            f"Theorem 5.3: {answers[name]['printed'][_EPSILONS.index(1.0)]:.4g}; figure 6 prints no numbers",
        )
        for name in _ALL
    ]
    if setting.data is None:
        lines = [unknown(line.what, line.ours, "of stand-ins, not of the paper's graphs") for line in lines]
    rows = [
        [name, e, p, s]
        for name in _ALL
        for e, p, s in zip(_EPSILONS, answers[name]["printed"], answers[name]["sound"], strict=True)
    ]
    table = Table("", ("graph", "epsilon_0", "epsilon by Theorem 5.3", "epsilon sound"), rows)
    return Made((table,), tuple(lines), (Picture("", 7.2, 3.8, partial(_draw, answers=answers)),))


def _draw(figure: Figure, answers: Answers) -> None:
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, key in ((left, "printed"), (right, "sound")):
        draw_curves(
            axes,
            [
                Curve(f"{name}, n = {answers[name]['n']:,}", _EPSILONS, answers[name][key], look=at)
                for at, name in enumerate(_ALL)
            ],
        )
        axes.plot(_EPSILONS, _EPSILONS, color="0.5", linewidth=0.8, label=r"$\varepsilon = \varepsilon_0$")
        axes.set_yscale("log")
    figure.suptitle("Network shuffling of all reports on real graphs", fontsize=10)
    y = r"$\varepsilon$ towards the curator"
    name_axes(left, "Theorem 5.3 as printed (no bound)", r"$\varepsilon_0$ of one report", y)
    name_axes(right, "sound, after rounds enough to overlap", r"$\varepsilon_0$ of one report", "")
    legend_below(figure, left, 3)


EXPERIMENT: Final = Experiment(
    "003-fig6",
    "Network Shuffling, figure 6",
    "Amplification on five real graphs",
    _pieces,
    _make,
    needs=tuple(inputs.graph_file(name) for name in SOCIAL),
)
