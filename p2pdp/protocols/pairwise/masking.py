"""A user of pairwise sums: it hides its noised value behind masks, of which it later reveals what the sum needs.

When the run goes, the user draws its noise and the seed of a mask of its own, and gives each neighbour a part of that
mask's key. Once it has the parts of all neighbours that are in, it sends the curator its value with noise, its own mask
and, for every neighbour, the mask that it shares with that one: added by the lower of the two, subtracted by the
other.

Then it reveals, of each neighbour, either the key of their shared mask (if the neighbour is excluded before the
decision, and its value cannot count any more) or its part of the key of the neighbour's own mask (if the decision says
that the neighbour's value counts). Never both, for together they would open the value: `_gone` decides for the one and
the phase for the other, and both follow from recorded events alone, so a restart comes to the same. A decision that
does not fit what this user was told is a fault, after which nothing is revealed any more.

Departures from [BBGLR20], where users agree on keys anew and the server is told who is gone: keys are those of
channels, whoever is excluded is named by bootstrap, and noise is each user's own, so that it holds whoever unmasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

from p2pdp.core.draws import UNIFORM, Draws
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.states import Transitions, after
from p2pdp.core.step import NOTHING, Fault, Message, Send, Step
from p2pdp.protocols.decision import SURVIVORS, Survivors
from p2pdp.protocols.pairwise.plan import MASKED, PAIR_KEY, PAIR_NUMBER, SEEDS, SHARE, PairwisePlan
from p2pdp.protocols.pairwise.sharing import SEED_SHAPE, mask_key, parts_of, unfolded
from p2pdp.tasks.inputs import Inputs

CONTRADICTION: Final = "contradiction"  # the kind of the fault
_WRAP: Final = 2**64
_HALF: Final = 2**63


class Phase(Enum):
    WAITING = "the run has not begun"
    SHARING = "parts of some neighbours' keys are missing"
    MASKED = "its masked value is sent; whose values count is not decided"
    SETTLED = "that is decided, and what it takes is revealed"


class Change(Enum):
    BEGUN = "bootstrap said go"
    SHARED = "the parts of all neighbours that are in are here"
    DECIDED = "bootstrap said whose values count"


TRANSITIONS: Final[Transitions[Phase, Change]] = {
    (Phase.WAITING, Change.BEGUN): Phase.SHARING,
    (Phase.SHARING, Change.SHARED): Phase.MASKED,
    (Phase.MASKED, Change.DECIDED): Phase.SETTLED,
}


def wrapped(value: Any) -> Any:
    """Return a number modulo 2^64, as a signed one; arrays wrap of themselves, and forms stand for what is wrapped."""
    return (value + _HALF) % _WRAP - _HALF if isinstance(value, int) else value


class Masking:
    """The machine of one user."""

    def __init__(self, plan: PairwisePlan, user: Peer, neighbours: Sequence[Peer], inputs: Inputs) -> None:
        self._plan = plan
        self._user = user
        self._neighbours = sorted(neighbours)
        self._inputs = inputs
        self._gone: set[Peer] = set()  # neighbours that were excluded before the decision
        self._parts: dict[Peer, Any] = {}  # of neighbours' keys
        self._lacking = set(neighbours) if plan.settles else set()  # whose part is missing
        self._noised: Any = None
        self._key: Any = None  # of its own mask
        self._contradicted = False
        self._phase = Phase.WAITING

    @property
    def waits_for(self) -> set[Peer]:
        return self._lacking - self._gone if self._phase is Phase.SHARING else set()

    @property
    def finished(self) -> bool:
        return False  # the curator's result ends it

    def __repr__(self) -> str:
        return f"Masking(user={self._user})"

    def start(self, now_s: float, draws: Draws) -> Step:
        if self._phase is not Phase.WAITING:
            return NOTHING
        self._phase = after(TRANSITIONS, self._phase, Change.BEGUN)
        plan = self._plan
        self._noised = self._inputs.contribution(0)
        if plan.noise.name != "none":
            self._noised = self._noised + draws.noise(plan.noise, plan.shape)
        sends: tuple[Send, ...] = ()
        if plan.settles:
            seed = draws.noise(UNIFORM, SEED_SHAPE)
            self._key = mask_key(seed)
            around = self._neighbours
            parts = parts_of(seed, plan.threshold(len(around)), around)
            given = zip(around, parts, strict=True)
            sends = tuple(Send(peer, Message(SHARE, (), part)) for peer, part in given if peer not in self._gone)
        return Step(sends).then(self._advance(draws))

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step:
        if sender == BOOTSTRAP and message.type == SURVIVORS:
            return self._decided(Survivors(*message.fields).absent)
        if message.type != SHARE or sender not in self._lacking:
            return Step(faults=(Fault("unexpected_message", sender),))
        self._lacking.discard(sender)
        self._parts[sender] = message.value
        return self._advance(draws)

    def wake(self, now_s: float, draws: Draws) -> Step:
        return NOTHING

    def excluded(self, peer: Peer, now_s: float, draws: Draws) -> Step:
        if self._phase is Phase.SETTLED or peer not in self._neighbours or peer in self._gone:
            return NOTHING
        self._gone.add(peer)
        self._lacking.discard(peer)
        if self._phase is Phase.MASKED:
            return Step(self._pair_keys([peer], draws))
        return self._advance(draws)

    def _advance(self, draws: Draws) -> Step:
        """Send the masked value as soon as nothing is missing, with the keys that are due already."""
        if self._phase is not Phase.SHARING or self._lacking:
            return NOTHING
        self._phase = after(TRANSITIONS, self._phase, Change.SHARED)
        masked = Message(MASKED, (self._neighbours,), self._masked(draws))
        return Step((Send(CURATOR, masked), *self._pair_keys(sorted(self._gone), draws)))

    def _masked(self, draws: Draws) -> Any:
        plan = self._plan
        total = self._noised
        if plan.settles:
            total = total + unfolded(self._key, UNIFORM, plan.shape)
        for peer in self._neighbours:
            mask = draws.pair(peer, PAIR_NUMBER, plan.mask, plan.shape)
            total = total + mask if self._user < peer else total - mask
        return wrapped(total)

    def _pair_keys(self, peers: Sequence[Peer], draws: Draws) -> tuple[Send, ...]:
        if not self._plan.settles or self._contradicted:
            return ()
        return tuple(Send(CURATOR, Message(PAIR_KEY, (peer,), draws.pair_key(peer, PAIR_NUMBER))) for peer in peers)

    def _decided(self, absent: Sequence[Peer]) -> Step:
        """Reveal what takes off the survivors' own masks, if the decision fits all that this user was told."""
        if self._phase is Phase.SETTLED or self._contradicted:
            return Step(faults=(Fault("unexpected_message", BOOTSTRAP),))
        gone = set(absent)
        fits = (
            self._phase is Phase.MASKED
            and self._user not in gone
            and self._gone == gone.intersection(self._neighbours)
            and self._plan.n - len(gone) >= self._plan.needed
            and gone.issubset(range(self._plan.n))
        )
        if not fits:
            self._contradicted = True
            return Step(faults=(Fault(CONTRADICTION, BOOTSTRAP),))
        self._phase = after(TRANSITIONS, self._phase, Change.DECIDED)
        if not self._plan.settles:
            return NOTHING
        others = [peer for peer in self._neighbours if peer not in gone]
        keys = [self._key, *(self._parts[peer] for peer in others)]
        return Step((Send(CURATOR, Message(SEEDS, ([self._user, *others],), keys)),))
