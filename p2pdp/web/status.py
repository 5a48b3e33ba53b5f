"""The state of a run, folded from the events of its life cycle, and the same as metrics for Prometheus.

`entered_s` holds when each state was entered in this process. A restarted bootstrap repeats the events in its ledger,
so it comes back to the state that it had; earlier durations are in its ledgers.

Metrics count and time the life cycle and nothing for each message: how many messages a node had, or when, would be part
of the token's route. What participants may read leaves out durations, faults and memory as well, since these depend
on it (`report/participants.py`). Who is silent, whom the run waits for and who blocks it follow from what bootstrap
asks all users alike, whatever they hold, so participants may read these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from p2pdp.core.happenings import Fact, Happening

BOOTSTRAP_STATES: Final = ("starting", "enrolling", "gathering", "running", "closing", "collecting", "done")
NODE_STATES: Final = ("starting", "enrolling", "running", "done")
_STATES: Final = {
    "listening": "enrolling",
    "reachable": "enrolling",
    "roster": "gathering",
    "begun": "running",
    "seat": "running",
    "published": "closing",
    "collecting": "collecting",
    "done": "done",
}


@dataclass(frozen=True, slots=True)
class Status:
    """`nodes` is the number that was expected, `n` the real one, once there is a roster."""

    role: str  # bootstrap or node
    began_s: float  # this process
    run_id: str | None = None
    protocol: str | None = None
    nodes: int | None = None
    started: str | None = None
    resumed: bool = False
    state: str = "starting"
    enrolled: int = 0
    ready: int = 0
    n: int | None = None
    user: int | None = None
    awaited: tuple[int, ...] = ()  # the first of those in the roster who are not ready
    silent_s: Mapping[int, float] = field(default_factory=dict)  # who does not answer: since when
    restarts: int = 0  # of processes of a run on one machine
    excluded: tuple[int, ...] = ()
    blocked_by: Fact = None
    failed: bool = False  # the ledgers did not pass verification at the end
    faults: Mapping[str, int] = field(default_factory=dict)
    entered_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def states(self) -> tuple[str, ...]:
        return BOOTSTRAP_STATES if self.role == "bootstrap" else NODE_STATES

    @property
    def is_ready(self) -> bool:
        """Return whether the process listens or is done, for readiness probes."""
        return self.state != "starting"

    def after(self, told: Happening, now_s: float) -> Status:
        facts: dict[str, Any] = dict(told.facts)
        changed = self
        state = _STATES.get(told.event)
        if state is not None and self.states.index(state) > self.states.index(self.state):
            changed = replace(self, state=state, entered_s={**self.entered_s, state: now_s})
        if told.event == "enrolling":
            return replace(changed, enrolled=facts["count"])
        if told.event == "roster":
            return replace(changed, n=facts["n"])
        if told.event == "seat":
            return replace(changed, n=facts["n"], user=facts["user"])
        if told.event == "audit_failed":
            return replace(changed, failed=True)
        if told.event == "restarted":
            return replace(changed, restarts=self.restarts + 1)
        if told.event in ("begun", "published"):  # once the result is out nobody is watched
            return replace(changed, ready=self.left, awaited=(), silent_s={}, blocked_by=None)
        return _with_absence(changed, told, now_s)

    @property
    def left(self) -> int:
        """Return how many of the roster are not out."""
        return (self.n or 0) - len(self.excluded)

    def counted(self, ready: int, faults: Mapping[str, int], awaited: tuple[int, ...] = ()) -> Status:
        """Return the status with these numbers, which are counted and not told one by one."""
        if (self.ready, self.faults, self.awaited) == (ready, faults, awaited):
            return self
        return replace(self, ready=ready, faults=dict(faults), awaited=awaited)

    def seconds_in(self, now_s: float) -> dict[str, float]:
        """Return how long each state that was entered lasted, or has lasted by now."""
        entered = [("starting", self.began_s), *self.entered_s.items()]
        ends = [at_s for _, at_s in entered[1:]] + [now_s]
        return {state: max(0.0, end_s - at_s) for (state, at_s), end_s in zip(entered, ends, strict=True)}

    def for_participants(self) -> dict[str, Any]:
        """Return the state of the run without durations and faults (`report/participants.py`)."""
        return {
            "run_id": self.run_id,
            "protocol": self.protocol,
            "state": self.state,
            "nodes": self.nodes,
            "enrolled": self.enrolled,
            "n": self.n,
            "ready": self.ready,
            "awaited": list(self.awaited),
            "silent": [{"user": user, "since": moment(at_s)} for user, at_s in sorted(self.silent_s.items())],
            "excluded": list(self.excluded),
            "blocked_by": self.blocked_by,
            "started": self.started,
            "resumed": self.resumed,
            "verification_failed": self.failed,
        }

    def to_json(self, now_s: float) -> dict[str, Any]:
        more = {"restarts": self.restarts, "seconds": self.seconds_in(now_s), "faults": dict(self.faults)}
        return self.for_participants() | more


def _with_absence(status: Status, told: Happening, now_s: float) -> Status:
    user: Any = told.facts.get("user")
    others_s = {one: since_s for one, since_s in status.silent_s.items() if one != user}
    if told.event == "excluded" and user not in status.excluded:
        return replace(status, excluded=(*status.excluded, user), silent_s=others_s)
    if told.event == "silent":
        return replace(status, silent_s={**status.silent_s, user: now_s})
    if told.event == "back":
        return replace(status, silent_s=others_s, blocked_by=None if status.blocked_by == user else status.blocked_by)
    return replace(status, blocked_by=user) if told.event == "blocked" else status


def moment(at_s: float) -> str:
    """Return a time to the second, as ISO 8601 in UTC."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPED: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def metrics_text(status: Status, version: str, now_s: float, resident_bytes: int | None, *, full: bool) -> str:
    """Format metrics; `full`, for the auditor only, adds durations, faults and memory: they tell what was received."""
    lines = [*_lines(status, version, now_s)]
    if full:
        lines += _full_lines(status, now_s, resident_bytes)
    return "".join(f"{line}\n" for line in lines)


def _lines(status: Status, version: str, now_s: float) -> Iterator[str]:
    who = {"version": version, "role": status.role, "protocol": status.protocol or "", "run_id": status.run_id or ""}
    yield from _gauge("p2pdp_info", "What this process is.", {_labels(who): 1})
    states = {_labels({"state": state}): int(state == status.state) for state in status.states}
    yield from _gauge("p2pdp_state", "1 for the state that the run is in.", states)
    yield from _gauge("p2pdp_uptime_seconds", "Time since this process began.", {"": max(0.0, now_s - status.began_s)})
    if status.role == "bootstrap":
        yield from _gauge("p2pdp_resumed", "1 if this process went on with a run begun before.", {"": status.resumed})
        yield from _gauge("p2pdp_nodes_expected", "Nodes that may take part.", {"": status.nodes or 0})
        yield from _gauge("p2pdp_nodes_enrolled", "Nodes that have enrolled.", {"": status.enrolled})
        yield from _gauge("p2pdp_nodes_in_roster", "Nodes in the roster, 0 before there is one.", {"": status.n or 0})
        yield from _gauge("p2pdp_nodes_ready", "Nodes that said that they are ready.", {"": status.ready})
        yield from _gauge("p2pdp_nodes_silent", "Nodes that do not answer bootstrap.", {"": len(status.silent_s)})
        there = status.left - len(status.silent_s)
        yield from _gauge("p2pdp_nodes_connected", "Nodes in the roster, neither silent nor out.", {"": there})
        yield from _gauge("p2pdp_nodes_excluded", "Nodes that were put out.", {"": len(status.excluded)})
    yield from _gauge("process_start_time_seconds", "When this process began, since 1970.", {"": status.began_s})


def _full_lines(status: Status, now_s: float, resident_bytes: int | None) -> Iterator[str]:
    seconds = {_labels({"state": state}): value for state, value in status.seconds_in(now_s).items()}
    yield from _gauge("p2pdp_state_seconds", "Time in each state, in this process.", seconds)
    faults = {_labels({"kind": kind}): count for kind, count in sorted(status.faults.items())}
    yield from _family("p2pdp_faults_total", "counter", "Faults recorded here, by kind.", faults)
    if resident_bytes is not None:
        yield from _gauge("process_resident_memory_bytes", "Resident memory of this process.", {"": resident_bytes})


def _gauge(name: str, text: str, values: Mapping[str, float]) -> Iterator[str]:
    return _family(name, "gauge", text, values)


def _family(name: str, kind: str, text: str, values: Mapping[str, float]) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values.items():
        yield f"{name}{labels} {float(value):.17g}"


def _labels(named: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{value.translate(_ESCAPED)}"' for name, value in named.items()) + "}"
