"""Bootstrap after enrolment: the barrier before the start, and the exclusion of peers.

Exclusion: the host watches over everybody (`watched`, `peer/watch.py`) and says who is silent, whatever that peer
holds. Bootstrap probes it; if it does not answer within `patience_s`, "out" is recorded, signed and sent to its live
neighbours. Each refuses the peer from then on and answers what it has received from it and which items it had passed
to peers that are out. When all have answered, `settlement.py` says which items are lost, and who passed them on last
and lives is told to send the same noised value elsewhere; nobody else is told anything. Bootstrap itself may have
to begin an item again that never left its start.

A ring cannot go round: the run is reported blocked, and goes on if the silent user comes back. The same
holds where the curator is silent, or where nobody would be left. Once the result is published nothing can
get lost any more: then users are only put out for never handing in their heads, of which the curator tells, and
nobody is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Final

from p2pdp.core import messages
from p2pdp.core.draws import Draws
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.messages import BLOCKED, EXCLUDED, OnePeer, Settling
from p2pdp.core.states import Transitions, after
from p2pdp.core.step import NOTHING, Fault, Message, Output, Send, Step
from p2pdp.protocols.contract import Start
from p2pdp.services.settlement import Settlement

PROGRESS: Final = "progress"  # how many live users are ready, and whether they go

Sign = Callable[[Peer], bytes]
Opening = Callable[[Draws], Sequence[Send]]


class Phase(Enum):
    GATHERING = "users, or the curator, are not ready yet"
    RUNNING = "the protocol runs, and everybody is watched"
    CLOSING = "the result is out; ledgers are still to be closed"
    OVER = "every ledger is closed"


class Change(Enum):
    ALL_READY = "everybody who is not out is ready"
    PUBLISHED = "the curator has published the result"
    ALL_CLOSED = "the curator has the heads of all ledgers"


TRANSITIONS: Final[Transitions[Phase, Change]] = {
    (Phase.GATHERING, Change.ALL_READY): Phase.RUNNING,
    (Phase.RUNNING, Change.PUBLISHED): Phase.CLOSING,
    (Phase.CLOSING, Change.ALL_CLOSED): Phase.OVER,
}


class Bootstrap:
    def __init__(
        self,
        n: int,
        neighbours: Callable[[Peer], Sequence[Peer]],
        starts: tuple[Start, ...],
        *,
        reroutes: bool,
        patience_s: float,
        ready_timeout_s: float,
        sign_exclusion: Sign,
        opening: Opening = lambda _draws: (),
    ) -> None:
        """`opening` makes what a protocol has bootstrap send to the users when they go, drawn in that moment."""
        self._opening = opening
        self._neighbours = neighbours
        self._reroutes = reroutes
        self._patience_s = patience_s
        self._ready_timeout_s = ready_timeout_s
        self._sign_exclusion = sign_exclusion
        self._live: set[Peer] = set(range(n))
        self._ready: set[Peer] = set()
        self._ready_by_s: float | None = None
        self._phase = Phase.GATHERING
        self._watched: set[Peer] = set()
        self._probes: dict[Peer, float] = {}  # who is under suspicion -> since when
        self._unanswered: dict[Peer, set[Peer]] = {}  # who is out -> who has still to answer
        self._settlement = Settlement()
        self._unsettled: list[Peer] = []  # who is out, and what became of what it held is not decided
        self._began_at: dict[int, Peer] = {start.item: start.user for start in starts}
        self.out: list[Peer] = []

    @property
    def finished(self) -> bool:
        return self._phase is Phase.OVER

    @property
    def _published(self) -> bool:
        return self._phase in (Phase.CLOSING, Phase.OVER)

    @property
    def watched(self) -> AbstractSet[Peer]:
        """Return all who take part, from the go until the result is published."""
        return self._watched

    def start(self, now_s: float, draws: Draws) -> Step:
        self._ready_by_s = now_s + self._ready_timeout_s
        return Step(wake_at_s=self._wake_at_s())

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step:
        kind = message.type
        if sender in self.out:
            return NOTHING
        if kind == messages.READY:
            self._ready.add(sender)
            return self._go(draws).then(self._progress())
        if kind == messages.SILENT:
            return self._silent(sender, OnePeer(*message.fields).peer, now_s)
        if kind == messages.ALIVE:
            return self._alive(sender)
        if kind == messages.SEEN:
            return self._seen(sender, message, draws)
        if sender == CURATOR and kind == messages.DONE and self._phase is Phase.RUNNING:
            self._phase = after(TRANSITIONS, self._phase, Change.PUBLISHED)
            self._watched.clear()
            self._probes.clear()
            self._unanswered.clear()
            return NOTHING
        if sender == CURATOR and kind == messages.SPARED:
            self._probes.pop(OnePeer(*message.fields).peer, None)  # its head came after all
            return NOTHING
        if sender == CURATOR and kind == messages.OVER and self._phase is Phase.CLOSING:
            self._phase = after(TRANSITIONS, self._phase, Change.ALL_CLOSED)
            return NOTHING
        return Step(faults=(Fault("unexpected_message", sender),))

    def excluded(self, peer: Peer, now_s: float, draws: Draws) -> Step:
        return NOTHING

    def wake(self, now_s: float, draws: Draws) -> Step:
        step = NOTHING
        if self._ready_by_s is not None and now_s >= self._ready_by_s:
            self._ready_by_s = None
            for peer in sorted((self._live | {CURATOR}) - self._ready):
                step = step.then(self._exclude(peer))
            step = step.then(self._go(draws), self._progress())
        for peer, since_s in sorted(self._probes.items()):
            if now_s >= since_s + self._patience_s:
                del self._probes[peer]
                step = step.then(self._exclude(peer))
        return step.then(self._decide(draws), Step(wake_at_s=self._wake_at_s()))

    # The barrier

    def _progress(self) -> Step:
        count = len(self._live & self._ready)
        return Step(outputs=(Output(PROGRESS, (count, self._phase is not Phase.GATHERING), recorded=False),))

    def _go(self, draws: Draws) -> Step:
        if self._phase is not Phase.GATHERING or not self._live | {CURATOR} <= self._ready:
            return NOTHING
        self._phase = after(TRANSITIONS, self._phase, Change.ALL_READY)
        self._watched = self._live | {CURATOR}
        self._ready_by_s = None
        sends = [Send(peer, Message(messages.GO)) for peer in (CURATOR, *sorted(self._live))]
        for item, user in sorted(self._began_at.items()):
            sends.append(self._begin(item, user if user in self._live else self._anybody(draws)))
        sends += [send for send in self._opening(draws) if send.to in self._live]
        return Step(tuple(sends))

    def _anybody(self, draws: Draws) -> Peer:
        live = sorted(self._live)
        return live[draws.choice(len(live))]

    def _begin(self, item: int, user: Peer) -> Send:
        self._began_at[item] = user
        return Send(user, Message(messages.BEGIN, (item, 0)))

    # Silence

    def _silent(self, sender: Peer, peer: Peer, now_s: float) -> Step:
        """Probe a silent peer, named by our own host before the result and by the curator if its head is missing."""
        if sender not in (BOOTSTRAP, CURATOR) or peer == sender:
            return Step(faults=(Fault("unexpected_message", sender),))
        if sender != (CURATOR if self._published else BOOTSTRAP) or peer in self._probes:
            return NOTHING
        if peer != CURATOR and peer not in self._live:
            return NOTHING
        self._probes[peer] = now_s
        return Step(sends=(Send(peer, Message(messages.PROBE)),), wake_at_s=self._wake_at_s())

    def _alive(self, peer: Peer) -> Step:
        suspected = self._probes.pop(peer, None) is not None
        return Step(sends=(Send(CURATOR, Message(messages.SPARED, (peer,))),) if suspected and self._published else ())

    # Exclusion

    def _exclude(self, peer: Peer) -> Step:
        needed = not self._reroutes or self._live <= {peer}
        if not is_user(peer) or (needed and not self._published):
            return Step(outputs=(Output(BLOCKED, (peer,)),))
        self.out.append(peer)
        self._live.discard(peer)
        self._watched.discard(peer)
        signature = self._sign_exclusion(peer)
        order = Message(messages.OUT, (peer, signature))
        asked = [] if self._published else [who for who in self._neighbours(peer) if who in self._live]
        for waiting in self._unanswered.values():
            waiting.discard(peer)
        if not self._published:
            self._unanswered[peer] = {CURATOR, *asked}
            self._unsettled.append(peer)
        for item, user in self._began_at.items():
            if user == peer and self._phase is not Phase.GATHERING:
                self._settlement.claim(BOOTSTRAP, item, 0)
        sends = tuple(Send(who, order) for who in (CURATOR, *asked, peer))
        return Step(sends, outputs=(Output(EXCLUDED, (peer, signature)),))

    def _seen(self, sender: Peer, message: Message, draws: Draws) -> Step:
        peer, receipts, claims = Settling(*message.fields)
        waiting = self._unanswered.get(peer, set())
        if sender not in waiting:  # nobody asked it, or once the result is published nobody needs to know
            return NOTHING if self._published else Step(faults=(Fault("unexpected_message", sender),))
        for before, item, step in receipts:
            self._settlement.receipt(sender, item, step, before)
        for item, step in claims:
            self._settlement.claim(sender, item, step)
        waiting.discard(sender)
        if not waiting:
            self._unanswered.pop(peer, None)
        return self._decide(draws)

    def _decide(self, draws: Draws) -> Step:
        """Have what is lost sent again, once all peers that were asked have answered."""
        if self._published or any(self._unanswered.values()):
            return NOTHING
        sends: list[Send] = []
        orders: Counter[Peer] = Counter()
        for claimant, item, step in self._settlement.lost(self.out):
            if claimant == BOOTSTRAP:
                sends.append(self._begin(item, self._anybody(draws)))
            else:
                orders[claimant] += 1
                sends.append(Send(claimant, Message(messages.LOST, (item, step))))
        if self._unsettled:
            told = [[peer, count] for peer, count in sorted(orders.items())]
            sends.append(Send(CURATOR, Message(messages.RESOLVED, (self._unsettled, told))))
            self._unsettled = []
        return Step(tuple(sends))

    def _wake_at_s(self) -> float | None:
        times = [since_s + self._patience_s for since_s in self._probes.values()]
        if self._ready_by_s is not None:
            times.append(self._ready_by_s)
        return min(times, default=None)
