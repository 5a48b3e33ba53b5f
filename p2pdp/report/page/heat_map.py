"""The heat map user × observer: one small square a pair, or a block of pairs where there are too many users.

Few users: each square is an element with a text of its own, which a browser shows under the pointer. Many: the
squares of one colour in one row are strokes of one path, so that a hundred users take some tens of kilobytes.
Colours differ in lightness all the way, so that they can be told apart without seeing hues; infinite and refused
pairs are hatched, in directions of their own.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.report.page.axes import WIDTH, Scale, colours, drawing, levels_of, steps
from p2pdp.report.page.markup import Markup, join, tag
from p2pdp.report.page.pairs import blocks_of, finite
from p2pdp.report.page.words import number

SIDE_MAX: Final = 200
_TITLED_MAX: Final = 40
_LEFT: Final = 62
_TOP: Final = 44
_SIZE: Final = WIDTH - _LEFT - 8
_HEIGHT: Final = _TOP + _SIZE + 10
_NO_PAIR: Final = -1
_TICKS_MAX: Final = 8


def heat_map(epsilon: Floats, what: str) -> tuple[Markup, str]:
    """Return the figure, and how many users a side of a square stands for, in words ("" if it is one)."""
    shown, side = blocks_of(epsilon, SIDE_MAX)
    scale = levels_of(finite(shown))
    classes = _classes(shown, scale)
    if side == 1:  # a block on the diagonal holds pairs too, but for a last one of a single user
        np.fill_diagonal(classes, _NO_PAIR)
    elif len(epsilon) % side == 1:
        classes[-1, -1] = _NO_PAIR
    n = len(shown)
    squares = _titled(shown, classes) if n <= _TITLED_MAX and side == 1 else _paths(classes)
    cells = tag(
        "svg", squares, x=_LEFT, y=_TOP, width=_SIZE, height=_SIZE, viewBox=f"0 0 {n} {n}", class_="cells",
        preserveAspectRatio="none",
    )  # fmt: skip
    frame = tag("rect", class_="frame", x=_LEFT - 0.5, y=_TOP - 0.5, width=_SIZE + 1, height=_SIZE + 1)
    described = "Rows are users whose data is at stake, columns are users who look. The table below says the same."
    figure = drawing(what, described, _patterns(n), frame, cells, _ticks(len(epsilon)), height=_HEIGHT)
    blocks = "" if side == 1 else f"{side} by {side}"
    return join([figure, _key(scale, shown, classes)]), blocks


def _classes(shown: Floats, scale: Scale) -> Floats:
    """Return the colour of each square: 0 to 8, 9 for infinite, 10 for refused."""
    tints = np.array(colours(len(scale.edges) - 1))
    level = np.searchsorted(np.array(scale.edges[1:-1]) * (1 + 1e-12), np.nan_to_num(shown, posinf=0.0))
    found = tints[level]
    found = np.where(np.isinf(shown), 9, found)
    return np.where(np.isnan(shown), 10, found)


def _titled(shown: Floats, classes: Floats) -> Markup:
    parts = []
    for (user, observer), kind in np.ndenumerate(classes):
        if kind == _NO_PAIR:
            continue
        value = shown[user, observer]
        said = "refused" if math.isnan(value) else f"ε {number(float(value))}"
        words = tag("title", f"user {user}, seen by user {observer}: {said}")
        parts.append(tag("rect", words, class_=f"h{kind}", x=observer, y=user, width=1, height=1))
    return join(parts)


def _paths(classes: Floats) -> Markup:
    strokes: dict[int, list[str]] = {}
    for y, row in enumerate(classes):
        starts = [0, *(np.nonzero(np.diff(row))[0] + 1).tolist(), len(row)]
        for start, end in pairwise(starts):
            strokes.setdefault(int(row[start]), []).append(f"M{start} {y}h{end - start}")
    return join(
        tag("path", class_=f"run h{kind}", d="".join(runs), transform="translate(0 .5)")
        for kind, runs in sorted(strokes.items())
        if kind != _NO_PAIR
    )


def _patterns(n: int) -> Markup:
    return tag("defs", _hatch("infinite", _stripes(n), 45), _hatch("refused", _stripes(n), -45))


def _stripes(n: int) -> float:
    """Return the width of a hatching in squares, never finer than the eye can follow."""
    return max(0.34, n / 60)


def _hatch(name: str, size: float, angle: int) -> Markup:
    ground = tag("rect", class_=f"{name}-ground", width=size, height=size)
    stripe = tag("rect", class_=f"{name}-stripe", width=size / 3, height=size)
    return tag(
        "pattern", ground, stripe, id=name, width=size, height=size, patternUnits="userSpaceOnUse",
        patternTransform=f"rotate({angle})",
    )  # fmt: skip


def _ticks(users: int) -> Markup:
    stride = max(1, math.ceil(users / _TICKS_MAX))
    stride = next(step * 10**power for power in range(8) for step in (1, 2, 5) if step * 10**power >= stride)
    parts = [
        tag("text", "observing user", class_="title", x=_LEFT + _SIZE / 2, y=14, text_anchor="middle"),
        tag(
            "text", "user whose data is at stake", class_="title", text_anchor="middle",
            transform=f"translate(16 {_TOP + _SIZE / 2}) rotate(-90)",
        ),
    ]  # fmt: skip
    for user in range(0, users, stride):
        place = (user + 0.5) / users * _SIZE
        parts.append(tag("text", user, class_="tick", x=_LEFT + place, y=_TOP - 8, text_anchor="middle"))
        parts.append(tag("text", user, class_="tick", x=_LEFT - 7, y=_TOP + place + 4, text_anchor="end"))
    return join(parts)


def _key(scale: Scale, shown: Floats, classes: Floats) -> Markup:
    """Return the legend; infinite and refused only where there is such a square."""
    bands = steps(scale) if finite(shown) else []
    entries: list[tuple[str, str]] = []
    for colour, (low, high) in zip(colours(len(bands)), bands, strict=True):
        entries.append((f"h{colour}", f"up to {number(high)}" if low == 0.0 else f"{number(low)} to {number(high)}"))
    if np.any(np.isinf(shown)):
        entries.append(("h9", "infinite: no protection"))
    if np.any(classes == 10):
        entries.append(("h10", "refused: cannot be told"))
    side = 3 * _stripes(len(shown))
    return tag("ul", *(_entry(kind, label, side) for kind, label in entries), class_="key")


def _entry(kind: str, label: str, side: float) -> Markup:
    swatch = tag("rect", class_=kind, width=side, height=side)
    box = f"0 0 {side:g} {side:g}"
    return tag("li", tag("svg", swatch, viewBox=box, class_="swatch", aria_hidden="true"), label)
