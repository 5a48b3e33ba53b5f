"""Bootstrap after enrolment: the barrier before the start, and the exclusion of peers.

Exclusion: the host watches over everybody (`watched`, `peer/watch.py`) and says who is silent, whatever that peer
holds. Bootstrap probes it; if it does not answer within `patience_s`, "out" is recorded, signed and sent to its live
neighbours. Each refuses the peer from then on and answers what it has received from it and which items it had passed
to peers that are out. When all have answered, `settlement.py` says which items are lost, and who passed them on last
and lives is told to send the same noised value elsewhere; nobody else is told anything. Bootstrap itself may have
to begin an item again that never left its start. While the curator is silent nobody is put out for a missing answer.

If fewer users would be left than the protocol needs (a ring needs all), or if the curator is silent, the run is
reported blocked, and goes on if the silent one comes back. Once the result is published nothing can get lost any more:
then users are only put out for never handing in their heads, of which the curator tells, and nobody is asked. A probe
then has `CLOSING` times `patience_s`: users who are done do not answer it, and the curator, which is asked for signs
of life meanwhile in case its word got lost, says that their heads came.

If fewer than `live_min` users are left, or the run cannot go on (`stops.py`), bootstrap stops it: it publishes why, and
all close their ledgers as after a result. A user that lives and withholds what it alone can give is put out too: what
it had and passed on when others are out (`inquiries.py`), and after the result its head, once it was spared often
enough that a lossy network does not explain it.

In a protocol with a decision (`protocols/decision.py`) bootstrap makes it once, when the curator has collected what all
who are in can give: it signs and publishes the survivors. Afterwards it excludes nobody without whom there could be no
result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Final

from p2pdp.core import messages
from p2pdp.core.draws import Draws
from p2pdp.core.endings import (
    COMPLAINT,
    DISPUTE,
    STALLED,
    STOP,
    STOPPED,
    UNEXPECTED,
    UNPROVEN,
    Complaint,
    Stop,
    Stopped,
    Waiting,
)
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.messages import BLOCKED, EXCLUDED, OnePeer, Settling
from p2pdp.core.states import Transitions, after
from p2pdp.core.step import NOTHING, Fault, Message, Output, Send, Step
from p2pdp.protocols.contract import Start
from p2pdp.protocols.decision import COLLECTED, SURVIVORS, Absent, Deciding
from p2pdp.services.awaited import Awaited
from p2pdp.services.inquiries import Inquiries
from p2pdp.services.settlement import Settlement
from p2pdp.services.stops import Stops, too_few

PROGRESS: Final = "progress"  # how many live users are ready, whether they go, and the first users they wait for
CLOSING: Final = 1.25  # with a patience of the curator, and half a one if it starts again, within three of the result
SPARED_MAX: Final = 2  # for a missing head: three patiences after the result its user is out

Sign = Callable[[Peer], bytes]
Opening = Callable[[Draws], Sequence[Send]]


class Phase(Enum):
    GATHERING = "users, or the curator, are not ready yet"
    RUNNING = "the protocol runs, and everybody is watched"
    CLOSING = "the result is out, or there will be none; ledgers are still to be closed"
    OVER = "every ledger is closed"


class Change(Enum):
    ALL_READY = "everybody who is not out is ready"
    PUBLISHED = "the curator has published the result"
    STOPPED = "bootstrap said that there will be none"
    ALL_CLOSED = "the curator has the heads of all ledgers"


TRANSITIONS: Final[Transitions[Phase, Change]] = {
    (Phase.GATHERING, Change.ALL_READY): Phase.RUNNING,
    (Phase.RUNNING, Change.PUBLISHED): Phase.CLOSING,
    (Phase.GATHERING, Change.STOPPED): Phase.CLOSING,
    (Phase.RUNNING, Change.STOPPED): Phase.CLOSING,
    (Phase.CLOSING, Change.ALL_CLOSED): Phase.OVER,
}


class Bootstrap:
    def __init__(
        self,
        n: int,
        neighbours: Callable[[Peer], Sequence[Peer]],
        starts: tuple[Start, ...],
        *,
        needed: int,
        patience_s: float,
        ready_timeout_s: float,
        sign_exclusion: Sign,
        opening: Opening = lambda _draws: (),
        deciding: Deciding | None = None,
        live_min: int = 0,
    ) -> None:
        """`opening` makes what a protocol has bootstrap send to the users when they go, drawn in that moment.

        The run waits if fewer than `needed` users would be left, and is stopped if fewer than `live_min` are;
        `deciding` is there in protocols with a decision.
        """
        self._deciding = deciding
        self._survivors: frozenset[Peer] | None = None  # once they are decided
        self._opening = opening
        self._neighbours = neighbours
        self._needed = needed
        self._patience_s = patience_s
        self._ready_timeout_s = ready_timeout_s
        self._sign_exclusion = sign_exclusion
        self._live: set[Peer] = set(range(n))
        self._ready: set[Peer] = set()
        self._awaited = Awaited(n)  # of those who are live, until they are ready
        self._ready_by_s: float | None = None
        self._phase = Phase.GATHERING
        self._watched: set[Peer] = set()
        self._probes: dict[Peer, float] = {}  # who is under suspicion -> since when
        self._inquiries = Inquiries(patience_s)
        self._spared: Counter[Peer] = Counter()  # since they live, though their heads are missing
        self._blocked: set[Peer] = set()  # silent, and the run cannot go on without them
        self._live_min = live_min
        self._stops = Stops(patience_s, curator_knows=not starts)
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
        """Return all who take part, from the go until the result is published, and then the curator during probes."""
        return {CURATOR} if self._published and self._probes else self._watched

    def start(self, now_s: float, draws: Draws) -> Step:
        self._ready_by_s = now_s + self._ready_timeout_s
        return Step(wake_at_s=self._wake_at_s())

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step:
        kind = message.type
        if sender in self.out:
            return NOTHING
        self._blocked.discard(sender)
        if kind == COMPLAINT:
            return self._complained(sender, Complaint(*message.fields), now_s, draws)
        if kind == STALLED:
            self._stops.stands(sender, Waiting(*message.fields).users, now_s)
            return self._stand_still(now_s)
        if kind == messages.READY:
            self._ready.add(sender)
            self._awaited.users.discard(sender)
            self._inquiries.ready(sender, now_s)
            return self._go(draws).then(self._progress())
        if kind == messages.SILENT:
            return self._silent(sender, OnePeer(*message.fields).peer, now_s)
        if kind in (messages.ALIVE, messages.SEEN):
            return self._alive(sender, now_s) if kind == messages.ALIVE else self._seen(sender, message, draws)
        if sender in (CURATOR, BOOTSTRAP) and kind == messages.SPARED:  # its head came after all, or it is heard again
            self._blocked.discard(heard := OnePeer(*message.fields).peer)
            if not self._inquiries.presses(heard):
                self._probes.pop(heard, None)
            return NOTHING
        if sender == CURATOR:
            return self._from_curator(message)
        return Step(faults=(Fault(UNEXPECTED, sender),))

    def _from_curator(self, message: Message) -> Step:
        kind = message.type
        if kind == messages.DONE and self._phase in (Phase.RUNNING, Phase.CLOSING):
            if self._phase is Phase.RUNNING:  # else it published before it heard that the run was stopped
                self._phase = after(TRANSITIONS, self._phase, Change.PUBLISHED)
                self._forget()
            return NOTHING
        if kind == COLLECTED and self._deciding is not None:
            return self._decide_survivors(Absent(*message.fields).absent, self._deciding)
        if kind == messages.OVER and self._phase is Phase.CLOSING:
            self._phase = after(TRANSITIONS, self._phase, Change.ALL_CLOSED)
            return NOTHING
        return Step(faults=(Fault(UNEXPECTED, CURATOR),))

    def excluded(self, peer: Peer, now_s: float, draws: Draws) -> Step:
        return NOTHING

    def wake(self, now_s: float, draws: Draws) -> Step:
        step = NOTHING
        if self._ready_by_s is not None and now_s >= self._ready_by_s:
            self._ready_by_s = None
            for peer in sorted(self._awaited.users | ({CURATOR} - self._ready)):
                step = step.then(self._exclude(peer, now_s))
            step = step.then(self._go(draws), self._progress())
        for peer, since_s in sorted(self._probes.items()):
            if now_s >= since_s + self._answer_s and self._probes.pop(peer, None) is not None:
                step = step.then(self._gave_no_sign(peer, now_s))
        step = step.then(*(self._probe(user, now_s) for user in self._inquiries.press(now_s)))
        stopped = None if self._published else self._stops.due(now_s)
        if stopped is not None:
            step = step.then(self._stop(stopped))
        return step.then(self._decide(draws), Step(wake_at_s=self._wake_at_s()))

    # The barrier

    def _progress(self) -> Step:
        fields = (len(self._live) - len(self._awaited.users), self._phase is not Phase.GATHERING, self._awaited.first())
        return Step(outputs=(Output(PROGRESS, fields, recorded=False),))

    def _go(self, draws: Draws) -> Step:
        if self._phase is not Phase.GATHERING or self._awaited.users or CURATOR not in self._ready:
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
            return Step(faults=(Fault(UNEXPECTED, sender),))
        if sender != (CURATOR if self._published else BOOTSTRAP) or peer in self._probes:
            return NOTHING
        if peer != CURATOR and peer not in self._live:
            return NOTHING
        if self._published and self._spared[peer] >= SPARED_MAX:
            return self._exclude(peer, now_s)
        return self._probe(peer, now_s)

    def _probe(self, peer: Peer, now_s: float) -> Step:
        self._probes[peer] = now_s
        self._inquiries.probed(peer)
        return Step(sends=(Send(peer, Message(messages.PROBE)),), wake_at_s=self._wake_at_s())

    def _alive(self, peer: Peer, now_s: float) -> Step:
        suspected = self._probes.pop(peer, None) is not None
        if self._inquiries.withholds(peer):
            return self._exclude(peer, now_s)
        if suspected and self._published:
            self._spared[peer] += 1
        return Step(sends=(Send(CURATOR, Message(messages.SPARED, (peer,))),) if suspected and self._published else ())

    @property
    def _answer_s(self) -> float:
        return self._patience_s * (CLOSING if self._published else 1.0)

    def _gave_no_sign(self, peer: Peer, now_s: float) -> Step:
        """Put out who did not answer a probe, unless the result may be out: then users are done and answer none."""
        if self._inquiries.presses(peer) and (CURATOR in self._probes or CURATOR in self._blocked):
            self._probes[peer] = now_s
            return NOTHING
        return self._exclude(peer, now_s)

    # Exclusion

    def _exclude(self, peer: Peer, now_s: float) -> Step:
        if not is_user(peer) or not (self._published or self._does_without(peer)):
            self._blocked.add(peer)
            return Step(outputs=(Output(BLOCKED, (peer,)),))
        self._stops.out(peer, now_s)
        self._probes.pop(peer, None)  # else it would be put out once more
        self.out.append(peer)
        for users in (self._live, self._awaited.users, self._watched):
            users.discard(peer)
        signature = self._sign_exclusion(peer)
        order = Message(messages.OUT, (peer, signature))
        asked = [] if self._published else [who for who in self._neighbours(peer) if who in self._live]
        self._inquiries.forget(peer)
        if not self._published:
            self._inquiries.ask(peer, {CURATOR, *asked}, self._ready, now_s)
            self._unsettled.append(peer)
        for item, user in self._began_at.items():
            if user == peer and self._phase is not Phase.GATHERING:
                self._settlement.claim(BOOTSTRAP, item, 0)
        sends = tuple(Send(who, order) for who in (CURATOR, *asked, peer))
        step = Step(sends, outputs=(Output(EXCLUDED, (peer, signature)),))
        if len(self._live) < self._live_min and not self._published:
            return step.then(self._stop(too_few(self.out)))
        return step if self._published else step.then(Step(wake_at_s=self._wake_at_s()))

    # The end without a result

    def _forget(self) -> None:  # watch and wait for nobody any more
        self._ready_by_s = None
        for held in (self._watched, self._probes, self._inquiries):
            held.clear()

    def _stop(self, why: Stopped) -> Step:
        if self._published:
            return NOTHING
        self._phase = after(TRANSITIONS, self._phase, Change.STOPPED)
        self._forget()
        order = Message(STOP, Stop(why.reason))
        sends = tuple(Send(peer, order) for peer in (CURATOR, *sorted(self._live)))
        return Step(sends, outputs=(Output(STOPPED, why),))

    def _complained(self, sender: Peer, complaint: Complaint, now_s: float, draws: Draws) -> Step:
        """Put out who sent a role what nobody honest sends; of others it is not known who lies (`stops.py`)."""
        about, fault = complaint
        if about == sender or not (is_user(about) or is_user(sender)):
            return Step(faults=(Fault(UNEXPECTED, sender),))
        if (about if is_user(about) else sender) not in self._live:
            return NOTHING
        if fault == UNPROVEN:  # nothing comes of it but that it is known
            return Step(faults=(Fault(UNPROVEN, about),))
        told = Step(faults=(Fault("refused_message", about),))
        if not is_user(sender) and fault == messages.MALFORMED:
            if self._published or self._does_without(about):
                gathering = self._phase is Phase.GATHERING  # then it may be the last one that was waited for
                excluded = told.then(self._exclude(about, now_s))
                return excluded.then(self._go(draws), self._progress()) if gathering else excluded
            return told.then(self._stop(Stopped(DISPUTE, [[sender, about]])))
        if not self._published:
            self._stops.disputed(sender, about, now_s, needless=fault == UNEXPECTED)
        return told.then(Step(wake_at_s=self._wake_at_s()))

    def _stand_still(self, now_s: float) -> Step:
        """Go on without whom alone the curator waits for, or stop the run, once it is known to stand still."""
        busy = self._blocked or self._probes or self._inquiries.open
        if self._phase is not Phase.RUNNING or busy or not self._stops.stands_still(self._live, now_s):
            return NOTHING
        withholding = [peer for peer in self._stops.withholding(self._live, now_s) if self._does_without(peer)]
        if withholding:
            return NOTHING.then(*(self._exclude(peer, now_s) for peer in withholding if self._does_without(peer)))
        return self._stop(self._stops.standstill(self._live, now_s))

    def _does_without(self, peer: Peer) -> bool:
        live = self._live - {peer}
        if self._survivors is None:
            return len(live) >= self._needed and (self._deciding is None or self._deciding.hides(live))
        return self._deciding is not None and self._deciding.recoverable(self._survivors, live)

    def _decide_survivors(self, absent: Sequence[Peer], deciding: Deciding) -> Step:
        """Decide once; whoever asks while others are out than it knows of hears of them, and asks again."""
        if self._phase is not Phase.RUNNING or self._survivors is not None or list(absent) != sorted(self.out):
            return NOTHING
        self._survivors = frozenset(self._live)
        decision = (sorted(self.out), deciding.sign(sorted(self.out)))
        sends = tuple(Send(peer, Message(SURVIVORS, decision)) for peer in (CURATOR, *sorted(self._live)))
        return Step(sends, outputs=(Output(SURVIVORS, decision),))

    def _seen(self, sender: Peer, message: Message, draws: Draws) -> Step:
        peer, receipts, claims = Settling(*message.fields)
        if not self._inquiries.answered(sender, peer):  # nobody asked, or the result is out and nobody needs to know
            return NOTHING if self._published else Step(faults=(Fault(UNEXPECTED, sender),))
        for before, item, step in receipts:
            self._settlement.receipt(sender, item, step, before)
        for item, step in claims:
            self._settlement.claim(sender, item, step)
        if not self._inquiries.presses(sender):
            self._probes.pop(sender, None)
        return self._decide(draws)

    def _decide(self, draws: Draws) -> Step:
        """Have what is lost sent again, once all peers that were asked have answered."""
        if self._published or self._inquiries.open:
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
        times = [since_s + self._answer_s for since_s in self._probes.values()]
        stop_at_s = None if self._published else self._stops.wake_at_s
        times += filter(None, (self._ready_by_s, self._inquiries.press_at_s, stop_at_s))
        return min(times, default=None)
