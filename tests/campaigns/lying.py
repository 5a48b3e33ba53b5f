"""Users who lie: a behaviour wraps one user of a simulated world, which holds its real keys and follows the rest.

A liar is a real host. A `Behaviour` may change what its machine wants to send (`sends`), the payloads that go out
(`payload`), what it hears (`hears`), and do things of its own from time to time (`acts`). Several of them compose: each
gets what the one before it left. What is sent by `Liar.send` is a message with the next number of the link, as if the
machine had wanted it; `recorded` puts it into the liar's ledger too, so that both ends tell the same tale.

Everything that is taken from inside a host is in `Liar`, and nowhere else in the campaigns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Final

from p2pdp.core.draws import Draws
from p2pdp.core.ids import Peer
from p2pdp.core.step import Message, Send, Step
from p2pdp.crypto.vouchers import START, pack_numbers
from p2pdp.ledger.bodies import SentMessage
from p2pdp.ledger.records import SENT
from p2pdp.peer.host import Host
from p2pdp.peer.payloads import CONTROL, HEAD
from p2pdp.wire.codec import pack, pack_message, pack_value

if TYPE_CHECKING:
    from p2pdp.protocols.run_plan import RunPlan

Chance = Random
_EMPTY: Final[bytes] = pack([])
RAW_MAX: Final = 2000  # frames that one liar makes up in all: a run without lies has some hundreds


class Behaviour:
    """The honest one: each hook leaves things as they are."""

    def __init__(self, dice: Chance) -> None:
        self.dice = dice

    def sends(self, liar: Liar, send: Send) -> Iterable[Send]:
        """Return what is sent in place of what the machine wants to send."""
        return (send,)

    def payload(self, liar: Liar, to: Peer, payload: bytes) -> Iterable[bytes]:
        """Return the payloads that go out in place of one."""
        return (payload,)

    def hears(self, liar: Liar, sender: Peer, frame: bytes) -> bool:
        """Return whether the host gets a frame."""
        return True

    def acts(self, liar: Liar) -> None:
        """Do something of its own; called every tenth of the patience, and with some of the first frames that come."""


class Liar:
    """One lying user over all its lives."""

    def __init__(self, me: Peer, run: RunPlan, behaviours: Sequence[Behaviour], dice: Chance) -> None:
        self.me = me
        self.run = run
        self.behaviours = behaviours
        self.dice = dice
        self.host: Host | None = None
        self.now_s = 0.0
        self.frames_left = 12  # so often it acts because a frame came
        self.raw_left = RAW_MAX
        self.memory: dict[str, Any] = {}  # of behaviours, over lives

    def inhabits(self, host: Host) -> None:
        """Wrap the host of a new life."""
        self.host = host
        host._machine = _LyingMachine(host._machine, self)
        self._frame = host._peers.frame
        host._peers.frame = self._lying_frame

    @property
    def knows_peers(self) -> list[Peer]:
        assert self.host is not None
        return self.host._credentials.peers()

    @property
    def users(self) -> list[Peer]:
        """Return the users that it has links with."""
        return [peer for peer in self.knows_peers if peer >= 0]

    @property
    def on_a_ring(self) -> bool:
        """Whether each item has one way that everybody knows."""
        return bool(getattr(self.run.plan, "order", "") == "ring")

    @property
    def lives(self) -> bool:
        return self.host is not None and self.host._lives

    def link(self, peer: Peer) -> Any:
        assert self.host is not None
        return self.host._peers.link(peer)

    def control(self, to: Peer, flags: int, acknowledged: int) -> bytes:
        """Return control that acknowledges so many messages, with the voucher that says so."""
        return self.stamped(to, CONTROL | flags, 0, acknowledged, START) + _EMPTY

    def stamped(self, to: Peer, flags: int, number: int, acknowledged: int, digest: bytes) -> bytes:
        """Return the head of a payload with a voucher of its own, made with its real key, for whatever it says."""
        return HEAD.pack(
            flags, number, acknowledged, self.link(to).stamp.tag(pack_numbers(number, acknowledged), digest)
        )

    def raw(self, to: Peer, payload: bytes) -> None:
        """Send a payload, sealed as it has to be, while there is something left of its budget."""
        if self.raw_left > 0:
            self.raw_left -= 1
            self._frame(to, payload)

    def send(self, to: Peer, message: Message, *, recorded: bool = False, public: bytes | None = None) -> None:
        """Send a message with the link's next number; `public` stands for type and fields of no known form."""
        assert self.host is not None
        host = self.host
        if not host._lives or host._peers.link(to).refused:
            return
        packed = pack_message(message) if public is None else public
        value = pack_value(message.value)
        salt = host._entropy.salt() if value else b""
        if recorded:
            host._journal.append(SENT, SentMessage(to, packed), value, salt)
        host._peers.send(to, packed, salt + value, self.now_s)

    def changed(self, send: Send) -> list[Send]:
        found = [send]
        for behaviour in self.behaviours:
            found = [one for before in found for one in behaviour.sends(self, before)]
        return found

    def act(self) -> None:
        if self.lives:
            for behaviour in self.behaviours:
                behaviour.acts(self)

    def hears(self, sender: Peer, frame: bytes) -> bool:
        return all(behaviour.hears(self, sender, frame) for behaviour in self.behaviours)

    def _lying_frame(self, to: Peer, payload: bytes, value: bytes = b"") -> None:
        found = [payload + value]
        for behaviour in self.behaviours:
            found = [one for before in found for one in behaviour.payload(self, to, before)]
        for one in found:
            self._frame(to, one)


class _LyingMachine:
    """The machine of a liar: whatever it wants to send goes through the liar's behaviours."""

    def __init__(self, machine: Any, liar: Liar) -> None:
        self._machine = machine
        self._liar = liar

    def __getattr__(self, name: str) -> Any:
        return getattr(self._machine, name)

    def _lied(self, step: Step) -> Step:
        return step._replace(sends=tuple(one for send in step.sends for one in self._liar.changed(send)))

    def start(self, now_s: float, draws: Draws) -> Step:
        return self._lied(self._machine.start(now_s, draws))

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step:
        return self._lied(self._machine.receive(sender, message, now_s, draws))

    def wake(self, now_s: float, draws: Draws) -> Step:
        return self._lied(self._machine.wake(now_s, draws))

    def excluded(self, peer: Peer, now_s: float, draws: Draws) -> Step:
        return self._lied(self._machine.excluded(peer, now_s, draws))


Make = Callable[[Chance], Behaviour]
