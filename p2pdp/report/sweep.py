"""`sweep.html`: the rows of a sweep by point of its grid, with one picture.

The picture has the first key of the grid on its horizontal axis, and a line for each value of the second. Runs of one
point on other seeds, and on values of further keys, are taken together. The page keeps to the policy of `report.html`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from p2pdp.core.words import observer_name
from p2pdp.report.page.axes import Frame, Scale, drawing, key, scale_of
from p2pdp.report.page.markup import Markup, Section, document, figure, more, note, paragraph, table, text, with_small
from p2pdp.report.page.words import number

LINES_MAX: Final = 6  # as many kinds of lines as there are
ROWS_MAX: Final = 500
_WHAT: Final = {
    "simulate": "simulated runs, audited",
    "fast": "results drawn from their distribution, not audited",
    "plan": "plans; nothing was run",
}
_CLOSING: Final = (
    "Error: the root mean square over the runs of a point. Epsilon: the largest of them, for the headline's observer. "
    "Simulated runs take their noise from a seed and protect nobody."
)

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Point:
    """A point of the grid with what its runs came to; a number is None where no run has it."""

    values: list[Any]
    runs: int
    failed: int
    error: float | None
    standard_error: float | None
    epsilon: float | None
    worst_epsilon: float | None
    observers: list[str]


def summary(keys: Sequence[str], rows: Sequence[Row]) -> list[Point]:
    """Return the points of these keys in the order in which rows name them."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(json.dumps([row[name] for name in keys]), []).append(row)
    return [_point([group[0][name] for name in keys], group) for group in groups.values()]


def _point(values: list[Any], rows: Sequence[Row]) -> Point:
    def held(name: str) -> list[float]:
        return [row[name] for row in rows if row[name] is not None]

    return Point(
        values,
        len(rows),
        sum(bool(row["code"]) for row in rows),
        _mean_square(held("error")),
        _mean_square(held("standard_error")),
        max(held("epsilon"), default=None),
        max(held("worst_epsilon"), default=None),
        sorted({row["observer"] for row in rows if row["observer"] is not None}),
    )


def _mean_square(values: Sequence[float]) -> float | None:
    return math.sqrt(math.fsum(value * value for value in values) / len(values)) if values else None


def shown(value: object) -> str:
    """Format a value of the grid."""
    return value if isinstance(value, str) else json.dumps(value)


def sweep_page(name: str, what: str, grid: Sequence[str], rows: Sequence[Row], file: str) -> str:
    """Return the page of a sweep; `file` is the name of the table beside it."""
    failed = [row for row in rows if row["code"]]
    opening = paragraph(f"{name}: {len(rows)} runs ({_WHAT[what]}), version {rows[0]['version']}", soft=True)
    warning = [note(f"{len(failed)} of {len(rows)} runs failed", "and are left out of the picture.")] if failed else []
    sections = [
        Section("picture", "picture", "In one picture", [*warning, _picture(grid or ["seed"], rows)]),
        Section("points", "points", "By point of the grid", [points_table(grid, rows)]),
        Section("runs", "runs", "Every run", _runs(grid, rows, file)),
    ]
    if failed:
        sections.append(Section("failures", "failures", "What failed, and why", [_failures(grid, failed)]))
    return document(f"Sweep {name}", f"Sweep over {' and '.join(grid) or 'seeds'}", [opening], sections, _CLOSING)


def points_table(grid: Sequence[str], rows: Sequence[Row]) -> Markup:
    """Return the table of points, with what the runs of each came to."""
    headings = [*grid, "runs", "error", "standard error", "epsilon", "worst epsilon"]
    lines = [
        [
            *map(shown, point.values),
            f"{point.runs - point.failed} of {point.runs}" if point.failed else point.runs,
            _known(point.error),
            _known(point.standard_error),
            with_small(_known(point.epsilon), ", ".join(map(observer_name, point.observers))),
            _known(point.worst_epsilon),
        ]
        for point in summary(grid, rows)
    ]
    return table(headings, lines, numbers=range(len(grid), len(headings)))


def _known(value: float | None) -> str:
    return "" if value is None else number(value)


def _runs(grid: Sequence[str], rows: Sequence[Row], file: str) -> list[Markup]:
    headings = [*grid, "seed", "estimate", "error", "standard error", "epsilon", "messages", "excluded", "code"]
    names = [heading.replace(" ", "_") for heading in headings]
    lines = [
        [shown(row[name]) if name in grid else "" if row[name] is None else number(row[name]) for name in names]
        for row in rows[:ROWS_MAX]
    ]
    told = f"The first {ROWS_MAX} of {len(rows)} runs" if len(rows) > ROWS_MAX else f"All {len(rows)} runs"
    numeric = range(len(grid), len(headings))
    return [
        paragraph(f"{file} holds every run with all columns."),
        more(told, table(headings, lines, numbers=numeric)),
    ]


def _failures(grid: Sequence[str], failed: Sequence[Row]) -> Markup:
    headings = [*grid, "seed", "code", "problem"]
    lines = [[*(shown(row[name]) for name in grid), row["seed"], row["code"], row["problem"]] for row in failed]
    return table(headings, lines[:ROWS_MAX])


def _picture(keys: Sequence[str], rows: Sequence[Row]) -> Markup:
    name = "error" if any(row["error"] is not None for row in rows) else "epsilon"
    words = "root mean square error" if name == "error" else "epsilon"
    points = [(point, getattr(point, name)) for point in summary(keys[:2], rows)]
    drawn = [(point.values, float(value)) for point, value in points if value is not None]
    if not drawn:
        return paragraph("No run has an error or an epsilon, so there is nothing to draw.")
    labels = list(dict.fromkeys(shown(values[1]) for values, _ in drawn)) if len(keys) > 1 else [words]
    x_of, x_scale, ticks = _horizontal(list({shown(values[0]): values[0] for values, _ in drawn}.values()))
    y_scale = scale_of([value for _, value in drawn if value != math.inf])
    frame = Frame(x_scale, y_scale, with_infinity=any(value == math.inf for _, value in drawn))
    lines = [
        frame.line([(x_of(values[0]), y) for values, y in drawn if len(keys) < 2 or shown(values[1]) == label], series)
        for series, label in enumerate(labels[:LINES_MAX])
    ]
    title = f"{words[:1].upper()}{words[1:]} against {keys[0]}"
    chart = drawing(title, f"{title}; the table below has the numbers.", frame.axes(keys[0], words, ticks), *lines)
    legend = key([f"{keys[1]} = {label}" for label in labels[:LINES_MAX]]) if len(keys) > 1 else ""
    return Markup(text(figure(chart, _caption(keys, rows, labels, words))) + legend)


def _caption(keys: Sequence[str], rows: Sequence[Row], labels: Sequence[str], words: str) -> str:
    together = ["seeds", *keys[2:]] if keys[0] != "seed" else []
    each = f", each point over {' and '.join(together)}" if len(summary(keys[:2], rows)) < len(rows) else ""
    less = f"; the first {LINES_MAX} of {len(labels)} values of {keys[1]}" if len(labels) > LINES_MAX else ""
    whose = " for the observer that the table names" if words == "epsilon" else ""
    return f"{words[:1].upper()}{words[1:]}{whose}{each}{less}."


def _horizontal(values: Sequence[Any]) -> tuple[Any, Scale, list[tuple[float, str]]]:
    """Return where a value of the first key stands: on a scale, or one beside the other where it is no number."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 for value in values):
        scale = scale_of([float(value) for value in values])
        return float, scale, [(edge, number(edge)) for edge in scale.edges]
    places = {shown(value): place + 0.5 for place, value in enumerate(values)}
    ticks = [(place, label) for label, place in places.items()]
    return lambda value: places[shown(value)], Scale((0.0, float(len(values))), logarithmic=False), ticks
