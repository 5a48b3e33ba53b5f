"""Scales with round numbers, and a frame with axes for small charts: data in, places on a fixed drawing area out.

A scale is linear from 0 where that shows something, and logarithmic where the values differ by more than a factor of
a hundred. Infinite values have a place of their own beside every scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from p2pdp.report.page.markup import Markup, join, tag
from p2pdp.report.page.words import number

WIDTH: Final = 560
HEIGHT: Final = 320
LEFT: Final = 72
RIGHT: Final = 20
TOP: Final = 34
BOTTOM: Final = 50
_DASHES: Final = (None, "7 4", "2 3", "10 3 2 3", "4 2", "1 4")


@dataclass(frozen=True)
class Frame:
    """`x` and `y` place values on the drawing; an infinite y stands on a line of its own above the scale."""

    x_scale: Scale
    y_scale: Scale
    with_infinity: bool = False

    def x(self, value: float) -> float:
        return round(LEFT + self.x_scale.place(value) * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        if value == math.inf:
            return TOP
        top = TOP + (24 if self.with_infinity else 0)
        return round(HEIGHT - BOTTOM - self.y_scale.place(value) * (HEIGHT - BOTTOM - top), 1)

    def axes(self, x_title: str, y_title: str, x_ticks: Sequence[tuple[float, str]]) -> Markup:
        """Draw lines, ticks and titles; the vertical axis has its title above it."""
        base, left, right = HEIGHT - BOTTOM, LEFT, WIDTH - RIGHT
        parts = [tag("text", y_title, class_="title", x=8, y=16)]
        ticks = [(edge, number(edge)) for edge in self.y_scale.edges]
        if self.with_infinity:
            ticks.append((math.inf, "infinite"))
        for value, label in ticks:
            y = self.y(value)
            parts.append(tag("line", class_="grid", x1=left, x2=right, y1=y, y2=y))
            parts.append(tag("text", label, class_="tick", x=left - 6, y=y + 4, text_anchor="end"))
        for value, label in x_ticks:
            parts.append(tag("line", class_="axis", x1=self.x(value), x2=self.x(value), y1=base, y2=base + 4))
            parts.append(tag("text", label, class_="tick", x=self.x(value), y=base + 17, text_anchor="middle"))
        parts.append(tag("line", class_="axis", x1=left, x2=right, y1=base, y2=base))
        parts.append(tag("text", x_title, class_="title", x=(left + right) / 2, y=HEIGHT - 10, text_anchor="middle"))
        return join(parts)

    def line(self, points: Sequence[tuple[float, float]], series: int) -> Markup:
        """Draw a series with its own kind of line, so that colour is not all that tells it from others."""
        placed = [(self.x(x), self.y(y)) for x, y in points]
        style = f"series s{series % len(_DASHES)}"
        dots = [tag("circle", class_=f"dot s{series % len(_DASHES)}", cx=x, cy=y, r=3) for x, y in placed]
        if len(placed) == 1:
            return tag("circle", class_=f"dot s{series % len(_DASHES)}", cx=placed[0][0], cy=placed[0][1], r=5)
        path = "M" + "L".join(f"{x:g} {y:g}" for x, y in placed)
        drawn = tag("path", class_=style, d=path, stroke_dasharray=_DASHES[series % len(_DASHES)])
        return join([drawn, *dots]) if len(placed) <= 16 else drawn


def key(labels: Sequence[str], *, dots: Sequence[bool] = ()) -> Markup:
    """Return the legend, as text below the chart, where it can be as long as it needs to be."""
    entries = []
    for series, label in enumerate(labels):
        kind = series % len(_DASHES)
        if dots and dots[series]:
            mark = tag("circle", class_=f"dot s{kind}", cx=17, cy=6, r=5)
        else:
            mark = tag("line", class_=f"series s{kind}", x1=0, x2=34, y1=6, y2=6, stroke_dasharray=_DASHES[kind])
        entries.append(tag("li", tag("svg", mark, viewBox="0 0 34 12", class_="mark", aria_hidden="true"), label))
    return tag("ul", *entries, class_="key")


def drawing(title: str, description: str, *parts: object, height: float = HEIGHT) -> Markup:
    """Return an image with a name and a description for those who cannot see it."""
    names = tag("title", title), tag("desc", description)
    return tag("svg", *names, *parts, class_="chart", viewBox=f"0 0 {WIDTH} {height:g}", role="img", aria_label=title)


_SPREAD_MAX: Final = 100.0
_LEVELS_MAX: Final = 9
_CLOSE: Final = 0.5  # by how much of the least one values may differ that lie close together
_SMALLEST: Final = 1e-300  # smaller ones count as 0, and larger ones than the next stand at the end of the scale
_LARGEST: Final = 1e300
_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)


def round_step(span: float, parts: int) -> float:
    """Return the smallest of 1, 2, 2.5 and 5 times a power of ten that covers the span in so many parts."""
    rough = span / parts
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in _STEPS if step * power >= rough * (1 - 1e-9))


@dataclass(frozen=True)
class Scale:
    """`edges` ascend; on a linear scale they are evenly spaced, on a logarithmic one they are powers."""

    edges: tuple[float, ...]
    logarithmic: bool

    def place(self, value: float) -> float:
        """Return the place of a finite value, 0 at the first edge and 1 at the last, and never beyond."""
        low, high = self.edges[0], self.edges[-1]
        if self.logarithmic:
            part = math.log(value / low) / math.log(high / low) if value > low else 0.0
        else:
            part = (value - low) / (high - low)
        return min(1.0, max(0.0, part))


def scale_of(values: Iterable[float], parts: int = 5) -> Scale:
    """Return a scale that holds all these finite values of at least 0.

    Whether it is logarithmic, the lowest tenth of the values does not decide: a few small ones may lie close to 0.
    """
    given = sorted(min(value, _LARGEST) for value in values if value > _SMALLEST) or [1.0]
    low, high = given[0], given[-1]
    if high / given[len(given) // 10] > _SPREAD_MAX:
        return Scale(tuple(_powers(max(low, high * 1e-9), high, parts)), logarithmic=True)
    step = round_step(high, parts)
    return Scale(tuple(step * part for part in range(math.ceil(high / step * (1 - 1e-9)) + 1)), logarithmic=False)


def both_ways(values: Sequence[float]) -> Scale:
    """Return a linear scale that holds values on both sides of 0."""
    low, high = min(values), max(values)
    step = round_step(high - low, 6) if high > low else 1.0
    first, last = math.floor(low / step), math.ceil(high / step)
    return Scale(tuple(step * part for part in range(first, max(last, first + 1) + 1)), logarithmic=False)


def _powers(low: float, high: float, parts: int) -> list[float]:
    """Return powers of ten, with 3 or with 2 and 5 times them in between where there is room."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high) - 1e-9)
    for mantissas in ((1.0, 2.0, 5.0), (1.0, 3.0)):
        edges = [mantissa * 10.0**power for power in range(first, last + 1) for mantissa in mantissas]
        start = max(place for place, edge in enumerate(edges) if edge <= low * (1 + 1e-9))
        end = min(place for place, edge in enumerate(edges) if edge >= high * (1 - 1e-9))
        if end - start <= parts:
            return edges[start : end + 1]
    stride = math.ceil((last - first) / parts)
    return [10.0 ** (last - stride * back) for back in range(math.ceil((last - first) / stride), -1, -1)]


def levels_of(values: Iterable[float]) -> Scale:
    """Return a scale whose steps are colours; the lowest level of a logarithmic one reaches down to 0.

    Values that lie close together have a scale of their own, which does not begin at 0.
    """
    given = list(values)
    low, high = min(given, default=0.0), max(given, default=0.0)
    if not _SMALLEST < high - low < _CLOSE * low < _LARGEST:
        return scale_of(given, _LEVELS_MAX)
    step = round_step(high - low, _LEVELS_MAX - 1)
    first, last = math.floor(low / step * (1 + 1e-9)), math.ceil(high / step * (1 - 1e-9))
    return Scale(tuple(step * part for part in range(first, max(last, first + 1) + 1)), logarithmic=False)


def steps(scale: Scale) -> list[tuple[float, float]]:
    """Return the levels from bottom to top as (above, up to)."""
    found = list(pairwise(scale.edges))
    if scale.logarithmic:
        found[0] = (0.0, found[0][1])
    return found


def colours(count: int) -> list[int]:
    """Return the colour of each of `count` levels, spread over all nine."""
    if count == 1:
        return [5]
    return [round(level * (_LEVELS_MAX - 1) / (count - 1)) for level in range(count)]
