"""Figures of privacy loss against the number of users, measured on walks: what 2b, 2c and 2d have in common.

For each epsilon_0, number of users and walk there is a piece, which answers with mean, least and largest loss of
several accounts. Each account is a curve with error bars from the best to the worst pair of all walks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from p2pdp.experiments import walks
from p2pdp.experiments.contract import Answers, Made, Picture, Piece, Setting, Table
from p2pdp.experiments.style import Curve, draw_curves, legend_below, name_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from p2pdp.experiments.contract import Line

Losses = Callable[[int, int, float], dict[str, dict[str, float]]]
"""Of n users, the walk's number and epsilon_0: for each account mean, best and worst over pairs."""

_COLUMNS: Final = ("epsilon_0", "n", "account", "mean", "best", "worst", "walks")


@dataclass(frozen=True, slots=True)
class Account:
    """One curve: its name in answers, in tables and in the legend, and its look."""

    name: str
    label: str
    look: int


def pieces(setting: Setting, losses: Losses, facts: Mapping[str, Any]) -> list[Piece]:
    """The largest first: they take longest."""
    found = []
    for n in sorted(walks.nodes(setting), reverse=True):
        for epsilon_0 in walks.EPSILONS:
            for walk in range(walks.walks(setting)):
                key = f"n{n}-e{round(1000 * epsilon_0)}-w{walk}"
                told = {"n": n, "epsilon_0": epsilon_0, "walk": walk, "seed": walks.SEED, **facts}
                found.append(Piece(key, partial(losses, n, walk, epsilon_0), told))
    return found


def answers_of(setting: Setting, answers: Answers, n: int, epsilon_0: float) -> list[Mapping[str, Any]]:
    return [answers[f"n{n}-e{round(1000 * epsilon_0)}-w{walk}"] for walk in range(walks.walks(setting))]


def rows(setting: Setting, answers: Answers, accounts: Sequence[Account]) -> list[tuple[float | str, ...]]:
    found: list[tuple[float | str, ...]] = []
    for epsilon_0 in walks.EPSILONS:
        for n in walks.nodes(setting):
            each = answers_of(setting, answers, n, epsilon_0)
            for account in accounts:
                spread = walks.gathered(each, account.name)
                if spread is not None:
                    count = sum(account.name in answer for answer in each)
                    found.append((epsilon_0, n, account.name, *spread, count))
    return found


def made(setting: Setting, answers: Answers, accounts: Sequence[Account], title: str, lines: Sequence[Line]) -> Made:
    table = rows(setting, answers, accounts)
    draw = partial(_draw, table, accounts, title)
    return Made((Table("", _COLUMNS, table),), tuple(lines), (Picture("", 7.2, 4.4, draw),))


def _draw(table: Sequence[Sequence[Any]], accounts: Sequence[Account], title: str, figure: Figure) -> None:
    panels: Any = figure.subplots(1, len(walks.EPSILONS), sharey=True)
    figure.suptitle(title, fontsize=10)
    for axes, epsilon_0 in zip(panels, walks.EPSILONS, strict=True):
        for place, account in enumerate(accounts):
            own = [row for row in table if row[0] == epsilon_0 and row[2] == account.name]
            if own:
                _, n, _, mean, best, worst, _ = zip(*own, strict=True)
                shifted = [users * 1.05 ** (place - len(accounts) / 2) for users in n]
                draw_curves(axes, [Curve(account.label, shifted, mean, best, worst, account.look)])
        axes.set_xscale("log")
        axes.set_yscale("log")
        users = sorted({row[1] for row in table})
        axes.set_xticks(users, [str(n) for n in users])
        axes.minorticks_off()
        name_axes(axes, f"each contribution ε₀ = {epsilon_0:g}", "number of users n", "")
    panels[0].set_ylabel("privacy loss ε of a pair")
    legend_below(figure, panels[0], 2)
