"""The curator: collects totals, publishes what the spec says, and keeps the heads of all ledgers.

Guarantee: it publishes once, when every item's total is here (walks), every user has finished (gossip, and shuffling
once no report is still to come), or the collector of a protocol with a decision (`protocols/decision.py`) has what the
survivors' result takes; and it does not name who sent a total. It closes when the head of every user's ledger is here,
except of those who are out, and bootstrap's too. Users that do not hand in their heads are reported to bootstrap
`patience_s` after the result. Until then bootstrap itself watches over everybody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final

from p2pdp.core import messages
from p2pdp.core.draws import Draws
from p2pdp.core.endings import COMPLAINT, STALLED, STOP, UNEXPECTED, Complaint
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import HEAD, TOTAL, EndedReport, Exclusion, Item, OnePeer, Resolution, SkeletonPiece
from p2pdp.core.states import Transitions, after
from p2pdp.core.step import NOTHING, Fault, Message, Output, Send, Step
from p2pdp.protocols.decision import COLLECTED, SURVIVORS, Collector, Survivors


class Phase(Enum):
    COLLECTING = "totals, results or reports are still to come"
    CLOSING = "the result is out, or there will be none; heads of users' ledgers are still to come"
    OVER = "every user's head is here; bootstrap's is still to come"
    FINISHED = "every head is here"


class Change(Enum):
    PUBLISHED = "all that the result is made of is here"
    STOPPED = "bootstrap said that there will be none"
    USERS_CLOSED = "the last user that is not out handed in its head"
    BOOTSTRAP_CLOSED = "bootstrap handed in its head"


TRANSITIONS: Final[Transitions[Phase, Change]] = {
    (Phase.COLLECTING, Change.PUBLISHED): Phase.CLOSING,
    (Phase.COLLECTING, Change.STOPPED): Phase.CLOSING,
    (Phase.CLOSING, Change.USERS_CLOSED): Phase.OVER,
    (Phase.OVER, Change.BOOTSTRAP_CLOSED): Phase.FINISHED,
}

SKELETON_BYTES_MAX: Final = 2**32
_AT_THE_END: Final = (HEAD, messages.SKELETON)

Open = Callable[[bytes], tuple[int, Any] | None]  # sealed report -> its name and itself; None if it is none of this run


class Reports:
    """Sealed reports that users hand in, and whether all of them are here.

    A report is known by the name inside its seal, which its user drew: a second one of the same name is not counted.
    When somebody is put out, reports that it held may come once more from whoever had passed them to it; bootstrap says
    how many orders to do so it gave to whom (`RESOLVED`), and until it has, and each was heeded, the result waits.
    """

    def __init__(self, open_report: Open) -> None:
        self._open = open_report
        self._held: dict[int, Any] = {}  # name -> report
        self._came: dict[Peer, list[tuple[int, int]]] = {}  # sender -> by which hop, and at which step
        self._unresolved: set[Peer] = set()
        self._out: set[Peer] = set()
        self._orders: Counter[Peer] = Counter()  # that were not heeded yet; less than none where it was heeded before

    def take(self, sender: Peer, message: Message) -> int | Fault | None:
        """Return the name of a new report; None for one that came before and was sent again after an exclusion."""
        hop, step = EndedReport(*message.fields)
        found = self._open(message.value)
        if found is None:
            return Fault("bad_report", sender)
        self._came.setdefault(sender, []).append((hop, step))
        name, report = found
        if name in self._held:
            return None if self._out else Fault("doubled_report", sender)
        self._held[name] = report
        return name

    def out(self, peer: Peer) -> None:
        self._out.add(peer)
        self._unresolved.add(peer)

    def resolved(self, peers: Sequence[Peer], orders: Sequence[Sequence[int]]) -> None:
        self._unresolved.difference_update(peers)
        self._orders.update(dict(map(tuple, orders)))  # type: ignore[arg-type]

    def heeded(self, peer: Peer) -> None:
        self._orders[peer] -= 1

    @property
    def complete(self) -> bool:
        return not self._unresolved and not self.unheeded

    @property
    def unheeded(self) -> list[Peer]:
        """Return who was told to send again what is lost, and did not say yet that it has."""
        return sorted(peer for peer, count in self._orders.items() if count > 0 and peer not in self._out)

    def report(self, name: int) -> Any:
        return self._held[name]

    def receipts_from(self, peer: Peer) -> list[list[int]]:
        return sorted([hop, hop, step] for hop, step in self._came.get(peer, []))

    def values(self) -> list[Any]:
        """Return the reports in the order of their names, which is independent of who sent them."""
        return [report for _, report in sorted(self._held.items())]


class Curator:
    def __init__(
        self,
        n: int,
        items: int | None,
        publish: Callable[[Sequence[Any]], Any],
        patience_s: float,
        reports: Reports | None = None,
        collector: Collector | None = None,
    ) -> None:
        """`items` is the number of totals to come; None where each user says that it has finished instead.

        With a `collector` nothing of both is waited for.
        """
        self._reports = reports
        self._collector = collector
        self._asked: list[Peer] | None = None  # who was absent when the decision was last asked for
        self._users = set(range(n))
        self._items = items
        self._publish = publish
        self._patience_s = patience_s
        self._totals: dict[int, tuple[Peer, int, Any]] = {}
        self._values: dict[Peer, Any] = {}  # of those who have finished, with their value if it is to be published
        self._heads: set[Peer] = set()  # of whom it has the head
        self._complained: set[Peer] = set()  # since their heads are missing
        self._complaints: set[Complaint] = set()  # that bootstrap was told of
        self._pieces: dict[Peer, int] = {}  # where the last piece of a skeleton began
        self._advanced: Counter[Peer] = Counter()
        self.published: Any = None
        self._phase = Phase.COLLECTING

    @property
    def finished(self) -> bool:
        return self._phase is Phase.FINISHED

    def start(self, now_s: float, draws: Draws) -> Step:
        return Step(sends=(Send(BOOTSTRAP, Message(messages.READY)),))

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step:
        if sender == CURATOR and message.type == COMPLAINT:
            return self._complain(*message.fields)
        if sender == CURATOR and message.type == STALLED:
            return Step((Send(BOOTSTRAP, message),))
        step = self._receive(sender, message, now_s, draws)
        kinds = {kind for kind, peer in step.faults if peer == sender}
        if sender in self._users and kinds & {UNEXPECTED, messages.MALFORMED}:
            step = step.then(self._complain(sender, min(kinds)))
        return step

    def _complain(self, peer: Peer, fault: str) -> Step:
        """Tell bootstrap what was wrong, once of each fault of each peer: a harmless one must not hide another."""
        complaint = Complaint(peer, fault)
        if complaint in self._complaints or peer == BOOTSTRAP:
            return NOTHING
        self._complaints.add(complaint)
        return Step((Send(BOOTSTRAP, Message(COMPLAINT, complaint)),))

    @property
    def waits_for(self) -> list[Peer]:
        """Return who owes what the others have handed in, or has not heeded an order to send something again.

        Nobody does where it is not a user's own, as a total is not.
        """
        if self._phase is not Phase.COLLECTING:
            return []
        if self._collector is not None:
            return sorted(self._collector.waits_for)
        owing = self._users - self._values.keys()
        if not owing and self._reports is not None:
            return self._reports.unheeded
        return sorted(owing) if self._values else []

    def _receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step:
        if self._collector is not None and sender in self._users and message.type not in _AT_THE_END:
            return self._found(self._collector.take(sender, message), sender, now_s)
        if message.type == TOTAL:
            return self._total(sender, message, now_s)
        if message.type == messages.REPORT:
            return self._report(sender, message)
        if message.type == messages.HEEDED:
            return self._heeded(sender, now_s)
        if message.type == messages.FINISHED:
            return self._finished_by(sender, message, now_s)
        if message.type == HEAD:
            return self._head(sender)
        if message.type == messages.SKELETON:
            return self._piece(sender, SkeletonPiece(*message.fields).offset)
        if sender == BOOTSTRAP:
            return self._from_bootstrap(message, now_s, draws)
        if sender == CURATOR and message.type == messages.OPENED_REPORT:
            return self._published_if_complete(now_s)
        return Step(faults=(Fault("unexpected_message", sender),))

    def _from_bootstrap(self, message: Message, now_s: float, draws: Draws) -> Step:
        if message.type == messages.OUT:
            return self.excluded(Exclusion(*message.fields).peer, now_s, draws)
        if message.type == messages.PROBE:
            return Step(sends=(Send(BOOTSTRAP, Message(messages.ALIVE)),))
        if message.type == messages.SPARED:
            self._complained.discard(OnePeer(*message.fields).peer)
            return Step(wake_at_s=now_s + self._patience_s)
        if message.type == messages.RESOLVED:
            return self._resolved(message, now_s)
        if message.type == STOP:
            return self._stop(now_s)
        if message.type == SURVIVORS and self._collector is not None:
            return self._found(self._collector.decided(Survivors(*message.fields).absent), BOOTSTRAP, now_s)
        return NOTHING if message.type == messages.GO else Step(faults=(Fault("unexpected_message", BOOTSTRAP),))

    def _resolved(self, message: Message, now_s: float) -> Step:
        if self._reports is None:
            return NOTHING
        self._reports.resolved(*Resolution(*message.fields))
        return self._published_if_complete(now_s) if self._values else NOTHING

    def _found(self, fault: str | None, sender: Peer, now_s: float) -> Step:
        """Go on with what the collector has got, unless it refused it."""
        return self._collect(now_s) if fault is None else Step(faults=(Fault(fault, sender),))

    def _collect(self, now_s: float) -> Step:
        """Ask for the decision if all that it takes is here, or publish if all that the result takes is."""
        collector = self._collector
        if collector is None or self._phase is not Phase.COLLECTING:
            return NOTHING
        if collector.complete:
            return self._publish_result(self._publish([collector.result()]), now_s)
        absent = collector.collected
        if absent is None or absent == self._asked:
            return NOTHING
        self._asked = absent
        return Step(sends=(Send(BOOTSTRAP, Message(COLLECTED, (absent,))),))

    def _report(self, sender: Peer, message: Message) -> Step:
        """Open a report and send it to itself, so that its ledger holds what it came to know."""
        if self._reports is None or sender not in self._users:
            return Step(faults=(Fault("unexpected_message", sender),))
        found = self._reports.take(sender, message)
        if isinstance(found, Fault):
            return Step(faults=(found,))
        if found is None:
            return NOTHING
        opened = Message(messages.OPENED_REPORT, (found,), self._reports.report(found))
        return Step(sends=(Send(CURATOR, opened),))

    def _heeded(self, sender: Peer, now_s: float) -> Step:
        if self._reports is None or sender not in self._users:
            return Step(faults=(Fault("unexpected_message", sender),))
        self._reports.heeded(sender)
        return self._published_if_complete(now_s) if self._values else NOTHING

    def _total(self, sender: Peer, message: Message, now_s: float) -> Step:
        item, step = Item(*message.fields)
        if self._items is None or item in self._totals or sender not in self._users:
            return Step(faults=(Fault("unexpected_message", sender),))
        self._totals[item] = (sender, step, message.value)
        return self._published_if_complete(now_s)

    def _finished_by(self, sender: Peer, message: Message, now_s: float) -> Step:
        if self._items is not None or sender in self._values or sender not in self._users:
            return Step(faults=(Fault("unexpected_message", sender),))
        self._values[sender] = message.value
        return self._published_if_complete(now_s)

    def _published_if_complete(self, now_s: float) -> Step:
        complete = self._users <= self._values.keys() if self._items is None else len(self._totals) == self._items
        if (
            self._phase is not Phase.COLLECTING
            or not complete
            or (self._reports is not None and not self._reports.complete)
        ):
            return NOTHING
        values = [] if self._reports is None else self._reports.values()
        values += [self._totals[key][2] for key in sorted(self._totals)]
        values += [value for _, value in sorted(self._values.items()) if value is not None]
        return self._publish_result(self._publish(values), now_s)

    def _publish_result(self, published: Any, now_s: float) -> Step:
        self.published = published
        self._phase = after(TRANSITIONS, self._phase, Change.PUBLISHED)
        result = Message(messages.RESULT, (), self.published)
        sends = tuple(Send(user, result) for user in sorted(self._users))
        return Step(
            sends=(*sends, Send(BOOTSTRAP, Message(messages.DONE))),
            outputs=(Output(messages.RESULT, (), self.published),),
            wake_at_s=now_s + self._patience_s,
        ).then(self._over())

    def _stop(self, now_s: float) -> Step:
        if self._phase is not Phase.COLLECTING:
            return NOTHING  # the result is out
        self._phase = after(TRANSITIONS, self._phase, Change.STOPPED)
        return Step(wake_at_s=now_s + self._patience_s).then(self._over())

    def _piece(self, sender: Peer, offset: int) -> Step:
        """Take note that a user hands in its skeleton; the piece is in the ledger, from where the folder gets it."""
        if offset > self._pieces.get(sender, -1):
            self._pieces[sender] = offset
            self._advanced[sender] += 1
        return NOTHING

    def _head(self, sender: Peer) -> Step:
        self._heads.add(sender)
        spared = (Send(BOOTSTRAP, Message(messages.SPARED, (sender,))),) if sender in self._complained else ()
        return Step(spared).then(self._over())

    def _over(self) -> Step:
        """Go on as far as the heads that are here allow."""
        step = NOTHING
        if self._phase is Phase.CLOSING and self._users <= self._heads:
            self._phase = after(TRANSITIONS, self._phase, Change.USERS_CLOSED)
            step = Step(sends=(Send(BOOTSTRAP, Message(messages.OVER)),))
        if self._phase is Phase.OVER and BOOTSTRAP in self._heads:
            self._phase = after(TRANSITIONS, self._phase, Change.BOOTSTRAP_CLOSED)
        return step

    def wake(self, now_s: float, draws: Draws) -> Step:
        """Report users whose head is missing long after the result: they may be gone for good."""
        if self._phase is Phase.COLLECTING:
            return NOTHING
        owing = self._users - self._heads
        missing = sorted(owing - self._complained - {user for user in owing if self._advances(user)})
        self._complained.update(missing)
        sends = tuple(Send(BOOTSTRAP, Message(messages.SILENT, (user,))) for user in missing)
        return Step(sends=sends, wake_at_s=now_s + self._patience_s if owing else None)

    def _advances(self, user: Peer) -> bool:
        """Return whether a user handed in more of its skeleton since this was asked last, as far as one may be long."""
        told = self._advanced.pop(user, 0) > 0
        return told and self._pieces[user] < SKELETON_BYTES_MAX

    def excluded(self, peer: Peer, now_s: float, draws: Draws) -> Step:
        self._users.discard(peer)
        receipts = sorted([item, item, step] for item, (sender, step, _) in self._totals.items() if sender == peer)
        if self._reports is not None:
            self._reports.out(peer)
            receipts = self._reports.receipts_from(peer)
        answer = Send(BOOTSTRAP, Message(messages.SEEN, (peer, receipts, [])))
        published = self._published_if_complete(now_s) if self._values else NOTHING
        if self._collector is not None:
            self._collector.excluded(peer)
            published = self._collect(now_s)
        return Step((answer,)).then(published, self._over())
