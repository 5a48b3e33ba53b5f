"""The transcript of a run as planned: every message arrives, in the order sent, and nobody is late or gone.

The machines of all users run over symbols instead of values. From this a plan finds the standard error and the leaks of
a linear protocol before a run, and an attack finds what the messages of such a run are made of. Protocols that choose
at random whom they send to are refused, since their messages do not follow from the plan.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NoReturn

from p2pdp.core.draws import Mechanism, Shape
from p2pdp.core.errors import Refused
from p2pdp.core.events import Event, Machine, Received, Started, tell
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.messages import BEGIN, COMMON, FINAL, FINISHED, TOTAL
from p2pdp.core.step import Message
from p2pdp.core.values import LinearForm, Source
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.transcript import Transcript
from p2pdp.tasks.inputs import SymbolicInputs

_EXCHANGES_MAX: Final = 20_000
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

    def noise(self, mechanism: Mechanism, shape: Shape) -> LinearForm:
        self.drawn.append(mechanism)
        return LinearForm.of(Source("draw", self._user, len(self.drawn) - 1))

    def choice(self, options: int) -> NoReturn:
        raise Refused(_AT_RANDOM)

    def meet(self, number: int, coin: float) -> NoReturn:
        raise Refused(_AT_RANDOM)


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

    def run_all(self) -> None:
        while self._queue:
            self._tell(*self._queue.popleft())

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
        handed_in = [message for sender in range(self._run.n) for message in self.links.get((sender, CURATOR), ())]
        handed_in = [message for message in handed_in if message.type in (TOTAL, FINISHED)]
        one_by_one = self._run.completes_per_user
        if len(handed_in) != (self._run.n if one_by_one else len(self._run.plan.starts)):
            raise Refused("the run does not end by messages alone, so they do not follow from the plan")
        if not one_by_one:
            handed_in.sort(key=COMMON.item_of)
        told: Sequence[LinearForm] = [message.value for message in handed_in if message.value is not None]
        found = Transcript(
            received={user: state.received for user, state in enumerate(self._users)},
            draws={user: state.draws.drawn for user, state in enumerate(self._users)},
            values=dict.fromkeys(range(self._run.n), 1),
            totals=list(told),
            published=tuple(told) if one_by_one else (self._run.protocol.publish(self._run.plan, told),),
            finals={user: state.final for user, state in enumerate(self._users) if state.final is not None},
        )
        sent = [message.value for messages in self.links.values() for message in messages]
        found.sent = [value for value in sent if isinstance(value, LinearForm)]
        found.find_noise = partial(found.noise_among, {}, self._run.plan.unit)
        return found
