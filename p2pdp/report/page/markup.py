"""HTML and SVG as text, escaped by construction.

`tag` escapes every child and every attribute value that is not `Markup` already, and only `tag`, `text` and
`join` make `Markup`. Names of elements and attributes come from the code alone. Characters that do not simply
stand there (control characters, marks that turn the writing direction, halves of surrogate pairs) are shown as
escapes, as the command line shows them.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Final

_VOID: Final = frozenset({"meta", "br"})
_LEAVES: Final = frozenset({"rect", "path", "line", "circle", "polyline"})  # of SVG, which may end themselves


class Markup(str):
    """What is markup already and is not escaped again."""

    __slots__ = ()


def text(value: object) -> Markup:
    """A value as text that a browser shows and never obeys."""
    if isinstance(value, Markup):
        return value
    shown = f"{value:.6g}" if isinstance(value, float) else str(value)
    visible = "".join(letter if letter.isprintable() or letter == "\n" else repr(letter)[1:-1] for letter in shown)
    return Markup(html.escape(visible))


def join(parts: Iterable[object], between: str = "") -> Markup:
    return Markup(text(between).join(text(part) for part in parts))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element; `class_` is written class and `stroke_width` stroke-width; what is None is left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{given}>")
    if name in _LEAVES and not children:
        return Markup(f"<{name}{given}/>")
    return Markup(f"<{name}{given}>{join(children)}</{name}>")
