"""The page of a run, or of a node, from the first second on: what is computed by whom, how far it is, what it costs.

It has three readers, and `View.reader` says who of them it is for:

* participants of a run: terms, state, users who are silent or out, costs in advance, and the participants' result;
* the auditor: that, and durations, restarts and faults by kind, which depend on routes;
* the owner of a node: terms, state, the owner's own limits, budget and data (as numbers of rows and columns), costs
  before and after, and the node's result.

How far a walk or gossip is nobody is shown. Bootstrap does not know it, and at a node it would be its part of a route.

A page is made of parts with fixed ids. Parts that changed are pushed to whoever looks on (`web/live.py`), so what is
pushed is never more than what the page holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Final

from p2pdp.core.words import PROTECTIONS, observer_name
from p2pdp.report.page.curves import OwnCurve, own_curve, public_rows
from p2pdp.report.page.markup import Markup, Section, card, document, join, note, paragraph, table, tag
from p2pdp.report.page.words import FAULTS, number, users_named
from p2pdp.web.live import LINK, LIVE_POLICY, head
from p2pdp.web.picture import users_part
from p2pdp.web.status import Status

PARTICIPANTS: Final = "participants"
AUDITOR: Final = "the auditor"
OWNER: Final = "the node's owner"

Rows = Sequence[tuple[str, object]]


@dataclass(frozen=True)
class Subject:
    """The content of a page beside the state that happenings tell of.

    `costs` are rows as `bound_document` makes them, None while they are computed or cannot be (`costs_note` says
    which). `own` are tables for a node's owner; `spent` and `outcome` are there when its part is over.
    """

    title: str = ""
    terms: Rows = ()
    words: str = ""
    edges: Sequence[tuple[int, int]] | None = None
    no_picture: str = "The graph is shown when the roster is closed."
    silent_after_s: float | None = None  # from when on one that does not answer may be excluded
    costs: Sequence[Mapping[str, Any]] | None = None
    costs_if_out: Sequence[Mapping[str, Any]] = ()  # where somebody was put out
    costs_note: str = "These bounds are being computed."
    own: Sequence[tuple[str, Rows]] = ()
    spent: Sequence[Mapping[str, Any]] | None = None
    outcome: Rows | None = None
    curve: OwnCurve | None = None  # of a node's own model on public rows


class Known:
    """The subject as far as it is known by now; what becomes known may come from any thread."""

    def __init__(self) -> None:
        self.subject = Subject()
        self._lock = Lock()

    def take(self, **known: Any) -> None:
        with self._lock:
            self.subject = replace(self.subject, **known)


@dataclass(frozen=True)
class View:
    """All that one reader's page follows from. `result` is the participants' document, once it is there."""

    reader: str
    status: Status
    subject: Subject
    result: Mapping[str, Any] | None = None
    events: str = "/events"


def live_page(view: View) -> str:
    """Return the whole page."""
    parts = parts_of(view)
    over = view.status.state == "done"
    lost = tag("p", tag("strong", "The server does not answer."), " What stands here is what it told last.",
               id=LINK, class_="note", role="alert", hidden="")  # fmt: skip
    opening = [
        tag("div", parts["now"], id="now", data_part="", role="status", aria_live="polite"),
        lost,
        tag("p", *_opening(view), class_="soft"),
    ]
    sections = [
        Section(name, short, title, [tag("div", parts[name], id=name_of(name), data_part="")])
        for name, short, title in _sections(view)
    ]
    closing = (
        f"This page is for {view.reader}. It changes by itself; without scripts it is loaded again every few seconds. "
        "Users are counted from 0. Times are UTC."
    )
    return document(
        _title(view), _heading(view), opening, sections, closing, policy=LIVE_POLICY, head=head(view.events, over=over)
    )


def pushed(view: View) -> dict[str, str]:
    """Return the parts as they are pushed: by the ids of their places, and the texts of title and heading."""
    parts = parts_of(view)
    return {
        "title": _title(view),
        "heading": _heading(view),
        **{"now" if name == "now" else name_of(name): html for name, html in parts.items()},
    }


def name_of(part: str) -> str:
    return f"{part}-part"


def parts_of(view: View) -> dict[str, Markup]:
    made = {
        "state": _state,
        "users": lambda view: users_part(
            view.status, view.subject.edges, view.subject.no_picture, view.subject.silent_after_s
        ),
        "own": _own,
        "result": _result,
        "costs": _costs,
        "terms": _terms,
        "auditor": _auditors,
    }
    parts = {"now": _now(view)}
    for name, _, _ in _sections(view):
        parts[name] = join(made[name](view), "\n")
    return parts


def _sections(view: View) -> list[tuple[str, str, str]]:
    """Return the parts in their order, which does not change while a page is open."""
    node = view.reader == OWNER
    found = [("state", "state", "How far it is"), ("result", "result", "What came out")]
    if not node:
        found.append(("users", "users", "Who takes part"))
    costs = "What it costs you" if node else "What each kind of observer can learn"
    found += [("costs", "cost", costs), ("terms", "terms", "What is computed, by whom")]
    if node:
        found.insert(3, ("own", "your limits", "Your limits, budget and data"))
    if view.reader == AUDITOR:
        found.append(("auditor", "for the auditor", "For the auditor: durations, restarts, faults"))
    return found


def _title(view: View) -> str:
    status = view.status
    counted = f" {status.enrolled}/{status.nodes}" if status.state == "enrolling" and status.nodes else ""
    return f"{status.state}{counted}: {_heading(view)}"


def _heading(view: View) -> str:
    return view.subject.title or ("A node" if view.reader == OWNER else "A run")


def _opening(view: View) -> list[object]:
    status = view.status
    found: list[object] = []
    if status.run_id:
        found += ["run ", tag("code", status.run_id, class_="any")]
    if status.started:
        found.append(f", begun {status.started.partition('.')[0].replace('T', ' ')}")
    if status.resumed:
        found.append("; bootstrap was started again and went on with it")
    return found


# The state

_PHASES: Final = {
    "starting": "start",
    "enrolling": "enrolment",
    "gathering": "getting ready",
    "running": "running",
    "closing": "closing",
    "collecting": "audit",
    "done": "over",
}


def _now(view: View) -> Markup:
    said, more = _said_of_node(view.status) if view.reader == OWNER else _said_of_run(view.status)
    lines: list[object] = [tag("strong", said), more]
    parts = [tag("p", *lines, class_="now")]
    status = view.status
    if status.blocked_by is not None:
        who = f"User {status.blocked_by}" if isinstance(status.blocked_by, int) else str(status.blocked_by)
        parts.append(note("Blocked.", f"{who} does not answer, and the protocol cannot do without. It waits."))
    elif status.silent_s and len(status.silent_s) == status.left:
        parts.append(note("Nobody answers.", "It may be bootstrap itself that is cut off."))
    elif status.silent_s:
        parts.append(note("Silent:", f"{users_named(sorted(status.silent_s))}."))
    return join(parts)


def _said_of_run(status: Status) -> tuple[str, str]:
    if status.state == "starting":
        return "Starting.", ""
    if status.state == "enrolling":
        return f"{status.enrolled} of {status.nodes} nodes have enrolled.", ""
    if status.state == "gathering":
        awaited = f"It waits for {users_named(list(status.awaited))}." if status.awaited else ""
        return f"The roster is closed; {status.ready} of {status.left} users are ready.", awaited
    if status.state == "running":
        return f"The protocol runs among {status.left} users.", ""
    if status.state == "closing":
        return "The result is published.", "Nodes close their ledgers."
    if status.state == "collecting":
        return "The ledgers are closed.", "The run is audited."
    return "The run is over.", _FAILED if status.failed else ""


def _said_of_node(status: Status) -> tuple[str, str]:
    who = "" if status.user is None else f"This node is user {status.user} of {status.n}."
    if status.state == "running":
        return "The node takes part.", who
    if status.state == "done":
        return "The node's part is over.", who
    return ("Starting.", "") if status.state == "starting" else ("The node enrols.", who)


def _state(view: View) -> list[Markup]:
    status = view.status
    at = status.states.index(status.state)
    phases = [
        tag("li", _PHASES[state], class_="past" if place < at else None, aria_current="step" if place == at else None)
        for place, state in enumerate(status.states)
    ]
    parts = [tag("ol", *phases, class_="phases", aria_label="phases")]
    if view.reader == OWNER:
        return [*parts, paragraph(_NO_VISITS, soft=True)]
    cards = [card("enrolled", f"{status.enrolled} of {status.nodes or '?'}", "nodes that came with their tokens")]
    if status.n is not None:
        cards += [
            card("ready", f"{status.ready} of {status.left}", "users who said that they can begin"),
            card("silent", str(len(status.silent_s)), "do not answer bootstrap"),
            card("excluded", str(len(status.excluded)), "were put out"),
        ]
    return [*parts, tag("div", *cards, class_="cards"), paragraph(_NO_ROUNDS, soft=True)]


_NO_ROUNDS: Final = (
    "How far the protocol is between its beginning and its end is not shown: bootstrap is not told, because a count of "
    "hops or rounds, collected over time, would tell the route on whose being hidden bounds rest."
)
_NO_VISITS: Final = (
    "What this node sends and receives meanwhile is not counted here: how often a token came, and when, is this node's "
    "part of its route. After the end p2pdp views shows it from the node's own ledger."
)


# What came out

_FAILED: Final = "The ledgers contradict each other or the protocol, so the result may be false."


def _result(view: View) -> list[Markup]:
    if view.reader == OWNER:
        curve = [] if view.subject.curve is None else own_curve(view.subject.curve)
        if view.subject.outcome is None:
            return curve or [paragraph("Nothing yet.")]
        return [table(("", ""), view.subject.outcome), *curve]
    if view.result is None:
        over = view.status.state == "done"
        return [paragraph("This run left no result." if over else "Nothing is published yet.")]
    result = view.result
    rows: list[tuple[str, object]] = []
    if result.get("estimate") is not None:
        rows = [("estimate", number(result["estimate"])), ("standard error", number(_finite(result["standard_error"])))]
    rows += public_rows(result.get("public_scores") or {})
    parts = [table(("", ""), rows)] if rows else [paragraph("Nothing is published: each user has its own result.")]
    if view.status.failed or result.get("verification_failed"):
        parts.insert(0, note("Verification failed.", _FAILED))
    links = [tag("a", "The participants' report", href="/report.html")]
    if view.reader == AUDITOR:
        links.append(tag("a", "the whole report", href="/auditor/report.html"))
    return [*parts, tag("p", join(links, ", "), ".")]


def _finite(value: Any) -> Any:
    """Return a number of a document, where infinity is a string."""
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return math.inf if value == "inf" else value


# What it costs


def _costs(view: View) -> list[Markup]:
    subject = view.subject
    node = view.reader == OWNER
    if view.result is not None:
        return _said_in(view.result)
    if subject.costs is None:
        return [paragraph(subject.costs_note)]
    out = bool(view.status.excluded) and not node
    about = _about(subject.costs, node=node)
    first = f"Before the run, over all routes that it may take: bounds on what each observer can learn {about}."
    parts = [paragraph(first), _bounds(subject.costs_if_out if out else subject.costs)]
    if out:
        parts.append(paragraph("Somebody was put out: bounds that assume nobody is do not count here."))
    if subject.costs_note:
        parts.append(paragraph(subject.costs_note, soft=True))
    if subject.spent is not None:
        parts += [
            tag("h3", "After the run"),
            paragraph("An observer of all messages by this node's own ledger, others at most:"),
            _bounds(subject.spent),
        ]
    return [*parts, paragraph(_READ, soft=True)]


def _about(costs: Sequence[Mapping[str, Any]], *, node: bool) -> str:
    """Say what bounds are about, by the unit that their rows name where it is not a user."""
    if any("unit" in row for row in costs):
        return "about any one row of this node" if node else "about any one record of a user"
    return "about this node's data" if node else "about any one user's data"


def _said_in(result: Mapping[str, Any]) -> list[Markup]:
    """Return the two verdicts of the participants' result, which knows how the run went."""
    rows = [result[name] for name in ("headline", "worst") if result.get(name) is not None]
    unique = [row for place, row in enumerate(rows) if row not in rows[:place]]
    more = tag("a", "The report", href="/report.html")
    parts = [paragraph("The worst bound of all observers who need not be trusted, and the worst of all:")]
    return [*parts, _bounds(unique), tag("p", more, " has each observer, the assumptions, and what is not proven.")]


_READ: Final = (
    "ε (epsilon): whatever an observer sees is at most e^ε times as likely under one value of what is protected, a "
    "user's data or one record, as under another, except with probability δ. Below 1: strong. From 1 to 5: moderate. "
    "Above 5: weak. Infinite: none."
)


def _bounds(rows: Sequence[Mapping[str, Any]]) -> Markup:
    shown = []
    for row in rows:
        reading = str(row["reading"])
        badge = tag("span", PROTECTIONS[reading], class_=f"badge {reading}")
        shown.append((
            observer_name(row["observer"]), badge, number(_finite(row["epsilon"])), number(row["delta"]),
            row["method"] or "no bound is known",
        ))  # fmt: skip
    return table(("observer", "protection", "ε at most", "δ", "method"), shown, numbers=(2, 3))


# Terms, limits, and what only the auditor reads


def _terms(view: View) -> list[Markup]:
    parts = [paragraph(view.subject.words)] if view.subject.words else []
    if not view.subject.terms:
        return [*parts, paragraph("The terms are shown when bootstrap has offered them.")]
    return [*parts, table(("", ""), view.subject.terms)]


def _own(view: View) -> list[Markup]:
    parts: list[Markup] = []
    for title, rows in view.subject.own:
        parts += [tag("h3", title), table(("", ""), rows) if rows else paragraph("None is set.")]
    return parts or [paragraph("Nothing was read yet.")]


def _auditors(view: View) -> list[Markup]:
    status = view.status
    spent = [(_PHASES[state], f"{seconds:.1f} s") for state, seconds in status.seconds_in(_entered(status)).items()]
    faults = [(kind, FAULTS.get(kind, ""), count) for kind, count in sorted(status.faults.items())]
    return [
        paragraph("These depend on the route that was taken. Keep them from participants."),
        tag("h3", "How long each phase took"),
        table(("phase", "time"), spent[:-1] if len(spent) > 1 else []),
        tag("h3", "Restarts"),
        paragraph(
            f"{status.restarts} processes were started again; bootstrap {'was' if status.resumed else 'was not'}."
        ),
        tag("h3", "Faults by kind"),
        table(("kind", "what it is", "count"), faults, numbers=(2,)) if faults else paragraph("None."),
    ]


def _entered(status: Status) -> float:
    """Return when the last phase began: a page does not tick."""
    return max((status.began_s, *status.entered_s.values()))
