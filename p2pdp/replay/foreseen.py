"""The transcript of a run as planned: every message arrives, in the order sent, and nobody is late or gone.

The machines of all users run over symbols instead of values. From this a plan finds the standard error and the leaks of
a linear protocol before a run, and an attack finds what the messages of such a run are made of. Protocols that choose
at random whom they send to are refused, since their messages do not follow from the plan.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NoReturn

from p2pdp.core.draws import Mechanism, Shape
from p2pdp.core.errors import Refused
from p2pdp.core.events import Event, Machine, Received, Started, tell
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.messages import BEGIN, COMMON, FINAL
from p2pdp.core.step import Message
from p2pdp.core.values import LinearForm, Share, Source, pair_source
from p2pdp.protocols.decision import SURVIVORS, Collector
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.published import tells
from p2pdp.replay.transcript import Transcript, shares_by_receiver
from p2pdp.tasks.inputs import SymbolicInputs

_EXCHANGES_MAX: Final = 20_000
_UNFINISHED: Final = "the run does not end by messages alone, so they do not follow from the plan"
_AT_RANDOM: Final = "messages go where chance decides, so they do not follow from the plan"


@dataclass(frozen=True)
class Foreseen:
    """A transcript, and the messages from each user to each other peer, in order, with forms as values."""

    transcript: Transcript
    links: dict[tuple[Peer, Peer], list[Message]]


def foresee(run: RunPlan) -> Foreseen:
    """Return the transcript, in which every user has one value; raise `Refused` where it does not follow."""
    if run.graph is None:
        raise Refused("the graph is not known, so messages do not follow from the plan")
    if run.exchanges > _EXCHANGES_MAX:
        raise Refused(f"to look ahead at {run.exchanges:,} messages takes too long")
    ahead = _Ahead(run)
    ahead.run_all()
    return Foreseen(ahead.transcript(), ahead.links)


class Symbols:
    """One user's draws, as symbols."""

    def __init__(self, user: Peer) -> None:
        self._user = user
        self.drawn: list[Mechanism] = []
        self.pairs: dict[Source, Mechanism] = {}

    def noise(self, mechanism: Mechanism, shape: Shape) -> LinearForm:
        self.drawn.append(mechanism)
        return LinearForm.of(Source("draw", self._user, len(self.drawn) - 1))

    def choice(self, options: int) -> NoReturn:
        raise Refused(_AT_RANDOM)

    def meet(self, number: int, coin: float) -> NoReturn:
        raise Refused(_AT_RANDOM)

    def pair(self, peer: Peer, number: int, mechanism: Mechanism, shape: Shape) -> LinearForm:
        source = pair_source(self._user, peer, number)
        self.pairs[source] = mechanism
        return LinearForm.of(source)

    def pair_key(self, peer: Peer, number: int) -> Share:
        return Share(pair_source(self._user, peer, number))


@dataclass
class _User:
    machine: Machine
    draws: Symbols
    final: LinearForm | None = None
    received: list[LinearForm] = field(default_factory=list)


class _Ahead:
    def __init__(self, run: RunPlan) -> None:
        self._run = run
        self._users = [
            _User(run.machine(user, run.neighbours(user), SymbolicInputs(user, 1)), Symbols(user))
            for user in range(run.n)
        ]
        self._queue: deque[tuple[Peer, Event]] = deque((user, Started()) for user in range(run.n))
        for start in run.plan.starts:
            self._queue.append((start.user, Received(BOOTSTRAP, Message(BEGIN, (start.item, 0)))))
        for send in run.opening(Symbols(BOOTSTRAP)):
            self._queue.append((send.to, Received(BOOTSTRAP, send.message)))
        self.links: dict[tuple[Peer, Peer], list[Message]] = {}
        self._collected: dict[Peer, int] = {}  # how many messages of each user the curator took
        self._collector = run.collector()

    def run_all(self) -> None:
        while self._queue:
            self._tell(*self._queue.popleft())
            if not self._queue and self._collector is not None:
                self._collect(self._collector)

    def _collect(self, collector: Collector) -> None:
        """Do what curator and bootstrap do in a protocol with a decision, when users wait for that."""
        for sender in range(self._run.n):
            told = self.links.get((sender, CURATOR), [])
            for message in told[self._collected.get(sender, 0) :]:
                if collector.take(sender, message) is not None:
                    raise Refused(_AT_RANDOM)
            self._collected[sender] = len(told)
        absent = collector.collected
        if absent is not None and collector.decided(absent) is None:
            decision = Message(SURVIVORS, (absent, b""))
            self._queue.extend((user, Received(BOOTSTRAP, decision)) for user in range(self._run.n))

    def _tell(self, user: Peer, event: Event) -> None:
        state = self._users[user]
        if isinstance(event, Received) and isinstance(event.message.value, LinearForm):
            state.received.append(event.message.value)
        own = deque([event])
        while own:
            for to, message, _ in tell(state.machine, own.popleft(), 0.0, state.draws).sends:
                if to == user:
                    state.final = message.value if message.type == FINAL else state.final
                    own.append(Received(user, message))
                    continue
                self.links.setdefault((user, to), []).append(message)
                if is_user(to):
                    self._queue.append((to, Received(user, message)))

    def transcript(self) -> Transcript:
        totals, published = self._results()
        found = Transcript(
            received={user: state.received for user, state in enumerate(self._users)},
            draws={user: state.draws.drawn for user, state in enumerate(self._users)},
            values=dict.fromkeys(range(self._run.n), 1),
            totals=totals,
            published=published,
            finals={user: state.final for user, state in enumerate(self._users) if state.final is not None},
        )
        sent = [message.value for messages in self.links.values() for message in messages]
        found.sent = [value for value in sent if isinstance(value, LinearForm)]
        found.pairs = {source: drawn for state in self._users for source, drawn in state.draws.pairs.items()}
        found.shares = shares_by_receiver(self.links)
        found.find_noise = partial(found.noise_among, {}, self._run.plan.unit)
        return found

    def _results(self) -> tuple[list[LinearForm], tuple[LinearForm, ...]]:
        """Return what of values the curator was told, and what it published."""
        run = self._run
        if self._collector is not None:
            if not self._collector.complete:
                raise Refused(_UNFINISHED)
            told = [one.value for (_, to), sent in sorted(self.links.items()) if to == CURATOR for one in sent]
            published = run.protocol.publish(run.plan, [self._collector.result()])
            return [value for value in told if tells(value)], (published,)
        handed_in = [message for sender in range(run.n) for message in self.links.get((sender, CURATOR), ())]
        handed_in = [message for message in handed_in if message.type == run.handed_in]
        one_by_one = run.completes_per_user
        if len(handed_in) != (run.n if one_by_one else len(run.plan.starts)):
            raise Refused(_UNFINISHED)
        if not one_by_one:
            handed_in.sort(key=COMMON.item_of)
        told = [message.value for message in handed_in if message.value is not None]
        return told, tuple(told) if one_by_one else (run.protocol.publish(run.plan, told),)
