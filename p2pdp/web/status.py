"""How far a run is, as a fold over what happens in its life: what is not told in a log line is not here either.

`entered_s` is when each state was entered in this process. A bootstrap that is started again tells again what its
ledger tells, so it comes back to the state that it had; how long that took before is in its ledgers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
    excluded: tuple[int, ...] = ()
    blocked_by: Fact = None
    faults: Mapping[str, int] = field(default_factory=dict)
    entered_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def states(self) -> tuple[str, ...]:
        return BOOTSTRAP_STATES if self.role == "bootstrap" else NODE_STATES

    @property
    def is_ready(self) -> bool:
        """Whether others can get what they come for: whoever it is listens, or is done."""
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
        if told.event == "excluded" and facts["user"] not in self.excluded:
            return replace(changed, excluded=(*self.excluded, facts["user"]))
        if told.event == "blocked":
            return replace(changed, blocked_by=facts["user"])
        if told.event in ("begun", "published"):
            return replace(changed, ready=(self.n or 0) - len(self.excluded), blocked_by=None)
        return changed

    def counted(self, ready: int, faults: Mapping[str, int]) -> Status:
        """With what is counted and not told one by one."""
        if self.ready == ready and self.faults == faults:
            return self
        return replace(self, ready=ready, faults=dict(faults))

    def seconds_in(self, now_s: float) -> dict[str, float]:
        """How long each state that was entered lasted, or has lasted by now."""
        entered = [("starting", self.began_s), *self.entered_s.items()]
        ends = [at_s for _, at_s in entered[1:]] + [now_s]
        return {state: max(0.0, end_s - at_s) for (state, at_s), end_s in zip(entered, ends, strict=True)}

    def for_participants(self) -> dict[str, Any]:
        """How far the run is, without durations and faults (`report/participants.py`)."""
        return {
            "run_id": self.run_id,
            "protocol": self.protocol,
            "state": self.state,
            "nodes": self.nodes,
            "enrolled": self.enrolled,
            "n": self.n,
            "ready": self.ready,
            "excluded": list(self.excluded),
            "started": self.started,
            "resumed": self.resumed,
        }

    def to_json(self, now_s: float) -> dict[str, Any]:
        more = {"blocked_by": self.blocked_by, "seconds": self.seconds_in(now_s), "faults": dict(self.faults)}
        return self.for_participants() | more
