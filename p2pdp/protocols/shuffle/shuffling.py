"""Network shuffling: reports that walk from user to user, sealed to the curator, until their origin is lost.

Algorithms 1 (`all`) and 2 (`single`) of [LTT22]: every user randomizes its value into a report; in each round every
report moves to a uniform neighbour of its holder; after the last round holders hand in all that they hold, or one
report chosen uniformly, or a dummy if there is none. A report is sealed once, by its user, and has a name drawn at
random inside the seal; every hop has a channel and so a ciphertext of its own. Outside the seal a report is identified
by a number that its sender draws afresh for each hop, sent together with the number of the hop before: so its holder
can be determined after an exclusion, and no name that the curator opens is ever told to anybody.

There is no barrier. A user that has sent its reports marks the end of the round to each neighbour, and goes on when it
has all their marks, except those of neighbours that are `patience_s` late, or were late before and have not caught up.
A report that comes late has stayed where it was: it joins the reports held now. The same holds for reports meant for a
neighbour that is late; otherwise a neighbour that is gone would draw in all reports before it is excluded. Before it
hands in, a user waits for the last marks of all neighbours that are not excluded, so nothing comes later.

Where the unit is a record, every row of a user is a report, and all of them begin their walks at once.

Departures from the paper: late, absent and gone users, of whom it has none; with `stay` a report stays for a round
with that probability; a holder permutes its reports before it sends them; with `slots` each neighbour gets the same
number of frames in each round, reports first and cover for the rest, and reports without a slot stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from p2pdp.core import messages
from p2pdp.core.draws import Draws
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import Item
from p2pdp.core.states import Transitions, after
from p2pdp.core.step import NOTHING, Custody, Fault, Message, Send, Step
from p2pdp.protocols.shuffle.plan import (
    COVER,
    COVER_HOP,
    MARK,
    NAMES,
    RELAY,
    SEED,
    SEED_SHAPE,
    STAY_OPTIONS,
    Hop,
    Reports,
    Round,
    ShufflePlan,
    draw_hop,
)

Held = tuple[int, Any]  # the hop by which a report came, and the sealed report


class Phase(Enum):
    WAITING = "the run has not begun"
    RELAYING = "rounds are under way"
    COMPLETING = "its rounds are over; a neighbour's last reports are still to come"
    ENDED = "it has handed in what it held"


class Change(Enum):
    BEGUN = "bootstrap said go"
    ROUNDS_OVER = "the last round is closed"
    ALL_HERE = "all neighbours that are not out have marked their last round"


TRANSITIONS: Final[Transitions[Phase, Change]] = {
    (Phase.WAITING, Change.BEGUN): Phase.RELAYING,
    (Phase.RELAYING, Change.ROUNDS_OVER): Phase.COMPLETING,
    (Phase.COMPLETING, Change.ALL_HERE): Phase.ENDED,
}


@dataclass(slots=True)
class _Neighbour:
    peer: Peer
    marked: int = 0  # the last round whose end it has marked
    out: bool = False
    unmarked: list[Held] = field(default_factory=list)  # reports that it has passed on since


class Shuffle:
    """The machine of one user."""

    def __init__(self, plan: ShufflePlan, user: Peer, neighbours: Sequence[Peer], inputs: Reports) -> None:
        self._plan = plan
        self._user = user
        self._neighbours = {peer: _Neighbour(peer) for peer in neighbours if peer != user}
        self._inputs = inputs
        self._round = 0  # the round whose marks are awaited; 0 before the first, rounds + 1 after the last
        self._held: list[Held] = []  # reports to send when the next round opens
        self._ahead: dict[int, list[Held]] = {}  # reports for rounds that have not ended here
        self._came: set[int] = set()  # hops, each of which is passed on once
        self._passed: dict[int, tuple[Peer, int, Held]] = {}  # hop -> receiver, round, report
        self._waiting_since_s = 0.0
        self._phase = Phase.WAITING

    @property
    def waits_for(self) -> list[Peer]:
        return self._lacking(min(self._round, self._plan.rounds)) if self._phase is not Phase.ENDED else []

    @property
    def finished(self) -> bool:
        return False  # others may still pass something on; the curator's result ends it

    def __repr__(self) -> str:
        return f"Shuffle(user={self._user})"

    def start(self, now_s: float, draws: Draws) -> Step:
        if self._phase is not Phase.WAITING:
            return NOTHING
        self._phase = after(TRANSITIONS, self._phase, Change.BEGUN)
        hops: set[int] = set()
        for place in range(self._plan.reports_of(self._user)):
            name = draws.choice(NAMES)
            randomness = self._plan.randomizer.draw(draws)
            sealed = self._inputs.sealed(name, randomness, draws.noise(SEED, SEED_SHAPE), place)
            hop = draw_hop(draws)  # not the name, which only the curator reads
            while hop in hops:
                hop = draw_hop(draws)
            hops.add(hop)
            self._held.append((hop, sealed))
        return Step(tuple(self._open_round(now_s, draws))).then(self._advance(now_s, draws))

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step:
        if sender == BOOTSTRAP and message.type == messages.LOST:
            return self._take_back(message)
        neighbour = self._neighbours.get(sender)
        if neighbour is None or neighbour.out or not self._take(neighbour, message):
            return Step(faults=(Fault("unexpected_message", sender),))
        return self._advance(now_s, draws)

    def wake(self, now_s: float, draws: Draws) -> Step:
        return self._advance(now_s, draws)

    def excluded(self, peer: Peer, now_s: float, draws: Draws) -> Step:
        neighbour = self._neighbours.get(peer)
        if neighbour is None:
            return NOTHING
        neighbour.out = True
        self._hold(neighbour, neighbour.marked + 1)  # it is held here, and nowhere else
        return self._advance(now_s, draws)

    # What comes

    def _take(self, neighbour: _Neighbour, message: Message) -> bool:
        """Return whether the message is accepted here. A neighbour's reports of a round come before its mark."""
        if message.type == RELAY:
            _, hop, number = message.fields
            if number != neighbour.marked + 1 or hop in self._came:
                return False
            self._came.add(hop)
            neighbour.unmarked.append((hop, message.value))
            return True
        if message.type == MARK and Round(*message.fields).round == neighbour.marked + 1:
            neighbour.marked += 1
            self._hold(neighbour, neighbour.marked)
            return True
        return message.type == COVER and Hop(*message.fields).round == neighbour.marked + 1 <= self._plan.rounds

    def _hold(self, neighbour: _Neighbour, number: int) -> None:
        """Keep reports sent in a round for the one after, or for the next round that opens here if that is over."""
        came, neighbour.unmarked = neighbour.unmarked, []
        if number >= self._round:
            self._ahead.setdefault(number, []).extend(came)
        else:
            self._held.extend(came)

    def _take_back(self, order: Message) -> Step:
        """Keep a report whose receiver is gone without having passed it on.

        The curator is told, since it waits for reports that are handed in late.
        """
        hop, step = Item(*order.fields)
        to, number, held = self._passed.get(hop, (None, 0, (0, None)))
        if to is None or number != step or not self._neighbours[to].out:
            return Step(faults=(Fault("unexpected_message", BOOTSTRAP),))
        del self._passed[hop]
        handed_in = self._phase is Phase.ENDED
        late = handed_in and not self._plan.single
        if not handed_in:
            self._held.append(held)
        return Step(sends=(*([self._report(*held)] if late else []), Send(CURATOR, Message(messages.HEEDED))))

    # Rounds

    def _open_round(self, now_s: float, draws: Draws) -> list[Send]:
        """Send everything that is held on its way, and mark that nothing follows in this round."""
        self._round += 1
        self._waiting_since_s = now_s
        if self._round > self._plan.rounds:
            self._phase = after(TRANSITIONS, self._phase, Change.ROUNDS_OVER)
            return []
        there = [one.peer for one in self._neighbours.values() if not one.out]
        batch, self._held = self._permuted(draws), []
        going: dict[Peer, list[Held]] = {peer: [] for peer in there}
        for held in batch:
            to = self._next_holder(there, draws)
            if to is None or self._is_late(to) or (self._plan.slots is not None and len(going[to]) >= self._plan.slots):
                self._held.append(held)
            else:
                going[to].append(held)
        return [send for peer in there for send in self._frames(peer, going[peer], draws)]

    def _permuted(self, draws: Draws) -> list[Held]:
        """Return the reports in an order that is independent of where they came from (Fisher and Yates)."""
        batch = self._held
        for last in range(len(batch) - 1, 0, -1):
            other = draws.choice(last + 1)
            batch[last], batch[other] = batch[other], batch[last]
        return batch

    def _next_holder(self, there: Sequence[Peer], draws: Draws) -> Peer | None:
        if not there or (self._plan.stay > 0.0 and draws.choice(STAY_OPTIONS) < self._plan.stay_below):
            return None
        return there[draws.choice(len(there))]

    def _is_late(self, peer: Peer) -> bool:
        """Return whether the round before this one ended here without the neighbour's mark."""
        return self._neighbours[peer].marked < self._round - 1

    def _frames(self, peer: Peer, reports: Sequence[Held], draws: Draws) -> list[Send]:
        number, plan = self._round, self._plan
        sends = []
        for before, sealed in reports:
            hop = draw_hop(draws)
            while hop in self._passed:
                hop = draw_hop(draws)
            self._passed[hop] = (peer, number, (before, sealed))
            message = Message(RELAY, (before, hop, number), sealed)
            sends.append(Send(peer, message, Custody(hop, number)))
        cover = 0 if plan.slots is None else plan.slots - len(reports)
        sends += [Send(peer, Message(COVER, (COVER_HOP, COVER_HOP, number), bytes(plan.sealed_bytes)))] * cover
        return [*sends, Send(peer, Message(MARK, (number,)))]

    def _advance(self, now_s: float, draws: Draws) -> Step:
        """Complete as many rounds as the received messages allow."""
        if self._phase in (Phase.WAITING, Phase.ENDED):
            return NOTHING
        sends: list[Send] = []
        while self._phase is Phase.RELAYING and self._may_go_on(now_s):
            self._held += self._ahead.pop(self._round, [])
            sends += self._open_round(now_s, draws)
        if self._phase is Phase.COMPLETING and not self._lacking(self._plan.rounds):
            self._phase = after(TRANSITIONS, self._phase, Change.ALL_HERE)
            return Step((*sends, *self._hand_in(draws)))
        if self._phase is Phase.COMPLETING:  # all neighbours that are not excluded are waited for
            return Step(tuple(sends))
        return Step(tuple(sends), self._waiting_since_s + self._plan.patience_s)

    def _lacking(self, number: int) -> list[Peer]:
        return [one.peer for one in self._neighbours.values() if not one.out and one.marked < number]

    def _may_go_on(self, now_s: float) -> bool:
        """Return whether the round may end.

        Neighbours that were late before are not waited for in every round again.
        """
        lacking = [self._neighbours[peer] for peer in self._lacking(self._round)]
        return now_s >= self._waiting_since_s + self._plan.patience_s or all(
            one.marked < self._round - 1 for one in lacking
        )

    # The end

    def _hand_in(self, draws: Draws) -> list[Send]:
        held = self._permuted(draws)
        if self._plan.single:
            held = [held[draws.choice(len(held))]] if held else [self._dummy(draws)]
        return [*(self._report(*one) for one in held), Send(CURATOR, Message(messages.FINISHED))]

    def _dummy(self, draws: Draws) -> Held:
        name = draws.choice(NAMES)
        randomness = self._plan.randomizer.draw(draws)
        sealed = self._inputs.sealed_dummy(name, randomness, draws.noise(SEED, SEED_SHAPE))
        return draw_hop(draws), sealed

    def _report(self, before: int, sealed: Any) -> Send:
        return Send(CURATOR, Message(messages.REPORT, (before, self._plan.rounds + 1), sealed))
