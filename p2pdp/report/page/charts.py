"""The charts of leaks: by graph distance, and by the delta that one allows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from p2pdp.report.page.axes import Frame, drawing, key
from p2pdp.report.page.facts import Curve
from p2pdp.report.page.markup import Markup, join, tag
from p2pdp.report.page.pairs import Step
from p2pdp.report.page.scales import Scale, scale_of
from p2pdp.report.page.words import number

_X_TICKS_MAX: Final = 10
_POWER_MIN: Final = -300


def distance_chart(found: Sequence[Step]) -> Markup:
    """Worst, mean and best epsilon at each distance; for one distance alone a sentence says it better."""
    series = {
        "worst pair": [(step.distance, step.worst) for step in found],
        "mean of all pairs": [(step.distance, step.mean) for step in found],
        "best pair": [(step.distance, step.best) for step in found],
    }
    return _distances("Leak against distance in the graph", "ε", series)


def printed_chart(found: Sequence[Step], printed: Sequence[Step]) -> Markup:
    """What is told at each distance, and what a formula prints, in units of what a noised value tells by itself."""
    series = {
        "told, worst pair": [(step.distance, step.worst) for step in found],
        "told, mean": [(step.distance, step.mean) for step in found],
        "printed, worst pair": [(step.distance, step.worst) for step in printed],
        "printed, mean": [(step.distance, step.mean) for step in printed],
    }
    return _distances("Leak against distance, told and printed", "leak", series)


def _distances(title: str, unit: str, series: Mapping[str, Sequence[tuple[int, float]]]) -> Markup:
    values = [value for points in series.values() for _, value in points]
    places = [distance for points in series.values() for distance, _ in points]
    low, high = min(places), max(places)
    frame = Frame(
        Scale((low - 0.5, high + 0.5), logarithmic=False),
        scale_of(value for value in values if value < math.inf),
        with_infinity=math.inf in values,
    )
    stride = math.ceil((high - low + 1) / _X_TICKS_MAX)
    ticks = [(float(distance), str(distance)) for distance in range(low, high + 1, stride)]
    lines = [frame.line(points, place) for place, points in enumerate(series.values())]
    axes = frame.axes("edges between the two users", unit, ticks)
    return join([drawing(title, "The table below gives the same numbers.", axes, *lines), key(list(series))])


def curve_chart(curves: Sequence[Curve], delta: float) -> Markup:
    """Epsilon against delta. Equal curves are drawn once; infinite ones are for a sentence, not for a drawing."""
    together: dict[tuple[tuple[float, float], ...], list[str]] = {}
    for curve in curves:
        together.setdefault(tuple(curve.points), []).append(curve.label)
    deltas = [at for points in together for at, _ in points] + [delta]
    powers = range(max(_POWER_MIN, math.floor(math.log10(min(deltas)))), math.ceil(math.log10(max(deltas)) - 1e-9) + 1)
    powers = range(powers[0], max(powers[-1], powers[0] + 1) + 1)
    scale = Scale((10.0 ** powers[0], 10.0 ** powers[-1]), logarithmic=True)
    frame = Frame(scale, scale_of(value for points in together for _, value in points))
    stride = math.ceil(len(powers) / _X_TICKS_MAX)
    ticks = [(10.0**power, number(10.0**power)) for power in powers[::stride]]
    at = tag("line", class_="here", x1=frame.x(delta), x2=frame.x(delta), y1=frame.y(frame.y_scale.edges[-1]), y2=270)
    said = tag("text", f"δ = {number(delta)}", class_="tick", x=frame.x(delta) + 5, y=30)
    lines = [frame.line(points, place) for place, points in enumerate(together)]
    dots = [
        tag("circle", class_=f"dot s{place % 6}", cx=frame.x(delta), cy=frame.y(value), r=4)
        for place, points in enumerate(together)
        for x, value in points
        if x == delta
    ]
    axes = frame.axes("δ (how much may go beyond ε)", "ε", ticks)
    figure = drawing("ε against δ", "The claims' own numbers are in the tables above.", axes, at, said, *lines, *dots)
    labels = ["; ".join(names) for names in together.values()]
    return join([figure, key(labels, dots=[len(points) == 1 for points in together])])
