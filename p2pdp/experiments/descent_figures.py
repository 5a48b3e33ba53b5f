"""The common part of figures about learning by a walk: curves over steps, final points, tables, sentences.

Curves are means over trials, bars and bands one standard deviation of single trials to each side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from p2pdp.experiments.contract import Line, Picture, Table, Verdict, holds
from p2pdp.experiments.descents import METHODS, OURS
from p2pdp.experiments.style import Curve, Panel, draw_curves, legend_below, name_axes, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from p2pdp.experiments.contract import Answers

Cells = list[tuple[float | str, ...]]

LABELS: Final = {
    "central": "central DP-SGD, as published",
    "local": "local DP-SGD, as published",
    "network": "network DP-SGD, as published",
    OURS: "walk.sgd, noise by its sound account",
}
ALL: Final = (*METHODS, OURS)
CURVES: Final = (
    "Curves over the number of steps of the walk, with bands of one standard deviation of single trials; above "
    "the accuracy on test rows, below the logistic loss on the rows learned from."
)
COMPARED: Final = (
    "Central, local and network noise at the same epsilon, as the paper sets them, and walk.sgd with the noise "
    "that its own sound account asks for."
)
UNPROVED: Final = (
    "The published noise levels of network DP rest on accounts that are no bound, because a user's repeated "
    "contributions between two visits of the observer share the noise that hides them; only the green curve's "
    "noise is proved to keep to epsilon."
)
_LOOKS: Final = {"central": 0, "local": 2, "network": 1, OURS: 3}
_ERRORS: Final = 2.0  # standard errors that a difference has to be beyond doubt by
_MEASURES: Final = (("accuracy", "accuracy on test rows"), ("loss", "logistic loss, learned rows"))


def curves_table(answers: Answers, name: str, keys: Mapping[str, str]) -> Table:
    """Return all points of the curves; `keys` are pieces and what tells them apart."""
    rows: Cells = [
        (
            shown,
            method,
            step,
            *(of[f"{measure}{part}"][place] for measure, _ in _MEASURES for part in ("", "_deviation")),
        )
        for key, shown in keys.items()
        for method in ALL
        for of in [answers[key][method]]
        for place, step in enumerate(answers[key]["steps"])
    ]
    columns = (name, "method", "step", "accuracy", "accuracy_deviation", "loss", "loss_deviation")
    return Table("", columns, rows)


def noise_table(answers: Answers, name: str, keys: Mapping[str, str]) -> Table:
    rows: Cells = [
        (shown, method, sigma) for key, shown in keys.items() for method, sigma in answers[key]["noise"].items()
    ]
    return Table("noise", (name, "method", "sigma"), rows)


def curves_picture(answers: Answers, keys: Mapping[str, str], title: str) -> Picture:
    """Draw a column of two panels for each piece; those of a single one stand side by side."""
    height_in = 5.4 if len(keys) > 1 else 3.6
    return Picture("", 3.6 * max(len(keys), 2) + 0.4, height_in, partial(_draw_curves, answers, keys, title))


def _draw_curves(answers: Answers, keys: Mapping[str, str], title: str, figure: Figure) -> None:
    alone = len(keys) == 1
    panels: Any = figure.subplots(*((1, 2) if alone else (2, len(keys))), sharex=True, squeeze=False)
    panels = panels.reshape(2, len(keys))
    figure.suptitle(title, fontsize=10)
    for column, (key, shown) in enumerate(keys.items()):
        for row, (measure, label) in enumerate(_MEASURES):
            axes = panels[row, column]
            drawn = []
            for method in ALL:
                of = answers[key][method]
                mean, deviation = of[measure], of[f"{measure}_deviation"]
                low = [m - d for m, d in zip(mean, deviation, strict=True)]
                high = [m + d for m, d in zip(mean, deviation, strict=True)]
                drawn.append(Curve(LABELS[method], answers[key]["steps"], mean, low, high, _LOOKS[method], band=True))
            draw_curves(axes, drawn)
            axes.locator_params(axis="x", nbins=5)
            name_axes(axes, shown if row == 0 or alone else "", "step of the walk" if row == 1 or alone else "", "")
            if column == 0:
                axes.set_ylabel(label)
            else:
                axes.sharey(panels[row, 0])
    legend_below(figure, panels[0, 0], 2)


def final_table(answers: Answers, name: str, keys: Mapping[str, float]) -> Table:
    """Return each method's final accuracy, by what was varied."""
    rows: Cells = []
    for key, value in keys.items():
        noise = answers[key]["noise"]
        for method in ALL:
            if method in noise:
                of = answers[key][method]
                rows.append((value, method, of["accuracy"][-1], of["accuracy_deviation"][-1], noise[method]))
    return Table("", (name, "method", "accuracy", "accuracy_deviation", "sigma"), rows)


def final_picture(answers: Answers, keys: Mapping[str, float], title: str, x: str) -> Picture:
    rows = final_table(answers, x, keys).rows
    curves = []
    for method in ALL:
        own: list[Any] = [row for row in rows if row[1] == method]
        values, _, mean, deviation, _ = zip(*own, strict=True)
        low = [m - d for m, d in zip(mean, deviation, strict=True)]
        high = [m + d for m, d in zip(mean, deviation, strict=True)]
        curves.append(Curve(LABELS[method], values, mean, low, high, _LOOKS[method]))
    panel = Panel(title, x, curves, log="x", ticks=sorted({int(row[0]) for row in rows}))
    return panels((6.4, 4.6), [panel], y="accuracy on test rows, at the end")


def final(answers: Answers, key: str, method: str) -> float:
    return float(answers[key][method]["accuracy"][-1])


def listed(answers: Answers, keys: Sequence[str], method: str) -> str:
    return ", ".join(f"{final(answers, key, method):.3f}" for key in keys)


def says(what: str, ours: str, quoted: str, section: str, *, true: bool, why: str) -> Line:
    """Return a line about what the paper says in words."""
    return holds(what, ours, f'"{quoted}" (section {section})', true=true, why=why)


Point = tuple[str, str, int]
"""A place on a curve: the piece, the method, and which of the steps looked at."""


def above(answers: Answers, what: str, quoted: tuple[str, str], points: tuple[Point, Point], by: float = 0.0) -> Line:
    """Judge whether the first accuracy is above the second by more than `by`; known where chance leaves no doubt."""
    gap, error = _gap(answers, *points)
    reach = _ERRORS * error
    verdict: Verdict = "agrees" if gap - reach > by else "differs" if gap + reach < by else "cannot be known"
    more = f"above by more than {by:g}" if by else "above"
    return _compared(answers, what, quoted, points, verdict, f"{more}? apart by {gap:.3f}, give or take {reach:.3f}")


def near(answers: Answers, what: str, quoted: tuple[str, str], points: tuple[Point, Point], within: float) -> Line:
    """Judge whether two accuracies are `within` of each other; known where chance leaves no doubt."""
    gap, error = _gap(answers, *points)
    reach = _ERRORS * error
    verdict: Verdict = "cannot be known"
    if abs(gap) + reach <= within:
        verdict = "agrees"
    elif abs(gap) - reach > within:
        verdict = "differs"
    why = f"within {within:g} of each other? apart by {abs(gap):.3f}, give or take {reach:.3f}"
    return _compared(answers, what, quoted, points, verdict, why)


def _gap(answers: Answers, first: Point, second: Point) -> tuple[float, float]:
    """Return the first mean less the second, and its standard error; trials of two curves are independent."""
    means, variances = [], []
    for key, method, place in (first, second):
        means.append(answers[key][method]["accuracy"][place])
        variances.append(answers[key][method]["accuracy_deviation"][place] ** 2 / max(1, answers[key]["trials"] - 1))
    return means[0] - means[1], math.sqrt(sum(variances))


def _compared(
    answers: Answers, what: str, quoted: tuple[str, str], points: tuple[Point, Point], verdict: Verdict, why: str
) -> Line:
    one, other = (answers[key][method]["accuracy"][place] for key, method, place in points)
    said = f'"{quoted[0]}" (section {quoted[1]})'
    return Line(what, f"accuracy {one:.3f} and {other:.3f}", said, verdict, f"{why} (two standard errors)")
