"""[LTT22, Figure 8]: epsilon against epsilon_0 for walks at rest, by users n, irregularity Gamma and protocol.

By Theorems 5.3 and 5.5 as printed, for Gamma = 1 and 10. The sound claim at rest depends on neither Gamma nor
protocol, so it has one curve for each n. The paper's text prints no values of n; these are one near each of its graphs.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Final

from p2pdp.experiments.contract import JSON, Answers, Experiment, Line, Made, Picture, Piece, Setting, Table, holds
from p2pdp.experiments.shuffle_claims import DELTA, printed_all, printed_single, sound
from p2pdp.experiments.style import Curve, draw_curves, legend_below, name_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_EPSILONS: Final = tuple(round(0.2 * k, 1) for k in range(1, 11))
_USERS: Final = (10_000, 1_000_000)
_GAMMAS: Final = (1.0, 10.0)
_NAMES: Final = ("all", "single")


def _curves(n: int) -> dict[str, JSON]:
    found: dict[str, JSON] = {"sound": [sound(e, n, 1.0) for e in _EPSILONS]}
    for gamma in _GAMMAS:
        found[f"all-{gamma:g}"] = [printed_all(e, n, gamma / n) for e in _EPSILONS]
        found[f"single-{gamma:g}"] = [printed_single(e, gamma / n) for e in _EPSILONS]
    return found


def _pieces(_setting: Setting) -> list[Piece]:
    facts = {"epsilons": list(_EPSILONS), "gammas": list(_GAMMAS), "delta": DELTA}
    return [Piece(f"n-{n}", partial(_curves, n), {"n": n, **facts}) for n in _USERS]


def _make(_setting: Setting, answers: Answers) -> Made:
    few, many = (answers[f"n-{n}"] for n in _USERS)
    keys = [key for key in few if key != "sound"]
    ratio = max(s / min(few[key][at] for key in keys) for at, s in enumerate(few["sound"]))
    lines = [
        holds(
            "more users, less epsilon, for every protocol and Gamma",
            f"{few['all-1'][0] / many['all-1'][0]:.3g} times less at epsilon_0 = {_EPSILONS[0]}, all, Gamma = 1",
            "population size matters most",
            true=all(a > b for key in keys for a, b in zip(few[key], many[key], strict=True)),
            why="section 5.6, about figure 6",
        ),
        holds(
            "Gamma = 10 over Gamma = 1, single, epsilon_0 = 0.2",
            few["single-10"][0] / few["single-1"][0],
            "irregular graphs amplify less",
            true=all(a >= b for name in _NAMES for a, b in zip(few[f"{name}-10"], few[f"{name}-1"], strict=True)),
            why="dashed curves of figure 8; soundly, walks at rest do not depend on Gamma at all",
        ),
        Line(
            "the sound claim over the least printed one, at worst",
            ratio,
            "1, the printed one itself",
            "agrees" if ratio <= 1.0 else "differs",
            "agrees where it is at most 1: what is proved is also less than what is printed",
        ),
    ]  # fmt: skip
    rows = [
        [n, *numbers]
        for n in _USERS
        for numbers in zip(_EPSILONS, *(answers[f"n-{n}"][key] for key in (*keys, "sound")), strict=True)
    ]
    table = Table("", ("n", "epsilon_0", *(key.replace("-", ", Gamma = ") for key in keys), "sound"), rows)
    return Made((table,), tuple(lines), (Picture("", 7.2, 3.8, partial(_draw, answers=answers)),))


def _draw(figure: Figure, answers: Answers) -> None:
    panes = figure.subplots(1, len(_USERS), sharey=True)
    for axes, n in zip(panes, _USERS, strict=True):
        found = answers[f"n-{n}"]
        curves = [
            Curve(rf"{name}, $\Gamma$ = {gamma:g} (no bound)", _EPSILONS, found[f"{name}-{gamma:g}"], look=at)
            for at, (name, gamma) in enumerate(product(_NAMES, _GAMMAS), 1)
        ]  # fmt: skip
        draw_curves(axes, [*curves, Curve(r"sound, any $\Gamma$, both protocols", _EPSILONS, found["sound"], look=0)])
        axes.plot(_EPSILONS, _EPSILONS, color="0.5", linewidth=0.8, label=r"$\varepsilon = \varepsilon_0$")
        axes.set_yscale("log")
        name_axes(axes, f"n = {n:,}, walks at rest", r"$\varepsilon_0$ of one report", "")
    figure.suptitle("Network shuffling: what users, irregularity and protocol change", fontsize=10)
    panes[0].set_ylabel(r"$\varepsilon$ towards the curator")
    legend_below(figure, panes[0], 2)


EXPERIMENT: Final = Experiment(
    "003-fig8",
    "Network Shuffling, figure 8",
    "What users, irregularity and protocol change",
    _pieces,
    _make,
)
