"""One peer's brain: a machine behind links and a ledger.

Guarantee: every call into the machine, with its time, and everything the machine draws, chooses
and sends is in the ledger before any frame leaves. A host made from stored ledgers first compares
numbers with its peers, without drawing or sending anything new; only when none of them proves that
the disk was rolled back does it run its records again, ending in the state it had, and sends again
what was not acknowledged, with the same noised values.

The caller owes: writes before frames (see `Effects`), one call at a time, `now_s` that never falls.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Final

from p2pdp.core import messages
from p2pdp.core.draws import Sampler
from p2pdp.core.endings import COMPLAINT, STALLED, UNPROVEN, Complaint
from p2pdp.core.events import Event, Exchanger, Machine, Passer, Preparer, Received, Started, Watcher, Woken, tell
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.step import Fault, Message, Send, Step
from p2pdp.ledger.bodies import RefusedMessage
from p2pdp.ledger.journal import VIEW, Journal
from p2pdp.ledger.records import CLOSED, OPENED, OWN, RECEIVED, REFUSED, STARTED, WOKEN
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.draws import Meetings, RecordedDraws
from p2pdp.peer.effects import Effects, Entropy, HopEffects, Timing
from p2pdp.peer.fast_exchange import FastExchange
from p2pdp.peer.fast_path import FastPath
from p2pdp.peer.lifecycle import Ending, prepare, refused, run_again
from p2pdp.peer.link import Link
from p2pdp.peer.meanwhile import Meanwhile
from p2pdp.peer.outbox import FaultLog, Outbox
from p2pdp.peer.payloads import Arrival, Check, read_message
from p2pdp.peer.peers import Peers
from p2pdp.peer.pieces import NO_SHELF, Shelf
from p2pdp.peer.standstill import Standstill
from p2pdp.peer.tap import Tap
from p2pdp.peer.watch import Watch
from p2pdp.wire.codec import pack_message

REFUSED_MAX: Final = 16  # messages of one peer that are recorded as refused; a link that has more stays where it is


class Host:
    def __init__(
        self,
        credentials: Credentials,
        machine: Machine,
        journal: Journal,
        sampler: Sampler,
        entropy: Entropy,
        *,
        timing: Timing | None = None,
        check: Check,
        facts: tuple[object, ...] = (),
        skeleton: Callable[[], bytes] | None = None,
        watcher: Watcher | None = None,
        passer: Passer | Exchanger | None = None,
        standstill: Standstill | None = None,
        tap: Tap | None = None,
        shelf: Shelf = NO_SHELF,  # for what is on its way
    ) -> None:
        """`facts` are public and open the ledger; `skeleton` returns this peer's own, once closed, to be handed in.

        A `watcher` is a machine whose host watches over peers, and a `passer` a machine for whose usual messages there
        is a fast path. A `tap` sees every frame that does not take it. A `standstill` watches whether anything comes.
        """
        self._facts, self._credentials, self._entropy = facts, credentials, entropy
        self._machine, self._standstill = machine, standstill
        self._journal, self.take_writes = journal, journal.take_writes  # beside those among effects, if it gathers
        self._timing, self._check = timing or Timing(), check
        self._peers = Peers(credentials, entropy, self._timing)
        self._peers.tap, self._peers.shelf = tap, shelf
        self._watch = None if watcher is None else Watch(watcher, self._peers.link, self._timing.patience_s)
        meetings = Meetings(credentials, self._peers.channel)
        self._draws = RecordedDraws(journal, sampler, entropy, meetings, self._want_idle)
        self._fault_log = FaultLog(journal, entropy)
        self._outbox = Outbox(credentials.me, journal, self._peers, self._fault_log, entropy)
        self._fast: FastPath | FastExchange | None = None
        self.fast_frame: Callable[[bytes, float], HopEffects | None] | None = None  # None from it: see `full_frame`
        if isinstance(passer, Passer):
            self._fast = FastPath(credentials.me, passer, journal, self._peers, self._draws, entropy, self._want_idle)
        elif passer is not None:
            told = self._want_wake, self._outbox.carry_out
            self._fast = FastExchange(passer, journal, self._peers, self._draws, entropy, *told)
        if self._fast is not None:
            self.fast_frame = self._fast.take
        self.gathers = self._fast is not None and self._fast.gathers  # frames may wait, and go behind `take_writes`
        self._ending = Ending(journal, credentials, self._peers, skeleton)
        self._machine_wake_at_s: float | None = None
        self._machine_sleeps_until_s = 0.0
        self._rejoin_by_s: float | None = None
        self._refused: Counter[Peer] = Counter()
        self._unproven: set[Peer] = set()  # of whose unproven claims bootstrap was told
        self._nothing = 0, 0  # records and sends of what was wrong, or told to itself: no sign that anything moves
        self.fault_counts = self._fault_log.counts
        self.wants_idle = False  # for `idle`, when there is nothing else to do
        self.slowness = 1.0  # of this machine, as `Watch.look` takes it; what follows from it is recorded
        self.over = False  # its process need not go on
        self.meanwhile = Meanwhile(self._peers, self._read, self._effects)

    def begin(self, now_s: float) -> Effects:
        """Open a new ledger and start, or rejoin with a stored one, even if it has no event of the machine."""
        if self._journal.stored():
            prepare(self._journal, self._peers, self._credentials)
            self._rejoin_by_s = now_s + self._timing.rejoin_s
            if self._journal.stored()[-1].kind == CLOSED:
                self._ending.hand_in(now_s)
            self._peers.ask_all()
            if not self._peers.expected_hellos:
                self._rejoin(now_s)
        else:
            if self._journal.count == 0:
                roster = self._credentials.roster
                self._journal.append(OPENED, (VIEW, roster.run_id, self._credentials.me, roster.digest, *self._facts))
            self._event(STARTED, (now_s,), Started(), now_s)
        return self._effects(now_s)

    def frame(self, data: bytes, now_s: float) -> Effects:
        if self.fast_frame is None or (hop := self.fast_frame(data, now_s)) is None:
            return self.full_frame(data, now_s)
        return Effects(tuple(hop[0] or self.take_writes()), tuple(hop[1]), self._wake_at_s(now_s))

    def full_frame(self, data: bytes, now_s: float) -> Effects:
        """Take any frame, also one that the fast path has just left unfinished."""
        begun = None if self._fast is None else self._fast.unfinished()
        if isinstance(begun, Received):
            begun = tell(self._machine, begun, now_s, self._draws)
        if isinstance(begun, Step):
            self._carry(begun, now_s)
        elif (link := begun or self._peers.open(data)) is not None:
            self._read(link, now_s)
        if self._peers.silent and not self._peers.expected_hellos:
            self._rejoin(now_s)
        return self._effects(now_s)

    def _read(self, link: Link, now_s: float) -> None:
        """Take what was opened."""
        self._take(self._peers.read(link, now_s), now_s)
        self._complain_of(link.peer, now_s)

    def connected(self, peer: Peer, now_s: float) -> Effects:
        """Compare numbers with a peer on a new connection, then send again what it lacks."""
        self._catch_up()
        if self._credentials.knows(peer) and not self._peers.rolled_back:
            self._peers.ask(peer)
        return self._effects(now_s)

    def wake(self, now_s: float) -> Effects:
        self._catch_up()
        if self._peers.rolled_back:
            return self._effects(now_s)
        if self.meanwhile.works:
            self._peers.tick(now_s)
        elif self._peers.silent:
            if self._rejoin_by_s is not None and now_s >= self._rejoin_by_s:
                self._rejoin(now_s)
            else:
                self._peers.ask_again()
        else:
            self._peers.tick(now_s)
            if self._watch is not None and not self._journal.closed:
                self._watch_over(self._watch, now_s)
            if self._standstill is not None and self._lives:
                self._look_for_standstill(self._standstill, now_s)
            if (wake_at_s := self._machine_wake()) is not None and now_s >= wake_at_s:
                self._event(WOKEN, (now_s,), Woken(), now_s)
            if self.closed and not self._ending.handed_in:
                self._ending.hand_in(now_s)
        return self._effects(now_s)

    def idle(self, now_s: float) -> Effects:
        """Draw what is used up, and make the machine ready, when there is nothing else to do."""
        self.wants_idle = False
        if self._fast is not None:
            self._fast.report()
        if self._lives:
            self._draws.prepare()
            if isinstance(self._machine, Preparer):
                self._machine.prepare()
        return self._effects(now_s)

    def _catch_up(self) -> None:
        if self._fast is not None:
            self._fast.catch_up()

    def _want_idle(self) -> None:
        self.wants_idle = True

    def _want_wake(self, at_s: float) -> None:
        self._machine_wake_at_s = at_s

    @property
    def _lives(self) -> bool:  # takes and sends messages, and records them
        return not (self._peers.silent or self._peers.rolled_back or self._journal.closed)

    @property
    def proved(self) -> tuple[Peer | None, bool]:  # who the last frame was from, if authentic, and whether it had news
        return self._peers.proved, self._peers.fresh

    @property
    def stopped(self) -> bool:
        """Return whether its disk was rolled back: it must never draw again."""
        return self._peers.rolled_back

    @property
    def messages_sent(self) -> int:
        self._catch_up()
        return self._peers.messages_sent

    def heard(self, peer: Peer) -> bool:  # since this process began
        self._catch_up()
        return self._peers.link(peer).last_heard_s > 0.0

    @property
    def away(self) -> frozenset[Peer] | None:
        """Return who does not answer its watch; None while it watches nobody."""
        return None if self._watch is None else self._watch.away

    @property
    def learned(self) -> Any:
        """Return how far the machine's own model is (`protocols.learning.Learned`); None where the machine has none."""
        return getattr(self._machine, "learned", None)

    @property
    def closed(self) -> bool:
        return self._journal.closed and not self._peers.silent

    @property
    def done(self) -> bool:
        """Return whether it is closed and the curator has its head: the process may end."""
        return self.closed and self._ending.handed_in and not self._peers.link(CURATOR).in_flight

    # Events

    def _take(self, arrival: Arrival | None, now_s: float) -> None:
        if arrival is None or self._peers.rolled_back:
            return
        peer, packed, part, voucher = arrival
        message = read_message(packed, part)
        wrong = messages.MALFORMED if message is None else self._check(message)
        if self._journal.closed:
            if message is not None and wrong is None:
                self._peers.apply_after_close(peer, message, now_s)
            return
        if message is None or wrong is not None:
            self._refuse(arrival, wrong or messages.MALFORMED, now_s)
            return
        digest = self._peers.took(arrival, now_s)
        before = self._written
        self._journal.add(part, RECEIVED, now_s, peer, packed, voucher, digest=digest)
        self._tell(RECEIVED, Received(peer, message), now_s, before)

    def _refuse(self, arrival: Arrival, fault: str, now_s: float) -> None:
        """Record a message as refused, so that its number is taken, and tell the machine that, but not what it says."""
        peer, packed, part, voucher = arrival
        self._fault_log.add(Fault(fault, peer))
        self._peers.limits.refused(peer, now_s)
        if self._refused[peer] >= REFUSED_MAX:
            return
        self._refused[peer] += 1
        before = self._written
        self._peers.took(arrival, now_s)
        self._journal.add(part, REFUSED, now_s, peer, packed, voucher, fault)
        self._carry(tell(self._machine, refused(self._credentials.me, peer, fault), now_s, self._draws), now_s)
        self._moved_nothing(before)

    @property
    def _written(self) -> tuple[int, int]:
        return self._journal.count, self._peers.messages_sent

    def _moved_nothing(self, since: tuple[int, int]) -> None:
        """Leave out what was recorded and sent since then, where it is asked whether anything moves."""
        records, sends = self._written
        self._nothing = self._nothing[0] + records - since[0], self._nothing[1] + sends - since[1]

    def _complain_of(self, peer: Peer, now_s: float) -> None:
        """Have bootstrap told, once, of a peer that says without proof that we forgot something."""
        if peer in self._unproven or not self._lives or Fault(UNPROVEN, peer) not in self._peers.faults:
            return
        told = refused(self._credentials.me, peer, UNPROVEN)
        self._event(OWN, (now_s, pack_message(told.message)), told, now_s)

    def _event(self, kind: int, body: tuple[object, ...], event: Event, now_s: float, value: bytes = b"") -> None:
        """Record an event, tell the machine, and act on all it wants, messages to itself included."""
        if kind == WOKEN:
            self._machine_wake_at_s = None
        elif kind == REFUSED:  # in a replay
            self._refused[RefusedMessage(*body).sender] += 1  # type: ignore[arg-type]
        elif kind == OWN and isinstance(event, Received) and event.message.type == COMPLAINT:
            self._unproven.add(Complaint(*event.message.fields).peer)
        before = self._written
        self._journal.append(kind, body, value)
        self._tell(kind, event, now_s, before)

    def _tell(self, kind: int, event: Event, now_s: float, before: tuple[int, int]) -> None:
        """Tell the machine an event that is recorded; `before` says what was recorded and sent before it."""
        if isinstance(event, Received):
            self._peers.apply(event.sender, event.message, now_s)
        step = tell(self._machine, event, now_s, self._draws)
        sender = event.sender if isinstance(event, Received) else None
        if wrong := sender is not None and any(fault.peer == sender for fault in step.faults):
            self._peers.limits.refused(sender, now_s)
        self._carry(step, now_s)
        if wrong or kind == OWN:
            self._moved_nothing(before)

    def _carry(self, step: Step, now_s: float) -> None:
        """Act on all that the machine wants, and on what it wants when it gets its messages to itself."""
        self._to_myself(self._carry_out(step, now_s), now_s)
        if self._machine.finished and not self._journal.closed and not self._journal.replaying:
            self._ending.close()

    def _to_myself(self, sends: list[Send], now_s: float) -> None:
        me, told = self._credentials.me, deque[Received]()
        while sends or told:
            for _, message, _ in sends:
                self._outbox.to_itself(message, now_s)
                told.append(Received(me, message))
            event = told.popleft()
            self._peers.apply(me, event.message, now_s)
            sends = self._carry_out(tell(self._machine, event, now_s, self._draws), now_s)

    def _carry_out(self, step: Step, now_s: float) -> list[Send]:
        if step.wake_at_s is not None:
            self._machine_wake_at_s = step.wake_at_s
        return self._outbox.carry_out(step, now_s)

    def _watch_over(self, watch: Watch, now_s: float) -> None:
        """Poke peers that were not heard for a while; tell the machine who stays silent, and who is heard again."""
        if watch.was_away(now_s):
            self._machine_sleeps_until_s = now_s + self._timing.patience_s
        look = watch.look(now_s, self.slowness)
        told = [(messages.SILENT, peer) for peer in look.silent] + [(messages.SPARED, peer) for peer in look.back]
        for kind, peer in told:
            message = Message(kind, (peer,))
            self._event(OWN, (now_s, pack_message(message)), Received(self._credentials.me, message), now_s)
        for peer in look.quiet:
            self._peers.poke(peer)

    def _look_for_standstill(self, standstill: Standstill, now_s: float) -> None:
        """Say that nothing comes any more, unless bootstrap has not even got what it was told before."""
        records, sends = self._written
        due = standstill.look(records - self._nothing[0], sends - self._nothing[1], now_s)
        if not due or self._peers.link(BOOTSTRAP).in_flight:
            return
        told = Message(STALLED, (standstill.waits_for,))
        self._event(OWN, (now_s, pack_message(told)), Received(self._credentials.me, told), now_s)

    def _rejoin(self, now_s: float) -> None:
        """Run the records again and go on where they end, since nobody disagrees."""
        self._rejoin_by_s = None
        if self._peers.rolled_back:
            return
        if not run_again(self._journal, self._credentials.me, self._event):
            self._event(STARTED, (now_s,), Started(), now_s)
        self._peers.closed = self._journal.closed
        self._peers.resume(now_s)
        if self._watch is not None:
            self._watch.begin_anew()
        if self._standstill is not None:
            self._standstill.begin_anew()
        self._machine_sleeps_until_s = now_s + self._timing.patience_s

    def _effects(self, now_s: float) -> Effects:
        peers = self._peers
        self._fault_log.take(peers.faults)
        frames, peers.frames = tuple(peers.frames), []
        writes, faults = tuple(self._journal.take_writes()), self._fault_log.take_new()
        self.over = peers.rolled_back or (self._journal.closed and self.done)
        if self._fast is not None:
            self._fast.clear = self._lives and (self._machine_wake_at_s is None or self._fast.wakes)
        return Effects(writes, frames, self._wake_at_s(now_s), self._outbox.take_outputs(), faults)

    def _machine_wake(self) -> float | None:
        """Return when the machine wants to be woken; after a restart only once its peers had time to answer."""
        at_s = None if self._journal.closed else self._machine_wake_at_s
        return at_s if at_s is None else max(at_s, self._machine_sleeps_until_s)

    def _wake_at_s(self, now_s: float) -> float | None:
        peers = self._peers
        if peers.rolled_back:
            return None
        if self.meanwhile.works:
            return peers.acknowledgements.wake_at_s
        if peers.silent:
            retry_s = now_s + self._timing.resend_s / 4  # so often that hardly any loss leaves all unanswered
            return None if self._rejoin_by_s is None else min(retry_s, self._rejoin_by_s)
        if self._journal.closed and not self._ending.handed_in:
            return now_s  # the skeleton is read when what was written here is stored
        times = [peers.acknowledgements.wake_at_s, self._machine_wake()]
        if self._watch is not None and not self._journal.closed:
            times.append(self._watch.wake_at_s(now_s))
        if self._standstill is not None and self._lives:
            times.append(self._standstill.wake_at_s(now_s))
        return min((at_s for at_s in times if at_s is not None), default=None)
