"""A run that happened, again and again on the same route with new noise, many at once, for tests of claims.

The machines of the run get the events and choices that its ledgers recorded, with values that are arrays: one
entry a replay. They only add and scale what they carry, so one pass gives that many independent runs. Forms and
accountants play no part, so a mistake in those cannot hide itself here.

The caller owes the views of a run in which nobody was gone round, of scalars or of categories.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.core.draws import Mechanism, Shape
from p2pdp.core.errors import Refused
from p2pdp.core.events import Received, tell
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import BEGIN, TOKEN, Item
from p2pdp.core.step import Message
from p2pdp.ledger.records import CHOSEN, OWN, RECEIVED, Contents, public_message
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.tasks.inputs import CategoryInputs, NumberInputs
from tests.support.pairs import NoPairs


@dataclass
class Replayed:
    """What everybody saw, in order: one array of all replays a message."""

    received: dict[Peer, list[Floats]] = field(default_factory=dict)
    drawn: dict[Peer, list[Floats]] = field(default_factory=dict)
    totals: dict[int, Floats] = field(default_factory=dict)
    published: Any = None

    def view(self, observer: Peer) -> Floats:
        """What a user saw and what it drew itself, a row a replay."""
        seen = [*self.received.get(observer, []), *self.drawn.get(observer, []), self.published]
        return np.concatenate([column.reshape(len(column), -1) for column in seen], axis=1)


class _Draws(NoPairs):
    """New noise, and the choices that were made."""

    def __init__(self, noise: SeededSampler, choices: Iterator[int], count: int, drawn: list[Floats]) -> None:
        self._noise = noise
        self._choices = choices
        self._count = count
        self._drawn = drawn

    def noise(self, mechanism: Mechanism, shape: Shape) -> Any:
        values = np.array(self._noise.batch(mechanism, shape, self._count), dtype=np.float64)
        self._drawn.append(values)
        return values

    def choice(self, options: int) -> int:
        return next(self._choices)

    def meet(self, number: int, coin: float) -> NoReturn:
        raise Refused("replays are made of walks, on which nobody tosses coins")


class _Reports(CategoryInputs):
    """One report of all replays at once."""

    def report(self, visit: int, response: Any) -> Any:
        told = np.where(np.asarray(response) < 0, self._values[visit % len(self._values)], response)
        return (told[..., None] == np.arange(self._categories)).astype(np.float64)


class _User:
    """A machine, and what it was told in which order."""

    def __init__(self, run: RunPlan, user: Peer, contents: Contents, values: Sequence[float], draws: _Draws) -> None:
        neighbours = contents.records[0].body.neighbours or ()
        inputs = (
            _Reports([int(value) for value in values], run.plan.shape[0]) if run.plan.shape else NumberInputs(values, 1)
        )
        self.machine = run.protocol.machine(run.plan, user, neighbours, inputs)
        self.draws = draws
        self.order = deque(
            _key(public_message(record))
            for record in contents.records
            if record.kind in (RECEIVED, OWN) and public_message(record).type in (BEGIN, TOKEN)
        )
        self.waiting: dict[tuple[object, ...], tuple[Peer, Message]] = {}


def _key(message: Message) -> tuple[object, ...]:
    return message.type, *message.fields


def replays(
    run: RunPlan, views: Mapping[Peer, Contents], values: Sequence[Sequence[float]], count: int, seed: int
) -> Replayed:
    """`values[user]` are a user's contributions in grid units; `seed` gives the noise."""
    if run.plan.shape not in ((), (run.plan.noise.categories,)):
        raise Refused("replays are made of scalars or of categories")
    seen = Replayed()
    users = []
    for user in range(run.n):
        records = views[user].records
        choices = iter([record.body.picked for record in records if record.kind == CHOSEN])
        draws = _Draws(SeededSampler(seed, f"replays/{user}"), choices, count, seen.drawn.setdefault(user, []))
        users.append(_User(run, user, views[user], values[user], draws))
    for start in run.plan.starts:
        message = Message(BEGIN, (start.item, 0))
        users[start.user].waiting[_key(message)] = (BOOTSTRAP, message)
    ready = deque(range(run.n))
    while ready:
        user = ready.popleft()
        state = users[user]
        while state.order and state.order[0] in state.waiting:
            sender, message = state.waiting.pop(state.order.popleft())
            for to, sent in _told(state, user, sender, message, count, seen):
                users[to].waiting[_key(sent)] = (user, sent)
                ready.append(to)
    seen.published = run.protocol.publish(run.plan, [seen.totals[item] for item in sorted(seen.totals)])
    return seen


def _told(
    state: _User, user: Peer, sender: Peer, message: Message, count: int, seen: Replayed
) -> Iterator[tuple[Peer, Message]]:
    if message.type == TOKEN and user != sender:
        seen.received.setdefault(user, []).append(_a_row_a_replay(message.value, count))
    for send in tell(state.machine, Received(sender, message), 0.0, state.draws).sends:
        if send.to == CURATOR:
            seen.totals[Item(*send.message.fields).item] = _a_row_a_replay(send.message.value, count)
        else:
            yield send.to, send.message


def _a_row_a_replay(value: Any, count: int) -> Floats:
    """What is the same in all replays, such as the zero a token starts with, is a number or a vector."""
    array = np.asarray(value, dtype=np.float64)
    return array if array.ndim and len(array) == count else np.broadcast_to(array, (count, *array.shape))
