"""Learning curves: loss and score on public rows over steps, as drawings with a table of the same numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from p2pdp.report.page.axes import Frame, Scale, both_ways, drawing, key, round_step, scale_of
from p2pdp.report.page.markup import Markup, figure, join, more, paragraph, table
from p2pdp.report.page.words import number

if TYPE_CHECKING:
    from p2pdp.report.page.facts import LearningCurves

NAMES: Final = {"run": "this run", "local": "local DP", "central": "a trusted curator", "none": "no privacy"}
_TICKS: Final = 6
_DRAWN_MAX: Final = 1e300

Line = Sequence[float | None]


@dataclass(frozen=True)
class OwnCurve:
    """Loss and score of a node's own model after so many of `steps` steps, one at least."""

    steps: int
    step: str
    rows: int
    score_name: str | None
    at: tuple[int, ...] = ()
    loss: tuple[float | None, ...] = ()
    score: tuple[float | None, ...] = ()


def own_curve(curve: OwnCurve) -> list[Markup]:
    """Return how a node's own model learns, as far as it is, over all the steps there will be."""
    at = [*curve.at, curve.steps] if curve.at[-1] < curve.steps else [*curve.at]
    lines = {"loss": curve.loss} if curve.score_name is None else {"loss": curve.loss, curve.score_name: curve.score}
    drawn = [learning_chart(name, curve.step, at, {"your own model": line}) for name, line in lines.items()]
    last = [(name, number(line[-1])) for name, line in lines.items()]
    said = f"Your own model after {curve.at[-1]} of {curve.steps} {curve.step}, on {curve.rows} public rows:"
    return [paragraph(said), table(("", ""), last, numbers=(1,)), *filter(None, drawn)]


def learning_curves(curves: LearningCurves) -> list[Markup]:
    """Return the curves of a run and of what it is compared with."""
    if not curves.lines:
        return []
    kinds = {"loss": "loss", **({} if curves.score_name is None else {"score": curves.score_name})}
    labels = [NAMES.get(name, name) for name in curves.lines]
    caption = (
        f"How models learn: loss and score on {curves.rows} public rows. Without privacy, with local DP and with a "
        "curator the same steps are taken. The launcher collected the models of this run, known to their holders alone."
    )
    drawn = [
        learning_chart(words, curves.step, curves.at, {name: line[kind] for name, line in curves.lines.items()})
        for kind, words in kinds.items()
    ]
    shown = [one for one in drawn if one]
    rows = [
        (place, *("unknown" if line[kind][at] is None else number(line[kind][at])
                  for kind in kinds for line in curves.lines.values()))
        for at, place in enumerate(curves.at)
    ]  # fmt: skip
    headings = (curves.step, *(f"{words}, {label}" for words in kinds.values() for label in labels))
    numbers = more("The numbers of the curves", table(headings, rows, numbers=tuple(range(len(headings)))))
    if not shown:
        return [paragraph("No curve can be drawn: the losses are not finite.", soft=True), numbers]
    return [figure(join([*shown, key(labels)]), caption), numbers]


def learning_chart(what: str, step: str, at: Sequence[int], lines: Mapping[str, Line]) -> Markup:
    """Draw one measure over steps, a line for each name; nothing where no line has two numbers."""
    placed = {
        name: [(float(x), y) for x, y in zip(at, line, strict=False) if y is not None and abs(y) < _DRAWN_MAX]
        for name, line in lines.items()
    }
    values = [y for points in placed.values() for _, y in points]
    last = max(at, default=0)
    if last < 1 or len(values) < 2:
        return Markup()
    stride = max(1, math.ceil(round_step(last, _TICKS)))
    ticks = [(float(place), str(place)) for place in range(0, last + 1, stride)]
    frame = Frame(
        Scale((0.0, float(last)), logarithmic=False), both_ways(values) if min(values) < 0.0 else scale_of(values)
    )
    drawn = [frame.line(points, series) for series, points in enumerate(placed.values()) if points]
    return drawing(f"{what} over {step}", f"A line for {', '.join(lines)}.",
                   frame.axes(step, f"{what} on public rows", ticks), *drawn)  # fmt: skip


def public_rows(scores: Mapping[str, float | None]) -> list[tuple[str, str]]:
    """Return the scores of the published model in words."""
    return [
        (f"{name.removeprefix('public_')} on public rows", number(value))
        for name, value in scores.items()
        if value is not None
    ]
