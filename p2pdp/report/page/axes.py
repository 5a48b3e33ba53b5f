"""A frame with axes for small charts: data in, places on a fixed drawing area out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from p2pdp.report.page.markup import Markup, join, tag
from p2pdp.report.page.scales import Scale
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
        """Lines, ticks and titles; the vertical axis has its title above it, which reads without turning the head."""
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
        """Points of a series, joined by its own kind of line, so that colour is not all that tells it from others."""
        placed = [(self.x(x), self.y(y)) for x, y in points]
        style = f"series s{series % len(_DASHES)}"
        dots = [tag("circle", class_=f"dot s{series % len(_DASHES)}", cx=x, cy=y, r=3) for x, y in placed]
        if len(placed) == 1:
            return tag("circle", class_=f"dot s{series % len(_DASHES)}", cx=placed[0][0], cy=placed[0][1], r=5)
        path = "M" + "L".join(f"{x:g} {y:g}" for x, y in placed)
        drawn = tag("path", class_=style, d=path, stroke_dasharray=_DASHES[series % len(_DASHES)])
        return join([drawn, *dots]) if len(placed) <= 16 else drawn


def key(labels: Sequence[str], *, dots: Sequence[bool] = ()) -> Markup:
    """Which line is which, as text below the chart, where it can be as long as it needs to be."""
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
    """An image with a name and a description for those who cannot see it."""
    names = tag("title", title), tag("desc", description)
    return tag("svg", *names, *parts, class_="chart", viewBox=f"0 0 {WIDTH} {height:g}", role="img", aria_label=title)
