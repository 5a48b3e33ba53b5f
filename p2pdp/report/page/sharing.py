"""The picture of who shares noise with whom, and of what curator and colluders know of it: users stand on a circle."""

from __future__ import annotations

import math
from typing import Final

from p2pdp.report.page.axes import WIDTH, drawing
from p2pdp.report.page.facts import Sharing
from p2pdp.report.page.markup import Markup, figure, join, more, paragraph, table, tag
from p2pdp.report.page.words import users

USERS_MAX: Final = 100
_LABELLED_MAX: Final = 40
_GROUPS_MAX: Final = 50
_MIDDLE: Final = WIDTH / 2
_RADIUS: Final = 236
_HEIGHT: Final = 2 * _RADIUS + 64
_SERIES: Final = (0, 2, 3, 4, 5)  # of groups, the largest first; 1 is that of colluders


def sharing(found: Sharing) -> list[Markup]:
    """Return the picture where users fit, and the groups of users who hide each other."""
    least = min((len(group) for group in found.groups), default=0)
    who = "curator and colluders" if found.colluders else "curator and bootstrap"
    said = (
        f"Neighbours have draws of noise in common, which one of them adds and the other subtracts. Of "
        f"{len(found.edges)} such pairs {who} know the draws of {len(found.known)}. An honest user hides among those "
        f"whom it reaches over the others: the smallest such group has {least}."
    )
    parts = [paragraph(said)]
    if found.nodes <= USERS_MAX:
        caption = (
            "A line is a pair, dashed where its draws are known to them. Users of one group have one colour; colluders "
            "are large, and users whose values are not in the result are hollow."
        )
        parts.append(figure(_picture(found), caption))
    groups = [(place + 1, len(group), users(group)) for place, group in enumerate(found.groups[:_GROUPS_MAX])]
    return [*parts, more("Who hides among whom", table(("group", "users", "they are"), groups, numbers=(0, 1)))]


def _picture(found: Sharing) -> Markup:
    places = [_place(user, found.nodes) for user in range(found.nodes)]
    lines = []
    for edge in sorted(found.edges, key=lambda edge: (edge not in found.known, edge)):
        (x1, y1), (x2, y2) = (places[user] for user in edge)
        kind = "here" if edge in found.known else "axis"
        lines.append(tag("line", class_=kind, x1=x1, y1=y1, x2=x2, y2=y2))
    colour = {user: _SERIES[min(at, len(_SERIES) - 1)] for at, group in enumerate(found.groups) for user in group}
    marks = []
    for user, (x, y) in enumerate(places):
        name = tag("title", f"user {user}{_role(found, user)}")
        if user in found.colluders:
            marks.append(tag("circle", name, class_="dot s1", cx=x, cy=y, r=9))
        elif user in found.away:
            marks.append(tag("circle", name, class_="frame", cx=x, cy=y, r=6))
        else:
            marks.append(tag("circle", name, class_=f"dot s{colour.get(user, 0)}", cx=x, cy=y, r=6))
        if found.nodes <= _LABELLED_MAX:
            at_x, at_y = _place(user, found.nodes, _RADIUS + 18)
            marks.append(tag("text", user, class_="tick", x=at_x, y=at_y + 4, text_anchor="middle"))
    described = "The list below says who hides among whom."
    return drawing("who shares noise with whom", described, join(lines), join(marks), height=_HEIGHT)


def _role(found: Sharing, user: int) -> str:
    if user in found.colluders:
        return ", who colludes"
    return ", whose value is not in the result" if user in found.away else ""


def _place(user: int, count: int, radius: float = _RADIUS) -> tuple[float, float]:
    angle = 2.0 * math.pi * user / count
    return round(_MIDDLE + radius * math.sin(angle), 1), round(_HEIGHT / 2 - radius * math.cos(angle), 1)
