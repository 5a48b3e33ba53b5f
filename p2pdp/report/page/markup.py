"""HTML elements that cannot be broken out of, and the page that they make up."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from p2pdp.report.page.style import POLICY, STYLE

_VOID: Final = frozenset({"meta", "br"})
_LEAVES: Final = frozenset({"rect", "path", "line", "circle", "polyline"})  # of SVG, which may end themselves


class Markup(str):
    """Markup, which is not escaped again."""

    __slots__ = ()


def text(value: object) -> Markup:
    """Return a value as text that a browser shows and never obeys."""
    if isinstance(value, Markup):
        return value
    shown = f"{value:.6g}" if isinstance(value, float) else str(value)
    visible = "".join(letter if letter.isprintable() or letter == "\n" else repr(letter)[1:-1] for letter in shown)
    return Markup(html.escape(visible))


def join(parts: Iterable[object], between: str = "") -> Markup:
    return Markup(text(between).join(text(part) for part in parts))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Return an element; `class_` is written class and `stroke_width` stroke-width; what is None is left out."""
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


_FEW_COLUMNS: Final = 5  # with more of them, a narrow window shows each row as a list


@dataclass(frozen=True)
class Section:
    """`name` is its anchor, `short` its entry in the list on top."""

    name: str
    short: str
    title: str
    parts: Sequence[object]


def document(
    title: str,
    heading: str,
    opening: Iterable[object],
    sections: Sequence[Section],
    closing: object,
    *,
    policy: str = POLICY,
    head: object = "",
) -> str:
    """Return a whole page that needs nothing from anywhere else: no script, no font, no image, no connection.

    A live page has more in its `head`, and the policy that goes with it (`web/live.py`).
    """
    about = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=Markup(policy)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", Markup(STYLE)),
        head,
    )
    entries = [tag("li", tag("a", section.short, href=f"#{section.name}")) for section in sections]
    contents = tag("nav", tag("ul", *entries), aria_label="contents")
    main = [
        tag("section", tag("h2", section.title, id=f"{section.name}-title"), "\n", join(section.parts, "\n"),
            id=section.name, aria_labelledby=f"{section.name}-title")
        for section in sections
    ]  # fmt: skip
    running = tag("div", title, class_="running", aria_hidden="true")  # on paper, on top of every page
    body = tag(
        "body", running, tag("header", tag("h1", heading), *opening, contents), "\n", tag("main", join(main, "\n")),
        "\n", tag("footer", closing),
    )  # fmt: skip
    return f"<!DOCTYPE html>\n{tag('html', about, chr(10), body, lang='en')}\n"


def paragraph(*parts: object, soft: bool = False) -> Markup:
    return tag("p", *parts, class_="soft" if soft else None)


def note(first: str, *rest: object) -> Markup:
    """Return a note that a reader must not overlook."""
    return tag("p", tag("strong", first), " ", *rest, class_="note", role="note")


def card(title: str, big: str, *lines: object) -> Markup:
    return tag("div", tag("h3", title), tag("p", big, class_="big"), *(tag("p", line) for line in lines), class_="card")


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Sequence[int] = ()) -> Markup:
    """Return a table; the first cell of a row names it, and the columns in `numbers` stand flush right."""

    def kind(place: int) -> str | None:
        return "n" if place in numbers else None

    many = len(headings) > _FEW_COLUMNS
    named = headings if many else [None] * len(headings)  # beside each cell, where a narrow window shows no head
    head = tag("tr", *(tag("th", text, scope="col", class_=kind(place)) for place, text in enumerate(headings)))
    body = [
        tag("tr", *(
            tag("td", cell, class_=kind(place), data_label=named[place])
            if place else tag("th", cell, scope="row", class_=kind(0))
            for place, cell in enumerate(row)
        ))
        for row in rows
    ]  # fmt: skip
    shown = tag("thead", head) if any(headings) else ""
    return wide(tag("table", shown, tag("tbody", *body), class_="many" if many else None))


def wide(*parts: object) -> Markup:
    """Wrap what may be wider than a narrow window; it scrolls inside, also by keyboard."""
    return tag("div", *parts, class_="wide", tabindex="0", role="group")


def figure(drawn: Markup, caption: object) -> Markup:
    return tag("figure", wide(drawn), tag("figcaption", caption))


def more(title: str, *parts: object) -> Markup:
    """Fold what only some readers want; it opens without any script."""
    return tag("details", tag("summary", title), *parts)


def with_small(main: object, small: object) -> Markup:
    return join([main, tag("span", small, class_="small")])
