"""Leaks between users: the heat map, each user's worst observer, distance in the graph, formulas, and curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from p2pdp.core.words import conditioning_words
from p2pdp.report.page.axes import Frame, Scale, drawing, key, scale_of
from p2pdp.report.page.facts import Curve, PageFacts
from p2pdp.report.page.heat_map import SIDE_MAX, heat_map
from p2pdp.report.page.markup import Markup, figure, join, more, note, paragraph, table, tag
from p2pdp.report.page.pairs import Row, Step, by_distance, known, rows, rows_of
from p2pdp.report.page.words import number

_LISTED_MAX = 200


def map_of_pairs(facts: PageFacts) -> list[Markup]:
    if facts.totals is not None:
        return [
            note(
                "Not drawn.",
                f"The pairs of {facts.nodes} users were looked at one observer after the other, and are not held. "
                "p2pdp audit --pairs holds and writes every pair.",
            ),
            _per_user(facts, rows_of(facts.totals)),
        ]
    if not known(facts.epsilon):
        return [paragraph("There are no numbers for single pairs of users: see what was refused, and why.")]
    assert facts.epsilon is not None
    drawn, blocks = heat_map(facts.epsilon, "ε for every pair of a user and an observer")
    given = conditioning_words(facts.conditioning)
    caption = f"ε of every pair at δ = {number(facts.delta)}, {given}. Nobody is an observer of its own data."
    parts = [figure(drawn, caption)]
    if blocks:
        parts.insert(0, note(
            "Drawn coarsely.",
            f"{facts.nodes} users do not fit: a square stands for {blocks} pairs and shows the largest ε among them "
            f"(no side of the map has more than {SIDE_MAX} squares). p2pdp audit --pairs writes every pair.",
        ))  # fmt: skip
    return [*parts, _per_user(facts, rows(facts.epsilon))]


def _per_user(facts: PageFacts, found: list[Row]) -> Markup:
    title = "Look yourself up: who could have learned most about each user"
    if len(found) > _LISTED_MAX:
        found = sorted(found, key=lambda row: -row.worst)[:_LISTED_MAX]
        title = f"Who could have learned most about the {_LISTED_MAX} users who leak most"
    headings = ["user", "strongest observer", "ε to that one", "mean ε over observers"]
    cells = [[row.user, f"user {row.observer}", number(row.worst), number(row.mean)] for row in found]
    if facts.coalition is not None:
        headings.append("ε to the colluders together")
        for row, line in zip(found, cells, strict=True):
            value = float(facts.coalition[row.user])
            line.append("one of them" if math.isnan(value) else number(value))
    return more(title, table(headings, cells, numbers=(0, 2, 3, 4)))


def distance(facts: PageFacts) -> list[Markup]:
    """Show leaks by distance; the caller has checked that there are numbers for single pairs."""
    if facts.distances is None:
        return [paragraph(facts.no_distances)]
    assert facts.epsilon is not None
    found = by_distance(facts.epsilon, facts.distances)
    cells = [(step.distance, step.pairs, number(step.best), number(step.mean), number(step.worst)) for step in found]
    numbers = table(("distance", "pairs", "best ε", "mean ε", "worst ε"), cells, numbers=(0, 1, 2, 3, 4))
    if len(found) == 1:
        said = f"Every two users are at distance {found[0].distance}, so distance makes no difference here."
        return [paragraph(said), numbers]
    caption = "Distance is the number of edges on the shortest way between two users in the graph."
    return [figure(distance_chart(found), caption), more("The numbers", numbers), *against_printed(facts)]


def curves(facts: PageFacts) -> list[Markup]:
    parts = [
        paragraph(
            "δ is what the promise leaves open. The same leak can be stated with a smaller δ and a larger ε, or the "
            "other way round: a line shows all statements that hold at once, a lone dot the only one computed.",
        )
    ]
    endless = [curve.label for curve in facts.curves if _endless(curve)]
    drawn = [curve for curve in facts.curves if not _endless(curve)]
    if drawn:
        parts.append(
            figure(curve_chart(drawn, facts.delta), "The claims above; the dashed upright line is this run's δ.")
        )
    if endless:
        parts.append(paragraph(f"Infinite at every δ: {'; '.join(endless)}."))
    return parts


def _endless(curve: Curve) -> bool:
    return any(value == math.inf for _, value in curve.points)


_ROUNDING: Final = 1e-9
_UNIT: Final = (
    "1 is what a user's noised value tells by itself, and nobody can learn more. The printed formula adds up messages "
    "that share their noise: it may exceed 1, and it may also be far below what was told."
)


def against_printed(facts: PageFacts) -> list[Markup]:
    """Compare leaks with printed ones by distance, if both are known; the caller has checked that distances are."""
    if not known(facts.leak) or not known(facts.printed):
        return []
    assert facts.leak is not None
    assert facts.printed is not None
    assert facts.distances is not None
    told, printed = by_distance(facts.leak, facts.distances), by_distance(facts.printed, facts.distances)
    rows = [
        (one.distance, one.pairs, number(one.mean), number(one.worst), number(two.mean), number(two.worst))
        for one, two in zip(told, printed, strict=True)
    ]
    headings = ("distance", "pairs", "told, mean", "told, worst", "printed, mean", "printed, worst")
    return [
        figure(printed_chart(told, printed), _UNIT),
        more("The numbers, told and printed", table(headings, rows, numbers=(0, 1, 2, 3, 4, 5))),
        paragraph(_verdict(facts)),
    ]


def _verdict(facts: PageFacts) -> str:
    assert facts.leak is not None
    assert facts.printed is not None
    pairs = ~np.isnan(facts.leak) & ~np.isnan(facts.printed)
    below = pairs & (facts.leak > facts.printed * (1.0 + _ROUNDING) + _ROUNDING)
    if not below.any():
        return "In this run the printed formula is nowhere below what was told."
    gap = np.where(below, facts.leak - facts.printed, -1.0)
    user, observer = np.unravel_index(int(np.argmax(gap)), gap.shape)
    return (
        f"The printed formula understates what was told for {int(below.sum())} of {int(pairs.sum())} ordered pairs. "
        f"Most of all for user {user}, seen by user {observer}: it prints "
        f"{number(float(facts.printed[user, observer]))}, and {number(float(facts.leak[user, observer]))} was told."
    )


_X_TICKS_MAX: Final = 10
_POWER_MIN: Final = -300


def distance_chart(found: Sequence[Step]) -> Markup:
    """Draw worst, mean and best epsilon at each distance; for one distance alone write a sentence."""
    series = {
        "worst pair": [(step.distance, step.worst) for step in found],
        "mean of all pairs": [(step.distance, step.mean) for step in found],
        "best pair": [(step.distance, step.best) for step in found],
    }
    return _distances("Leak against distance in the graph", "ε", series)


def printed_chart(found: Sequence[Step], printed: Sequence[Step]) -> Markup:
    """Draw the leak at each distance and what a formula prints, in units of what a noised value tells by itself."""
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
    """Draw epsilon against delta. Equal curves are drawn once; infinite ones are described in a sentence."""
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
