"""The graph of a run as a picture: users on a circle, each with the state that it is in, and never where anything is.

Marks differ in shape as well as in colour, and each has its user and state as its title.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from p2pdp.report.page.axes import WIDTH, drawing
from p2pdp.report.page.markup import Markup, figure, join, paragraph, table, tag
from p2pdp.report.page.words import number
from p2pdp.web.status import Status, moment

USERS_MAX: Final = 60
EDGES_MAX: Final = 1000
_RADIUS: Final = 200
_SIDE: Final = 2 * _RADIUS + 76
_MARK: Final = 7
_ROWS_MAX: Final = 50
Edges = Sequence[tuple[int, int]]
ENROLLED, READY, SILENT, OUT = "enrolled", "ready", "silent", "out"
_WORDS: Final[Mapping[str, str]] = {
    ENROLLED: "has enrolled",
    READY: "takes part",
    SILENT: "does not answer",
    OUT: "is excluded",
}


def users_part(status: Status, edges: Edges | None, no_picture: str, silent_after_s: float | None) -> list[Markup]:
    """Return the picture of a public graph that fits, or `no_picture`, which says why not; and who is silent or out."""
    parts: list[Markup] = []
    if status.n is None:
        parts.append(paragraph(f"{status.enrolled} of {status.nodes or '?'} nodes have enrolled; users get their "
                               "numbers when the roster is closed."))  # fmt: skip
    elif edges is None:
        parts.append(paragraph(no_picture))
    elif status.n > USERS_MAX or len(edges) > EDGES_MAX:
        many = f"{status.n} users and {len(edges)} links are too many for a picture."
        parts.append(paragraph(many))
    else:
        parts.append(picture(edges, states_of(status, status.n)))
    rows = _away(status)
    if rows:
        parts.append(table(("user", "state", "since"), rows[:_ROWS_MAX], numbers=(0,)))
        if len(rows) > _ROWS_MAX:
            parts.append(paragraph(f"and {len(rows) - _ROWS_MAX} more", soft=True))
    elif status.state == "running":
        parts.append(paragraph("Nobody is silent, and nobody was excluded."))
    if silent_after_s is not None:
        parts.append(paragraph(_watched(silent_after_s), soft=True))
    return parts


def _watched(patience_s: float) -> str:
    return (
        f"Bootstrap asks every user alike for a sign of life after {_seconds(patience_s / 2)} of silence, and "
        f"excludes none that was silent for less than {_seconds(2 * patience_s)}. So who is silent, and when, "
        "does not depend on where a token or report is."
    )


def _seconds(some: float) -> str:
    shown = number(some)
    return f"{shown} second" if shown == "1" else f"{shown} seconds"


def _away(status: Status) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = [(user, "excluded", "") for user in status.excluded]
    rows += [
        (user, "silent", tag("time", moment(at_s).replace("T", " ").replace("Z", ""), datetime=moment(at_s)))
        for user, at_s in sorted(status.silent_s.items())
    ]
    return rows


def states_of(status: Status, users: int) -> list[str]:
    """Return the state of each user of the roster."""
    begun = status.states.index(status.state) >= status.states.index("running")
    awaited = set(status.awaited)
    waits = not begun and not status.awaited and status.ready < status.left  # nobody was counted yet
    found = []
    for user in range(users):
        if user in status.excluded:
            found.append(OUT)
        elif user in status.silent_s:
            found.append(SILENT)
        else:
            found.append(ENROLLED if not begun and (waits or user in awaited) else READY)
    return found


def picture(edges: Edges, states: Sequence[str]) -> Markup:
    """Draw the graph with its users in their states."""
    count = len(states)
    places = [_place(user, count) for user in range(count)]
    path = "".join(f"M{places[a][0]:g} {places[a][1]:g}L{places[b][0]:g} {places[b][1]:g}" for a, b in edges)
    parts = [tag("path", class_="edges", d=path)]
    for user, state in enumerate(states):
        x, y = places[user]
        parts.append(_mark(state, x, y, tag("title", f"user {user} {_WORDS[state]}")))
        x, y = _place(user, count, _RADIUS + 22)
        parts.append(tag("text", user, class_="tick", x=x, y=y + 4, text_anchor="middle"))
    told = "; ".join(f"{states.count(state)} {state}" for state in _WORDS if state in states)
    drawn = drawing("users and their links", f"{count} users on a circle, {len(edges)} links: {told}.", *parts,
                    height=_SIDE)  # fmt: skip
    return join([figure(drawn, "Links are the lines along which users may send to each other."), _key(states)])


def _mark(state: str, x: float, y: float, name: Markup) -> Markup:
    shape = f"mark-{state}"
    if state == OUT:
        arm = _MARK
        cross = f"M{x - arm:g} {y - arm:g}l{2 * arm} {2 * arm}m0 {-2 * arm}l{-2 * arm} {2 * arm}"
        return tag("path", name, class_=shape, d=cross)
    return tag("circle", name, class_=shape, cx=x, cy=y, r=_MARK + 2 if state == SILENT else _MARK)


def _key(states: Sequence[str]) -> Markup:
    entries = []
    for state, words in _WORDS.items():
        if state in states:
            mark = tag("svg", _mark(state, 12.0, 12.0, Markup()), viewBox="0 0 24 24", class_="swatch-mark",
                       width=24, height=24, aria_hidden="true")  # fmt: skip
            entries.append(tag("li", mark, f"{words} ({states.count(state)})"))
    return tag("ul", *entries, class_="key")


def _place(user: int, count: int, radius: float = _RADIUS) -> tuple[float, float]:
    angle = 2.0 * math.pi * user / count
    return round(WIDTH / 2 + radius * math.sin(angle), 1), round(_SIDE / 2 - radius * math.cos(angle), 1)
