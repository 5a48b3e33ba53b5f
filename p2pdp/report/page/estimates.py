"""How far off the result is, beside what others would have got with the same privacy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from p2pdp.report.page.axes import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Frame, drawing
from p2pdp.report.page.facts import Outcome
from p2pdp.report.page.markup import Markup, join, tag
from p2pdp.report.page.scales import Scale, round_step
from p2pdp.report.page.words import number

_TWO_SIDED: Final = 1.96  # of a normal distribution, 95 in 100 lie within so many standard deviations
SHOWN_MAX: Final = 24
_DRAWN_MAX: Final = 1e300  # the width of a drawing must be a number, too
_NAMES: Final = 170
_ROW: Final = 44


def error_chart(outcome: Outcome) -> Markup:
    """For one number: where 95 of 100 results would fall around the truth, for this run and its two rivals."""
    schemes = {
        "this run": outcome.standard_error,
        "a trusted curator": outcome.central,
        "local DP": outcome.local,
    }
    errors = {name: _TWO_SIDED * error for name, error in schemes.items() if isinstance(error, float)}
    reach = max([*errors.values(), abs(outcome.error) if isinstance(outcome.error, float) else 0.0])
    if not 0.0 < reach < _DRAWN_MAX:
        return Markup()
    step = round_step(reach, 3)
    edge = step * math.ceil(reach / step)
    base = 40 + _ROW * len(errors)

    def x(value: float) -> float:
        return round(_NAMES + (value / edge + 1) / 2 * (WIDTH - _NAMES - 30), 1)

    parts = []
    for tick in range(-round(edge / step), round(edge / step) + 1):
        at = x(tick * step)
        parts.append(tag("line", class_="grid", x1=at, x2=at, y1=30, y2=base))
        parts.append(tag("text", number(tick * step), class_="tick", x=at, y=base + 17, text_anchor="middle"))
    parts.append(tag("line", class_="here", x1=x(0), x2=x(0), y1=24, y2=base))
    parts.append(tag("text", "the true value", class_="tick", x=x(0), y=16, text_anchor="middle"))
    for row, (name, error) in enumerate(errors.items()):
        y = 40 + _ROW * row
        parts.append(tag("text", name, class_="label", x=_NAMES - 14, y=y + 19, text_anchor="end"))
        parts.append(tag("rect", class_=f"bar s{row}", x=x(-error), y=y + 5, width=x(error) - x(-error), height=18))
    if isinstance(outcome.error, float):
        said = tag("title", f"this run's estimate is off by {number(outcome.error)}")
        parts.append(tag("circle", said, class_="point", cx=x(outcome.error), cy=54, r=6))
    parts.append(tag("text", "off by", class_="title", x=x(0), y=base + 38, text_anchor="middle"))
    described = "The table beside it gives the same numbers as standard errors."
    return drawing("How far off results fall around the truth", described, *parts, height=base + 50)


def counts_chart(outcome: Outcome) -> Markup:
    """For a vector: each estimate with the range that holds 95 in 100, and the true value as a mark."""
    estimates, errors, truth = (
        part[:SHOWN_MAX] if isinstance(part, list) else []
        for part in (outcome.estimate, outcome.standard_error, outcome.truth)
    )
    if (
        not estimates
        or len(errors) != len(estimates)
        or not all(abs(value) < _DRAWN_MAX for value in [*estimates, *errors, *truth])
    ):
        return Markup()
    reach = [_TWO_SIDED * error for error in errors]
    ends = [
        *(value - part for value, part in zip(estimates, reach, strict=True)),
        *(value + part for value, part in zip(estimates, reach, strict=True)),
        *truth,
        0.0,
    ]
    frame = Frame(Scale((-0.5, len(estimates) - 0.5), logarithmic=False), _both_ways(ends))
    half = min(16.0, 0.3 * (WIDTH - LEFT - RIGHT) / len(estimates))
    parts = []
    for place, (value, part) in enumerate(zip(estimates, reach, strict=True)):
        x, y = frame.x(place), frame.y(value)
        said = tag("title", f"{place}: {number(value)} ± {number(part)}")
        low, high = frame.y(value - part), frame.y(value + part)
        parts.append(
            tag("rect", said, class_="bar s0", x=x - half, width=2 * half, y=high, height=max(1.0, low - high))
        )
        parts.append(tag("line", class_="mean", x1=x - half, x2=x + half, y1=y, y2=y))
        if place < len(truth):
            parts.append(tag("circle", class_="point", cx=x, cy=frame.y(truth[place]), r=4.5))
    stride = math.ceil(len(estimates) / 12)
    ticks = [(float(place), str(place)) for place in range(0, len(estimates), stride)]
    axes = frame.axes("place in the list (category, column)", "value", ticks)
    zero = frame.y(0.0)
    line = (
        tag("line", class_="axis", x1=LEFT, x2=WIDTH - RIGHT, y1=zero, y2=zero) if TOP < zero < HEIGHT - BOTTOM else ""
    )
    return drawing("Estimates and true values", "The table below gives the same numbers.", axes, line, join(parts))


def _both_ways(values: Sequence[float]) -> Scale:
    """A linear scale that holds values on both sides of 0."""
    low, high = min(values), max(values)
    step = round_step(high - low, 6) if high > low else 1.0
    first, last = math.floor(low / step), math.ceil(high / step)
    return Scale(tuple(step * part for part in range(first, max(last, first + 1) + 1)), logarithmic=False)
