"""[ABR23, Figure 1]: network and local privacy of a real sum for T = 100 n, by the theorem and on walks.

Left the theorem of 2022 beside local composition, with the printed number of visits and with exactly T/n; right the
recipe's losses on ten walks, mean, best and worst over pairs. What is sound of the same walks is in 000-fig2a and
000-fig2b.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from p2pdp.accounting.composition import advanced
from p2pdp.experiments import walk_losses, walks
from p2pdp.experiments.contract import Answers, Experiment, Made, Picture, Piece, Setting, Table, holds, unknown
from p2pdp.experiments.figures.fig_000_2a import FORMULAS, first_gain, formulas, grid
from p2pdp.experiments.published_walks import pair_losses
from p2pdp.experiments.style import Curve, draw_curves, name_axes
from p2pdp.experiments.walk_losses import Account

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from p2pdp.experiments.contract import Line

ACCOUNTS: Final = (
    Account("local", "local DP", 0),
    Account("recipe", "network DP, the authors' recipe (no bound)", 2),
)
_EPSILON_0: Final = 0.1  # of the theorem's curves
_THEORY: Final = {"local": 0, "local-fixed": 4, "second": 1, "second-fixed": 6}


def losses(n: int, walk: int, epsilon_0: float) -> dict[str, dict[str, float]]:
    path = walks.path(n, walk)
    visits = np.bincount(path, minlength=n).tolist()
    composed = [min(k * epsilon_0, advanced(epsilon_0, k, walks.DELTA)) for k in visits]
    return {
        "local": walks.spread(np.array(composed)),
        "recipe": walks.spread(pair_losses(path, n, lambda m: epsilon_0 / math.sqrt(m), walks.DELTA)),
    }


def _pieces(setting: Setting) -> list[Piece]:
    return walk_losses.pieces(setting, losses, {})


def _lines(setting: Setting, rows: Sequence[Sequence[Any]]) -> list[Line]:
    means = {n: mean for epsilon_0, n, name, mean, *_ in rows if (epsilon_0, name) == (_EPSILON_0, "recipe")}
    nodes = [n for n in walks.nodes(setting) if n >= 20]
    stronger = [formulas(n, _EPSILON_0)["second"] / means[n] for n in nodes]
    first = first_gain("second")
    return [
        holds(
            "network DP below local DP, by the theorem", f"from n = {first} on",
            '"network DP outperforms LDP when n >= 20" (section 3.5)', true=first <= 20,
            why=f"the printed formula at epsilon_0 = {_EPSILON_0:g}, looked at to n = 10,000",
        ),
        holds(
            "mean loss by the recipe", ", ".join(f"{mean:.3g} at n = {n}" for n, mean in means.items()),
            '"with privacy loss decreasing as n grows" (section 3.5)',
            true=all(after < before for before, after in zip(means.values(), list(means.values())[1:], strict=False)),
            why="agrees where it falls from each n to the next",
        ),
        holds(
            "theorem over recipe",
            ", ".join(f"{ratio:.2g} at n = {n}" for n, ratio in zip(nodes, stronger, strict=True)),
            '"the privacy gains are stronger in practice than predicted" (section 3.5)',
            true=all(ratio > 1.0 for ratio in stronger), why="above 1 from n = 20 on; what is sound is in 000-fig2b",
        ),
        unknown("the curves' points", "see the tables", "the paper prints no number of this figure"),
    ]  # fmt: skip


def _make(setting: Setting, answers: Answers) -> Made:
    rows = walk_losses.rows(setting, answers, ACCOUNTS)
    theory = {name: [(n, formulas(n, _EPSILON_0)[name]) for n in grid(setting)] for name in _THEORY}
    table = [(name, n, value) for name, points in theory.items() for n, value in points]
    tables = (Table("", ("epsilon_0", "n", "account", "mean", "best", "worst", "walks"), rows),
              Table("theory", ("curve", "n", "epsilon"), table))  # fmt: skip
    return Made(tables, tuple(_lines(setting, rows)), (Picture("", 7.6, 4.6, partial(_draw, theory, rows)),))


def _draw(theory: dict[str, list[tuple[int, float]]], rows: Sequence[Sequence[Any]], figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    for name, look in _THEORY.items():
        n, epsilon = zip(*theory[name], strict=True)
        label = FORMULAS[name] if name != "second-fixed" else "network DP, exactly T/n visits"
        draw_curves(left, [Curve(label, n, epsilon, look=look)])
    for place, epsilon_0 in enumerate(walks.EPSILONS):
        for account in ACCOUNTS:
            own = [row for row in rows if row[0] == epsilon_0 and row[2] == account.name]
            _, n, _, mean, best, worst, _ = zip(*own, strict=True)
            label = f"{account.label}, ε₀ = {epsilon_0:g}"
            draw_curves(right, [Curve(label, n, mean, best, worst, account.look + 5 * place)])
    for axes, title in (
        (left, f"theorem of 2022, ε₀ = {_EPSILON_0:g}"),
        (right, "on walks: mean, best and worst pair"),
    ):
        axes.set_xscale("log")
        axes.set_yscale("log")
        name_axes(axes, title, "number of users n", "")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16))
    left.set_ylabel("privacy loss ε")


EXPERIMENT: Final = Experiment(
    name="001-fig1",
    paper="Report on Privacy Amplification by Decentralization, figure 1",
    title="network and local DP of a real sum for T = 100 n, by the theorem and on walks",
    pieces=_pieces,
    make=_make,
    seeds=(walks.SEED,),
)
