"""Bootstrap after enrolment: the barrier before the start, and who is out.

Exclusion (design section 5): a guardian says that a peer is silent; bootstrap probes it; if it does not
answer within `patience_s`, "out" is recorded, signed and sent to its live neighbours. Each refuses the peer
from then on and answers what it has received from it and which items it had passed to peers that are out.
When all have answered, an item is lost if nobody alive received it from a peer that is out at a later step
than the claimed one; then its last live guardian is told to send the same noised value elsewhere. A
neighbour that does not answer is treated in the same way. So no item is doubled, and none is lost while
anybody alive held it before: bootstrap itself counts as the guardian of items that never left their start.

A ring cannot go round: the run is reported blocked, and goes on if the silent user comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from p2pdp.core import messages
from p2pdp.core.draws import Draws
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.step import NOTHING, Custody, Fault, Message, Output, Send, Step
from p2pdp.protocols.contract import Start

EXCLUDED = "excluded"
BLOCKED = "blocked"

Sign = Callable[[Peer], bytes]


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
    ) -> None:
        self._n = n
        self._neighbours = neighbours
        self._reroutes = reroutes
        self._patience_s = patience_s
        self._ready_timeout_s = ready_timeout_s
        self._sign_exclusion = sign_exclusion
        self._live: set[Peer] = set(range(n))
        self._ready: set[Peer] = set()
        self._ready_by_s = 0.0
        self._going = False
        self._done = False
        self._over = False
        self._probes: dict[Peer, _Probe] = {}
        self._unanswered: dict[Peer, dict[Peer, float]] = {}  # who is out -> who has still to answer, since when
        self._receipts: dict[int, int] = {}  # item -> highest step received from a peer that is out
        self._claims: dict[int, dict[Peer, int]] = {}  # item -> guardian -> step at which it passed the item on
        self._starts = {start.item: start for start in starts}
        self._began_at: dict[int, Peer] = {start.item: start.user for start in starts}
        self.out: list[Peer] = []
        self.blocked_at: Peer | None = None

    @property
    def finished(self) -> bool:
        return self._over

    def start(self, now_s: float, draws: Draws) -> Step:
        self._ready_by_s = now_s + self._ready_timeout_s
        return Step(wake_at_s=self._ready_by_s)

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step:
        kind = message.type
        if sender in self.out:
            return NOTHING
        self._heard(sender)
        if kind == messages.READY:
            self._ready.add(sender)
            return self._go(draws)
        if kind == messages.SILENT and sender != message.fields[0]:
            return self._suspect(sender, message.fields[0], now_s)
        if kind == messages.ALIVE:
            return self._alive(sender)
        if kind == messages.SEEN:
            return self._seen(sender, message, draws)
        if sender == CURATOR and kind == messages.DONE:
            self._done = True
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
        if not self._going and now_s >= self._ready_by_s:
            for peer in sorted(self._live - self._ready):
                self._exclude(peer, now_s, sends, outputs)
            sends += self._go(draws).sends
        for peer, waiting in sorted(self._unanswered.items()):
            for neighbour in sorted(peer for peer, since_s in waiting.items() if now_s >= since_s + self._patience_s):
                waiting[neighbour] = now_s
                sends += self._suspect(BOOTSTRAP, neighbour, now_s).sends
        for peer, probe in sorted(self._probes.items()):
            if now_s >= probe.since_s + self._patience_s:
                del self._probes[peer]
                self._exclude(peer, now_s, sends, outputs)
        sends += self._decide(draws)
        return Step(tuple(sends), self._wake_at_s(now_s), outputs=tuple(outputs))

    # The barrier

    def _go(self, draws: Draws) -> Step:
        if self._going or not self._live <= self._ready or CURATOR not in self._ready:
            return NOTHING
        self._going = True
        sends = [Send(peer, Message(messages.GO)) for peer in (CURATOR, *sorted(self._live))]
        for item, user in sorted(self._began_at.items()):
            sends.append(self._begin(item, user if user in self._live else self._anybody(draws)))
        return Step(tuple(sends))

    def _anybody(self, draws: Draws) -> Peer:
        live = sorted(self._live)
        return live[draws.choice(len(live))]

    def _begin(self, item: int, user: Peer) -> Send:
        self._began_at[item] = user
        return Send(user, Message(messages.BEGIN, (item, 0)), Custody(item, 0))

    # Silence

    def _heard(self, peer: Peer) -> None:
        if peer == self.blocked_at:
            self.blocked_at = None

    def _suspect(self, asker: Peer, peer: Peer, now_s: float) -> Step:
        if peer in self.out:
            return NOTHING
        if peer in self._probes:
            self._probes[peer].askers.add(asker)
            return NOTHING
        self._probes[peer] = _Probe(now_s, {asker})
        return Step(sends=(Send(peer, Message(messages.PROBE)),), wake_at_s=self._wake_at_s(now_s))

    def _alive(self, peer: Peer) -> Step:
        probe = self._probes.pop(peer, None)
        askers = sorted(probe.askers) if probe is not None else []
        spared = Message(messages.SPARED, (peer,))
        return Step(sends=tuple(Send(asker, spared) for asker in askers))

    # Exclusion

    def _exclude(self, peer: Peer, now_s: float, sends: list[Send], outputs: list[Output]) -> None:
        if peer in self.out:
            return
        if not is_user(peer) or (not self._reroutes and not self._done):
            self.blocked_at = peer
            outputs.append(Output(BLOCKED, (peer,)))
            return
        self.out.append(peer)
        self._live.discard(peer)
        signature = self._sign_exclusion(peer)
        outputs.append(Output(EXCLUDED, (peer, signature)))
        order = Message(messages.OUT, (peer, signature))
        asked = [CURATOR] if self._done else [CURATOR, *(who for who in self._neighbours(peer) if who in self._live)]
        sends += [Send(who, order) for who in (*asked, peer)]
        for waiting in self._unanswered.values():
            waiting.pop(peer, None)
        self._unanswered[peer] = dict.fromkeys(asked, now_s)
        if self._going:
            for item, user in self._began_at.items():
                if user == peer:
                    self._claims.setdefault(item, {})[BOOTSTRAP] = 0

    def _seen(self, sender: Peer, message: Message, draws: Draws) -> Step:
        peer, receipts, claims = message.fields
        for item, step in receipts:
            self._receipts[item] = max(step, self._receipts.get(item, 0))
        for item, step in claims:
            self._claims.setdefault(item, {})[sender] = step
        self._unanswered.get(peer, {}).pop(sender, None)
        return Step(tuple(self._decide(draws)))

    def _decide(self, draws: Draws) -> list[Send]:
        """Once everybody has answered, tells each guardian whether what it had passed on is lost.

        Only the last live guardian can be the one: whoever had the item before it knows that it went on.
        """
        if self._done or any(self._unanswered.values()) or not self._live:
            return []
        sends: list[Send] = []
        for item, claims in sorted(self._claims.items()):
            live = [(step, guardian) for guardian, step in claims.items() if guardian not in self.out]
            last = max(live, default=None)
            for step, guardian in sorted(live):
                lost = (step, guardian) == last and self._receipts.get(item, -1) <= step
                if lost and guardian == BOOTSTRAP:
                    sends.append(self._begin(item, self._anybody(draws)))
                else:
                    kind = messages.LOST if lost else messages.KEPT
                    sends.append(Send(guardian, Message(kind, (item, step))))
        self._claims.clear()
        return sends

    def _wake_at_s(self, now_s: float) -> float | None:
        times = [probe.since_s + self._patience_s for probe in self._probes.values()]
        times += [since_s + self._patience_s for waiting in self._unanswered.values() for since_s in waiting.values()]
        if not self._going and now_s < self._ready_by_s:
            times.append(self._ready_by_s)
        return min(times, default=None)
