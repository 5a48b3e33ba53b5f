"""Walks without their ledgers: the messages of absent users, and the transcript of a ring before it runs.

A walk's token is contributions and draws, in the order of its steps, and the plan fixes what is added at each.
So if the form with which a token came to a user is known, and the step at which it left, its form then is known too,
given that the user followed the protocol. Claims that rest on this say so. A token that left at the step after it came
was held there for exactly that step. One that left later stayed meanwhile with users whose ledgers are missing: with
this one, if it is the only one; otherwise the contributors are unknown, and so is the message.

The schedule of a ring is public, and only its noise is left to chance, so its machines run over symbols: the transcript
of a run in which nothing is lost is known in advance, to the last term.

In both cases it is unknown which of its values a user contributed, so every contribution counts as a value of its own:
letting them vary one by one can only raise a leak, and on a ring, where no weight is negative, does not.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Final

from p2pdp.core.events import Received, tell
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.messages import BEGIN, TOKEN, Item
from p2pdp.core.step import Message
from p2pdp.core.values import GRADIENT, ZERO_FORM, LinearForm, Source
from p2pdp.ledger.records import SENT, Contents, public_message
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.walking import WalkPlan
from p2pdp.replay.absent import Absent, Handover
from p2pdp.replay.foreseen import Symbols
from p2pdp.replay.transcript import Transcript
from p2pdp.tasks.inputs import SymbolicInputs

_RANDOMIZED: Final = "randomized_response"


class AbsentFromWalk(Absent):
    """Rebuilds the messages of absent users, as far as they follow."""

    def __init__(self, run: RunPlan, views: dict[Peer, Contents]) -> None:
        super().__init__(run, views)
        self._handovers: dict[tuple[Peer, int], list[Handover]] = {}
        self._held: dict[tuple[Peer, int, int], LinearForm] = {}
        if self.users:
            self._find_handovers(views)

    def _find_handovers(self, views: dict[Peer, Contents]) -> None:
        sends = {peer: [record for record in view.records if record.kind == SENT] for peer, view in views.items()}
        if BOOTSTRAP not in views:
            for start in self.plan.starts:
                self._note(start.user, start.item, Handover(1, None, 0))
        for sender, records in sends.items():
            numbers: dict[Peer, int] = {}
            for record in records:
                to = record.body.receiver
                number = numbers[to] = numbers.get(to, 0) + 1
                message = public_message(record)
                if sender == BOOTSTRAP and message.type == BEGIN:
                    self._note(to, Item(*message.fields).item, Handover(1, None, 0))
                elif is_user(sender) and message.type == TOKEN:
                    item, step = Item(*message.fields)
                    self._note(to, item, Handover(step, sender, number - 1))

    def _note(self, user: Peer, item: int, handover: Handover) -> None:
        if user in self.users:
            self._handovers.setdefault((user, item), []).append(handover)

    def origin(self, user: Peer, message: Message) -> Handover | None:
        """Return the handover by which the token in this message of an absent user had come to it; None if unknown."""
        item, step = Item(*message.fields)
        if step == 1:  # a token that is sent to its first holder is empty
            return Handover(1, None, 0)
        known = [one for one in self._handovers.get((user, item), ()) if one.step < step]
        last = max(known, key=lambda one: one.step, default=None)
        certain = last is not None and (last.step == step - 1 or self.users == {user})
        return last if certain else None

    def form(self, user: Peer, message: Message, came: Handover, before: LinearForm) -> LinearForm:
        """Return the token as it left the user, having come to it as `before`; the same however often it was sent."""
        item, left = Item(*message.fields)
        self.rebuilt.add(user)
        form = ZERO_FORM if came.sender is None else before
        for step in range(came.step, left):
            at = (user, item, step)
            if at not in self._held:
                self._held[at] = form + self._added(user, step)
            form = self._held[at]
        return form

    def _added(self, user: Peer, step: int) -> LinearForm:
        """Return one contribution with its draws, all under new names."""
        plan: WalkPlan = self.plan
        drawn = list(plan.draws_at(step))
        drawn += [plan.dummy_mechanism] * (plan.dummies > 0) * ((step == 1) + (step == plan.steps))
        visits = self.contributions[user]
        self.contributions[user] += 1
        source = self._source(user, visits)
        terms = [(source, 1.0)]
        if source.kind == "report":
            self.randomized[source] = (plan.noise,)
        for mechanism in drawn:
            terms.append((Source("draw", user, len(self.draws[user])), 1.0))
            self.draws[user].append(mechanism)
        return LinearForm((), tuple(terms))

    def _source(self, user: Peer, visits: int) -> Source:
        kind = "report" if self.plan.noise.name == _RANDOMIZED else "input"
        return Source(kind, user, self.values[user] + visits)


class AbsentFromDescent(AbsentFromWalk):
    """Rebuilds the messages of absent users whose contributions are gradients."""

    def _source(self, user: Peer, visits: int) -> Source:
        return Source(GRADIENT, user, visits)


def is_scheduled(run: RunPlan) -> bool:
    """Return whether the plan alone determines the holder of a token at each step."""
    return bool(run.plan.order == "ring")


def scheduled_transcript(run: RunPlan) -> Transcript:
    """Return the transcript of a ring before it runs; the caller owes a plan that `is_scheduled`."""
    plan: WalkPlan = run.plan
    visits = plan.steps * plan.tokens // plan.n
    draws = [Symbols(user) for user in range(run.n)]
    inputs = [SymbolicInputs(user, visits) for user in range(run.n)]
    machines = [run.protocol.machine(plan, user, (), inputs[user]) for user in range(run.n)]
    seen = Transcript()
    for user in range(run.n):
        seen.received[user] = []
        seen.draws[user], seen.values[user] = draws[user].drawn, visits
    totals: dict[int, LinearForm] = {}
    events = deque((start.user, BOOTSTRAP, Message(BEGIN, (start.item, 0))) for start in plan.starts)
    while events:
        user, sender, message = events.popleft()
        step = tell(machines[user], Received(sender, message), 0.0, draws[user])
        if message.type == TOKEN and sender != user:
            seen.received[user].append(message.value)
        for send in step.sends:
            if send.to == CURATOR:
                totals[Item(*send.message.fields).item] = send.message.value
            else:
                events.append((send.to, user, send.message))
    seen.totals = [totals[item] for item in sorted(totals)]
    seen.published = (run.protocol.publish(plan, seen.totals),)
    randomized = {
        report: tuple(draws[draw.peer].drawn[draw.number] for draw in made)
        for user in inputs
        for report, made in user.randomized.items()
    }
    seen.find_noise = partial(seen.noise_among, randomized, plan.unit)
    return seen
