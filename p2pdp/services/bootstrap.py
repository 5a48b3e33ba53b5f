"""Bootstrap after enrolment: the barrier before the start, and who is out.

Exclusion (design section 5): a guardian says that a peer is silent; bootstrap probes it; if it does not
answer within `patience_s`, "out" is recorded, signed and sent to its live neighbours. Each refuses the peer
from then on and answers what it has received from it and which items it had passed to peers that are out.
When all have answered, `settlement.py` says which items are lost, and their last live guardians are told to
send the same noised value elsewhere. A neighbour that does not answer is treated in the same way. Bootstrap
itself is the guardian of items that never left their start, and takes the place of guardians who are out.

A ring cannot go round: the run is reported blocked, and goes on if the silent user comes back. The same
holds where the curator is silent, or where nobody would be left. Once the result is published nothing can
get lost any more: then users are only put out for never handing in their heads, and nobody is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from p2pdp.core import messages
from p2pdp.core.draws import Draws
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.step import NOTHING, Custody, Fault, Message, Output, Send, Step
from p2pdp.protocols.contract import Start
from p2pdp.services.settlement import Settlement, Verdict

EXCLUDED: Final = "excluded"
BLOCKED: Final = "blocked"

Sign = Callable[[Peer], bytes]
OnReady = Callable[[int, bool], None]
Opening = Callable[[Draws], Sequence[Send]]


@dataclass(slots=True)
class _Probe:
    """A peer under suspicion: since when, and who wants to know."""

    since_s: float
    askers: set[Peer] = field(default_factory=set)


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
        on_ready: OnReady = lambda _count, _going: None,
    ) -> None:
        """`opening` is what a protocol has bootstrap tell the users when they go, drawn in that moment.

        `on_ready` is told how many live users are ready, and whether they go, each time that it may have changed.
        """
        self._opening = opening
        self._on_ready = on_ready
        self._neighbours = neighbours
        self._reroutes = reroutes
        self._patience_s = patience_s
        self._ready_timeout_s = ready_timeout_s
        self._sign_exclusion = sign_exclusion
        self._live: set[Peer] = set(range(n))
        self._ready: set[Peer] = set()
        self._ready_by_s: float | None = None
        self._going = False
        self._done = False
        self._over = False
        self._probes: dict[Peer, _Probe] = {}
        self._unanswered: dict[Peer, dict[Peer, float]] = {}  # who is out -> who has still to answer, since when
        self._settlement = Settlement()
        self._unsettled: list[Peer] = []  # who is out, and what became of what it held is not decided
        self._began_at: dict[int, Peer] = {start.item: start.user for start in starts}
        self.out: list[Peer] = []

    @property
    def finished(self) -> bool:
        return self._over

    def start(self, now_s: float, draws: Draws) -> Step:
        self._ready_by_s = now_s + self._ready_timeout_s
        return Step(wake_at_s=self._wake_at_s())

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step:
        kind = message.type
        if sender in self.out:
            return NOTHING
        if kind == messages.READY:
            self._ready.add(sender)
            step = self._go(draws)
            self._on_ready(len(self._live & self._ready), self._going)
            return step
        if kind == messages.SILENT:
            return self._silent(sender, message, now_s)
        if kind == messages.ALIVE:
            return self._alive(sender)
        if kind == messages.SEEN:
            return self._seen(sender, message, draws)
        if sender == CURATOR and kind == messages.DONE:
            self._done = True
            self._probes.clear()
            self._unanswered.clear()
            return NOTHING
        if sender == CURATOR and kind == messages.SPARED:
            self._probes.pop(message.fields[0], None)  # its head came after all
            return NOTHING
        if sender == CURATOR and kind == messages.OVER:
            self._over = True
            return NOTHING
        if sender == BOOTSTRAP and kind in (messages.SPARED, messages.KEPT):
            return NOTHING  # to itself as a guardian: its host has taken note
        return Step(faults=(Fault("unexpected_message", sender),))

    def excluded(self, peer: Peer, now_s: float, draws: Draws) -> Step:
        return NOTHING

    def wake(self, now_s: float, draws: Draws) -> Step:
        sends: list[Send] = []
        outputs: list[Output] = []
        if self._ready_by_s is not None and now_s >= self._ready_by_s:
            self._ready_by_s = None
            for peer in sorted((self._live | {CURATOR}) - self._ready):
                self._exclude(peer, now_s, sends, outputs)
            sends += self._go(draws).sends
            self._on_ready(len(self._live & self._ready), self._going)
        for waiting in self._unanswered.values():
            for neighbour in sorted(peer for peer, since_s in waiting.items() if now_s >= since_s + self._patience_s):
                waiting[neighbour] = now_s
                sends += self._suspect(BOOTSTRAP, neighbour, now_s).sends
        for peer, probe in sorted(self._probes.items()):
            if now_s >= probe.since_s + self._patience_s:
                del self._probes[peer]
                self._exclude(peer, now_s, sends, outputs)
        sends += self._decide(draws)
        return Step(tuple(sends), self._wake_at_s(), outputs=tuple(outputs))

    # The barrier

    def _go(self, draws: Draws) -> Step:
        if self._going or not self._live | {CURATOR} <= self._ready:
            return NOTHING
        self._going = True
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
        return Send(user, Message(messages.BEGIN, (item, 0)), Custody(item, 0))

    # Silence

    def _silent(self, asker: Peer, message: Message, now_s: float) -> Step:
        peer = message.fields[0]
        if peer in self.out or (self._done and asker != CURATOR):
            return NOTHING
        if peer == asker or peer not in {CURATOR, *self._live}:
            return Step(faults=(Fault("unexpected_message", asker),))
        return self._suspect(asker, peer, now_s)

    def _suspect(self, asker: Peer, peer: Peer, now_s: float) -> Step:
        if peer in self._probes:
            self._probes[peer].askers.add(asker)
            return NOTHING
        self._probes[peer] = _Probe(now_s, {asker})
        return Step(sends=(Send(peer, Message(messages.PROBE)),), wake_at_s=self._wake_at_s())

    def _alive(self, peer: Peer) -> Step:
        probe = self._probes.pop(peer, None)
        askers = sorted(probe.askers - set(self.out)) if probe is not None else []
        spared = Message(messages.SPARED, (peer,))
        return Step(sends=tuple(Send(asker, spared) for asker in askers))

    # Exclusion

    def _exclude(self, peer: Peer, now_s: float, sends: list[Send], outputs: list[Output]) -> None:
        needed = not self._reroutes or self._live <= {peer}
        if not is_user(peer) or (needed and not self._done):
            outputs.append(Output(BLOCKED, (peer,)))
            return
        self.out.append(peer)
        self._live.discard(peer)
        signature = self._sign_exclusion(peer)
        outputs.append(Output(EXCLUDED, (peer, signature)))
        order = Message(messages.OUT, (peer, signature))
        asked = [] if self._done else [who for who in self._neighbours(peer) if who in self._live]
        sends += [Send(who, order) for who in (CURATOR, *asked, peer)]
        for waiting in self._unanswered.values():
            waiting.pop(peer, None)
        if not self._done:
            self._unanswered[peer] = dict.fromkeys((CURATOR, *asked), now_s)
            self._unsettled.append(peer)
        for item, user in self._began_at.items():
            if user == peer and self._going:
                self._settlement.claim(BOOTSTRAP, item, 0)

    def _seen(self, sender: Peer, message: Message, draws: Draws) -> Step:
        peer, receipts, claims = message.fields
        waiting = self._unanswered.get(peer, {})
        if sender not in waiting:  # nobody asked it, or once the result is published nobody needs to know
            return NOTHING if self._done else Step(faults=(Fault("unexpected_message", sender),))
        for item, step in receipts:
            self._settlement.receipt(sender, item, step)
        for item, step in claims:
            self._settlement.claim(sender, item, step)
        waiting.pop(sender)
        if not waiting:
            self._unanswered.pop(peer, None)
        return Step(tuple(self._decide(draws)))

    def _decide(self, draws: Draws) -> list[Send]:
        """Once everybody has answered: tells guardians whether what they had passed on is lost."""
        if self._done or any(self._unanswered.values()):
            return []
        sends: list[Send] = []
        again: list[list[int]] = []
        for decision in self._settlement.decide(self.out):
            item, step = decision.item, decision.step
            if decision.verdict is Verdict.LOST:
                again.append([item, decision.peer])
            message = Message(decision.verdict.value, (item, step))
            if decision.verdict is Verdict.LOST and decision.peer == BOOTSTRAP:
                sends.append(self._begin(item, self._anybody(draws)))
            elif decision.verdict is Verdict.KEPT:
                sends.append(Send(decision.peer, message))
            else:  # whoever has the item now has no guardian but bootstrap
                sends.append(Send(decision.peer, message, Custody(item, step)))
        if self._unsettled:
            sends.append(Send(CURATOR, Message(messages.RESOLVED, (self._unsettled, again))))
            self._unsettled = []
        return sends

    def _wake_at_s(self) -> float | None:
        times = [probe.since_s + self._patience_s for probe in self._probes.values()]
        times += [since_s + self._patience_s for waiting in self._unanswered.values() for since_s in waiting.values()]
        if self._ready_by_s is not None:
            times.append(self._ready_by_s)
        return min(times, default=None)
