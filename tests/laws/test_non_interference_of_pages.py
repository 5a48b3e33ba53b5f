"""What participants read over HTTP follows from when a run ended, and from who answered bootstrap: from no route.

Small runs are enumerated as in `test_non_interference.py`. Each feeds the status that HTTP shows as bootstrap's process
does: by outputs of its machines, and by who is away for its watch. Of all runs that end at the same moment, whatever
their routes, the participants' page, document and metrics have to be the same at every moment, in the same order.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

import pytest

from p2pdp.core import messages
from p2pdp.core.happenings import happening
from p2pdp.core.ids import BOOTSTRAP, Peer
from p2pdp.core.step import Message, Output, Step
from p2pdp.runs.across_bootstrap import _on_output
from p2pdp.runs.showing import known_of
from p2pdp.runs.watching import Watch
from p2pdp.services.bootstrap import PROGRESS
from p2pdp.services.curator import Curator
from p2pdp.sim.faults import Faults, Partition
from p2pdp.sim.world import World
from p2pdp.web.page import AUDITOR, PARTICIPANTS, Known, View, pushed
from p2pdp.web.status import Status, metrics_text
from tests.support.fault_worlds import walk
from tests.support.seen import CALM, ROLES, Run, outcomes, remembered_crypto
from tests.support.shuffle_specs import shuffle

Timeline = list[tuple[float, tuple[str, ...]]]  # what was shown from when on


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    with remembered_crypto():
        yield


class Page:
    """What a participant would read in the course of one run, and the auditor."""

    def __init__(self, world: World) -> None:
        self.world = world
        first = Status("bootstrap", 0.0, "ab", world.run.spec.run.protocol, world.run.n)
        self.watch = Watch(first, lambda _told: None, self, lambda: None, Known())  # type: ignore[arg-type]
        self.watch.about(**known_of(world.run, world.run.n))
        self.watch.notify(happening("enrolling", count=world.run.n, of=world.run.n))
        self.watch.notify(happening("roster", n=world.run.n))
        self._noted: Status | None = None
        self.ended_s: float | None = None  # when the result was published
        self.shown: Timeline = []
        self.auditor: Timeline = []

    def now_s(self) -> float:
        return round(self.world.now_s, 6)

    def look(self, peer: Peer, outputs: Iterable[Output]) -> None:
        if peer not in ROLES:
            return
        for output in outputs:
            if output.type == messages.RESULT:
                self.ended_s = self.now_s()
            _on_output(output, self.watch)
            self._note()
        host = self.world.processes[BOOTSTRAP].host
        if host is not None:
            self.watch.beat(host.fault_counts, host.away)
        self._note()

    def _note(self) -> None:
        assert self.watch.known is not None
        status, subject = self.watch.status, self.watch.known.subject
        if status == self._noted:
            return
        self._noted = status
        for reader, timeline in ((PARTICIPANTS, self.shown), (AUDITOR, self.auditor)):
            page = json.dumps(pushed(View(reader, status, subject)))
            document = json.dumps(status.for_participants())
            shown = (page, document, metrics_text(status, "1", 0.0, None, full=False))
            if not timeline or timeline[-1][1] != shown:
                timeline.append((self.now_s(), shown))


@contextmanager
def looked_at() -> Iterator[dict[World, Page]]:
    pages: dict[World, Page] = {}
    honest = World._carry_out

    def carry_out(self: World, process: Any, effects: Any) -> None:
        honest(self, process, effects)
        if process.peer in ROLES and self.run is not None:
            if self not in pages:
                pages[self] = Page(self)
            pages[self].look(process.peer, effects.outputs)

    with patch.object(World, "_carry_out", carry_out):
        yield pages


def told_apart(text: str, faults: Faults = CALM) -> tuple[int, int, set[str]]:
    """Return how many pairs of routes were compared, how many of them a page tells apart, and all texts shown."""
    groups: dict[Hashable, dict[Hashable, Timeline]] = defaultdict(dict)
    texts: set[str] = set()
    differ = compared = 0
    with looked_at() as pages:
        for run in outcomes(text, faults):
            page = pages[run.world]
            timeline = page.shown
            assert page.ended_s is not None
            texts.update(shown[0] for _, shown in timeline)
            others = groups[page.ended_s]
            hidden = (tuple(map(tuple, run.paths)) if run.plan.starts else (), routes_of(run))
            compared += bool(others) and hidden not in others
            differ += bool(others) and timeline not in others.values()
            others[hidden] = timeline
    return compared, differ, texts


def routes_of(run: Run) -> Hashable:
    return () if run.plan.starts else run.routes


AWAY: Final = Faults(jitter_s=0.0, partitions=(Partition(0.0075, 70.0, frozenset({2})),))
RUNS: Final = {
    "walk": (walk(4, 4), CALM, 50),
    "two tokens": (walk(3, 2, tokens=2), CALM, 20),
    "shuffle": (shuffle(3, terms="rounds = 1\nstay = 0.25"), CALM, 10),
    "a user away": (walk(4, 4), AWAY, 20),
}


@pytest.mark.parametrize("name", RUNS)
def test_what_participants_read_tells_no_route(name: str) -> None:
    text, faults, least = RUNS[name]
    compared, differ, texts = told_apart(text, faults)
    assert differ == 0
    assert compared >= least
    assert any("Silent" in text for text in texts) == (faults is AWAY)


# The law fails where something leaks


def who_handed_in(honest: Callable[..., Step], self: Curator, sender: Peer, message: Message, *rest: Any) -> Step:
    """The page shows by the number of those who are ready who had the token last."""
    step = honest(self, sender, message, *rest)
    if message.type != messages.TOTAL:
        return step
    return step.then(Step(outputs=(Output(PROGRESS, (sender, True, ()), recorded=False),)))


def test_a_page_that_tells_who_had_a_token_is_found() -> None:
    honest = Curator.receive
    with patch.object(Curator, "receive", lambda self, *given: who_handed_in(honest, self, *given)):
        assert told_apart(walk(4, 4))[1] > 0


def test_counts_of_messages_on_a_page_are_found() -> None:
    looking: list[Page] = []
    tell, note = Status.for_participants, Page._note

    def leaky(self: Status) -> dict[str, Any]:
        host = looking[-1].world.processes[0].host
        return {**tell(self), "sent": 0 if host is None else host.messages_sent}

    def noting(self: Page) -> None:
        looking.append(self)
        note(self)

    with patch.object(Status, "for_participants", leaky), patch.object(Page, "_note", noting):
        assert told_apart(walk(4, 4))[1] > 0
