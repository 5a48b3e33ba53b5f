"""Synchronous gossip without a barrier: neighbours exchange their states round by round and move towards each other.

Muffliato [CEBM22, Algorithm 1]: a user's state starts as its value
with noise of its own, and in each round moves by the flows W_vw (s_w - s_v) of its edges, s being what was *sent*
in that round. Flows are equal and opposite at both ends, so the sum of all states never changes, whatever was
sent. With gamma above 1 a round is accelerated: x' = gamma (x + flows) + (1 - gamma) x_before, from the second on.
Learning (`sgd.py`) is the same in blocks of rounds, each of which begins with a step of descent. `Sending` adds to
every message a dither, and noise on messages if the spec asks for it.

On a graph that changes, each pair tosses a coin for each round that both ends see and nobody else (`Draws.meet`). A
node learns its own edges only, as they come; a user without a meeting keeps its state for that round.

There is no barrier over all users. The lower-numbered end of an edge decides in each round whether the edge counts: it
does if the other's state is there in time. If it is not, `patience_s` after nothing else was missing, or at once
for a peer that is behind by more than this round, the decider goes on without it and sends `SKIPPED`. The other
end, which cannot pass their next meeting without the decider's state, has used the edge or will come to it later;
on `SKIPPED` it takes its own flow back out of its state, scaled by the acceleration since then (`_undo`), and the
messages that it has sent since stay as they were. `SETTLED` says that no `SKIPPED` will follow. A silent decider
is waited for until it is excluded, which bootstrap sees to. Rounds that an excluded decider left undecided stay as
they are: that is bias, and a replay shows it.

If the plan has noise of pairs, a contribution carries what its user shares with each neighbour (`PairNoise`). What is
shared with a neighbour that goes before any of its states counted here is taken out of the state, also out of the one
before: all that was sent stays as it was, so whoever sees both messages may learn that noise, and a replay shows it.
A neighbour that goes later leaves in the sum what it still held, noise of pairs included.

Departures from the paper: late and gone users, of whom it has none; a message carries its sender's degree, so
that each end knows the weight of the edge without asking first; noise is added to messages only, as
`dithering.py` says, and the sum is kept up to that noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from p2pdp.core import messages
from p2pdp.core.draws import Draws
from p2pdp.core.ids import CURATOR, Peer
from p2pdp.core.states import Transitions, after
from p2pdp.core.step import NOTHING, Fault, Message, Send, Step
from p2pdp.protocols.gossip.plan import EXCHANGE, SETTLED, SKIPPED, GossipPlan, Round, is_state
from p2pdp.protocols.gossip.sending import PairNoise, Sending
from p2pdp.tasks.inputs import Inputs


class Phase(Enum):
    WAITING = "the run has not begun"
    EXCHANGING = "rounds are under way"
    SETTLING = "its rounds are over; a neighbour may still say that it left an edge out"
    ENDED = "its result is handed in"


class Change(Enum):
    BEGUN = "bootstrap said go"
    ROUNDS_OVER = "the last round is closed"
    SETTLED = "no neighbour will leave out an edge any more"


TRANSITIONS: Final[Transitions[Phase, Change]] = {
    (Phase.WAITING, Change.BEGUN): Phase.EXCHANGING,
    (Phase.EXCHANGING, Change.ROUNDS_OVER): Phase.SETTLING,
    (Phase.SETTLING, Change.SETTLED): Phase.ENDED,
}


@dataclass(slots=True)
class _Neighbour:
    """The state of one edge. The end with the lower number decides about it."""

    peer: Peer
    decides: bool
    heard: int = 0  # the last round whose state arrived
    meeting: int = 0  # the last round in which we meet, of those open here
    met_before: int = 0  # the one before that
    states: dict[int, tuple[int, Any]] = field(default_factory=dict)  # round -> degree and state, not used yet
    flow: tuple[int, Any] | None = None  # the last one, with its round, as long as its decider may leave it out
    skipped: set[int] = field(default_factory=set)  # rounds that its decider left out and we have not come to
    settled: bool = False
    out: bool = False


class Gossip:
    """The machine of one user."""

    def __init__(self, plan: GossipPlan, user: Peer, neighbours: Sequence[Peer], inputs: Inputs) -> None:
        self._plan = plan
        self._state_max = plan.state_max  # each message asks
        self._user = user
        self._neighbours = {peer: _Neighbour(peer, peer < user) for peer in neighbours}
        self._met: list[_Neighbour] = []  # the neighbours that we meet in the present round
        self._degree = 0
        self._weights: dict[int, float] = {}  # by the other end's degree
        self._inputs = inputs
        self._round = 0  # the present one; 0 before the first, rounds + 1 after the last
        self._lacking: set[Peer] = set()  # those of them whose state (after the last round: `SETTLED`) is missing
        self._state: Any = None
        self._before: Any = None
        self._sent: Any = None
        self._sending = Sending(plan)
        self._pairs = PairNoise(plan, user)
        self._held_up_since_s: float | None = None  # since then only late neighbours that we decide about hold us up
        self._phase = Phase.WAITING

    @property
    def waits_for(self) -> set[Peer]:
        return self._lacking

    @property
    def finished(self) -> bool:
        return False  # others may still need messages; the curator's result ends it

    def __repr__(self) -> str:
        return f"Gossip(user={self._user})"

    def start(self, now_s: float, draws: Draws) -> Step:
        if self._phase is not Phase.WAITING:
            return NOTHING
        self._phase = after(TRANSITIONS, self._phase, Change.BEGUN)
        return Step(tuple(self._open_round(draws))).then(self._advance(now_s, draws))

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step:
        if sender == self._user and message.type == messages.FINAL:
            return NOTHING
        neighbour = self._neighbours.get(sender)
        if neighbour is None or neighbour.out or not self._take(neighbour, message):
            return Step(faults=(Fault("unexpected_message", sender),))
        return self._advance(now_s, draws)

    def exchange(self, sender: Peer, fields: tuple[int, ...], value: Any, now_s: float, draws: Draws) -> Step | None:
        """Take a neighbour's state in one piece; `receive` is the general way."""
        neighbour, plan = self._neighbours.get(sender), self._plan
        number, degree = fields
        if (
            neighbour is None or neighbour.out or not is_state(value, plan, self._state_max)
            or not 0 < number <= plan.rounds or not 0 < degree <= plan.degree_max
            or not self._take_state(neighbour, number, degree, value)
        ):  # fmt: skip
            return None
        return self._advance(now_s, draws)

    def wake(self, now_s: float, draws: Draws) -> Step:
        return self._advance(now_s, draws)

    def excluded(self, peer: Peer, now_s: float, draws: Draws) -> Step:
        neighbour = self._neighbours.get(peer)
        if neighbour is None:
            return NOTHING
        neighbour.out = True
        self._lacking.discard(peer)
        left_over = self._pairs.left_over(peer)
        if left_over is not None and self._phase is not Phase.ENDED:
            self._state = self._sending.settled(self._state - left_over)
            if self._before is not None:
                self._before = self._sending.settled(self._before - left_over)
        return self._advance(now_s, draws)

    # What comes

    def _take(self, neighbour: _Neighbour, message: Message) -> bool:
        """Return whether the message is accepted here; one that is too late to count is accepted and dropped."""
        if message.type == EXCHANGE:
            number, degree = message.fields
            return self._take_state(neighbour, number, degree, message.value)
        if not neighbour.decides or neighbour.settled:
            return False
        if message.type == SKIPPED:
            return self._take_skip(neighbour, Round(*message.fields).round)
        if message.type != SETTLED:
            return False
        neighbour.settled = True
        if self._phase is Phase.SETTLING:
            self._lacking.discard(neighbour.peer)
        return True

    def _take_state(self, neighbour: _Neighbour, number: int, degree: int, state: Any) -> bool:
        heard = neighbour.heard
        if neighbour.settled or (number != heard + 1 and (self._plan.coin is None or number <= heard)):
            return False
        neighbour.heard = number
        if number >= self._round:
            neighbour.states[number] = (degree, state)
            if number == self._round:
                self._lacking.discard(neighbour.peer)
        return True

    def _take_skip(self, neighbour: _Neighbour, number: int) -> bool:
        """Undo a flow. A decider's next state follows this message, so we cannot have passed our next meeting."""
        if neighbour.flow is not None and neighbour.flow[0] == number:
            self._undo(neighbour.flow[1], number)
            self._pairs.uncounted(neighbour.peer)
            neighbour.flow = None
            return True
        if number in neighbour.states and number not in neighbour.skipped:
            neighbour.skipped.add(number)
            return True
        return False

    def _undo(self, flow: Any, number: int) -> None:
        """Take a flow of that round back, so that the sum of all states is as if the flow had never been used."""
        before, grown = 0.0, 1.0
        for later in range(number + 1, self._round):
            gamma = self._plan.gamma_at(later)
            before, grown = grown, gamma * grown + (1.0 - gamma) * before
        self._state = self._sending.settled(self._state - flow * grown)
        if before:
            self._before = self._sending.settled(self._before - flow * before)

    # Rounds

    def _open_round(self, draws: Draws) -> list[Send]:
        """Send the state of the next round; after the last, say that nothing follows any more."""
        plan = self._plan
        self._round += 1
        self._held_up_since_s = None
        if self._round > plan.rounds:
            self._phase = after(TRANSITIONS, self._phase, Change.ROUNDS_OVER)
            self._met = [one for one in self._neighbours.values() if one.meeting and not one.out]
            self._lacking = {one.peer for one in self._met if one.decides and not one.settled}
            return [Send(one.peer, Message(SETTLED)) for one in self._met if not one.decides]
        self._meet(draws)
        if plan.begins_block(self._round):
            self._contribute(draws)
            self._state = self._sending.settled(self._state)
        self._sent = self._state
        sends, message, number = [], None, self._round
        self._lacking = lacking = set()
        for neighbour, value in zip(self._met, self._sending.values(self._sent, len(self._met), draws), strict=True):
            if message is None or message.value is not value:
                message = Message(EXCHANGE, (number, self._degree), value)
            neighbour.met_before, neighbour.meeting = neighbour.meeting, number
            sends.append(Send(neighbour.peer, message))
            if number not in neighbour.states:
                lacking.add(neighbour.peer)
        return sends

    def _contribute(self, draws: Draws) -> None:
        """Begin a block of rounds: here with the value and its noise."""
        self._state = self._noised(self._inputs.contribution(0), draws)
        self._state = self._pairs.added_to(self._state, self._present, 0, draws)

    def _noised(self, value: Any, draws: Draws) -> Any:
        plan = self._plan
        return value if plan.noise.name == "none" else value + draws.noise(plan.noise, plan.shape) * plan.step

    @property
    def _present(self) -> list[Peer]:
        return [one.peer for one in self._neighbours.values() if not one.out]

    def _meet(self, draws: Draws) -> None:
        """Find the peers of this round. On a fixed graph degrees and weights stay the same, whoever is excluded."""
        coin = self._plan.coin
        if coin is None:
            self._met = [one for one in self._neighbours.values() if not one.out]
            self._degree = len(self._neighbours)
        else:
            met = [self._neighbours[peer] for peer in draws.meet(self._round, coin)]
            self._met = [one for one in met if not one.out]
            self._degree = len(self._met)
            self._weights.clear()

    def _advance(self, now_s: float, draws: Draws) -> Step:
        """Complete as many rounds as the received messages allow."""
        if self._phase is Phase.WAITING or self._phase is Phase.ENDED:
            return NOTHING
        sends: list[Send] = []
        while not self._lacking or self._may_go_on(now_s):
            if self._phase is Phase.SETTLING:
                self._phase = after(TRANSITIONS, self._phase, Change.SETTLED)
                return Step((*sends, *self._end(draws)))
            sends += self._close_round()
            sends += self._open_round(draws)
        since_s = self._held_up_since_s
        if since_s is None:
            return Step(tuple(sends)) if sends else NOTHING
        return Step(tuple(sends), since_s + self._plan.patience_s)

    def _may_go_on(self, now_s: float) -> bool:
        """Return whether the round may end without those that are lacking."""
        neighbours, behind = self._neighbours, True
        for peer in self._lacking:  # each message asks, and a generator takes twice as long
            neighbour = neighbours[peer]
            if neighbour.decides:
                return False
            behind = behind and neighbour.heard < neighbour.met_before
        if behind:
            return True  # they are behind by more than this round, and come back in step before they are waited for
        if self._held_up_since_s is None:
            self._held_up_since_s = now_s
        return now_s >= self._held_up_since_s + self._plan.patience_s  # computed like the wake

    def _close_round(self) -> list[Send]:
        """Move by the flows of all edges that count."""
        plan, number, sent = self._plan, self._round, self._sent
        gamma, weights, masked = plan.gamma_at(number), self._weights, plan.pair_noise is not None
        moved = self._state
        is_new = False  # an array of its own, which is added to in place
        sends = []
        for neighbour in self._met:
            came, neighbour.flow = neighbour.states.pop(number, None), None
            if neighbour.out:
                continue
            if came is None:
                sends.append(Send(neighbour.peer, Message(SKIPPED, (number,))))
                continue
            if number in neighbour.skipped:
                neighbour.skipped.discard(number)
                continue
            degree, state = came
            flow = state - sent
            flow *= weights.get(degree) or self._weight(degree)
            if is_new:
                moved += flow
            else:
                moved, is_new = moved + flow, True
            if masked:
                self._pairs.counted(neighbour.peer)
            if neighbour.decides:
                neighbour.flow = (number, flow if gamma == 1.0 else flow * gamma)
        if gamma != 1.0:
            moved = moved * gamma + self._before * (1.0 - gamma)
        self._before, self._state = self._state, self._sending.settled(moved)
        return sends

    def _weight(self, other_degree: int) -> float:
        """Return the weight of an edge to a neighbour of this degree in the present round, and keep it."""
        weight = self._weights[other_degree] = self._plan.weight(self._degree, other_degree)
        return weight

    def _end(self, draws: Draws) -> tuple[Send, ...]:
        plan = self._plan
        value = self._sending.dithered(self._state, draws) if plan.publishes(self._user) else None
        return (
            Send(self._user, Message(messages.FINAL, (plan.rounds,), self._state)),
            Send(CURATOR, Message(messages.FINISHED, (), value)),
        )
