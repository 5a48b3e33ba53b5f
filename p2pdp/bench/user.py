"""A user's process in `bench hops`: the host that real nodes run, and beside it a bare baseline.

Host, shell, disk and transport are those of `node/user.py`, put together in the same way; only enrolment is replaced
by orders over a control connection, so that stretches of real hops and of bare ones can take turns.

A bare hop opens a boxed token, boxes it again and sends it on, and does nothing else: same processes and connections,
one frame size, one key a pair, a random nonce a frame, and the next user drawn as a walk draws it.
"""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import Any, Final

from nacl.bindings import crypto_box_beforenm, crypto_box_easy_afternm, crypto_box_open_easy_afternm

from p2pdp.assembly.hosts import user_host
from p2pdp.bench.harness import counts_private_memory, private_mib
from p2pdp.core.addresses import Address, Place
from p2pdp.core.errors import RunFailed
from p2pdp.core.ids import Peer, is_user
from p2pdp.crypto.entropy import NONCE_BYTES, SystemEntropy
from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.crypto.roster import Roster, sign_entry
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.mechanisms.sampler import ExactSampler
from p2pdp.node.clock import LoopClock
from p2pdp.node.disk import Disk
from p2pdp.node.shell import HostShell
from p2pdp.peer.credentials import Credentials
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.transports.contract import ROLES, LocalNetworks, Origin
from p2pdp.wire.frames import FORMAT_VERSION
from p2pdp.wire.padding import FRAME_SIZES

LOOPBACK: Final = ("127.0.0.1", 0)
LINE_BYTES_MAX: Final = 1 << 24
LOOK_S: Final = 0.002
BACKLOG: Final = 1024
BARE: Final = 255  # a kind of frame that no host knows
_HEADER: Final = Struct(">BBi")
_BOX_AT: Final = _HEADER.size + NONCE_BYTES
_MAC_BYTES: Final = 16
_LEFT: Final = Struct(">q")  # hops that a token has still to make
_PADDING: Final = bytes(FRAME_SIZES[0] - _BOX_AT - _MAC_BYTES - _LEFT.size)


@dataclass(frozen=True)
class BenchSettings:
    folder: Path
    run_id: bytes
    run: RunPlan
    rows: Callable[[Peer], Any] = field(repr=False)
    control: Address
    networks: LocalNetworks


class BenchUser:
    """Made within a running event loop, after the fork."""

    def __init__(self, settings: BenchSettings, me: Peer) -> None:
        self._settings = settings
        self._me = me
        self._entropy = SystemEntropy()
        self._identity = Identity(self._entropy.seed())
        self._key = RunKey(self._entropy.seed())
        neighbours = settings.run.neighbours(me)
        self._neighbours = None if neighbours is None else tuple(neighbours)
        self._users = range(settings.run.n) if neighbours is None else neighbours
        self._network = settings.networks.network(me)
        self._disk = Disk(settings.folder / f"{me:04d}", power=False)
        self._clock = LoopClock.of_loop()
        self._shell = HostShell(self._disk, self._clock, self._bare_hop, lambda _output: None)
        self._transport = self._network.attach(self._shell, self._where)
        self._shell.transport = self._transport
        self._bare = BareNode(me, self._users, self._transport.send, lambda: self._say({"done": me}))
        self._writer: asyncio.StreamWriter | None = None

    def _say(self, document: dict[str, Any]) -> None:
        assert self._writer is not None
        self._writer.write(json.dumps(document).encode() + b"\n")

    def _where(self, peer: Peer) -> Place | None:
        return self._settings.networks.where(peer if is_user(peer) else ROLES)

    def _bare_hop(self, origin: Origin, frame: bytes) -> None:
        self._bare.hop(origin, frame)

    async def run(self) -> None:
        reader, self._writer = await asyncio.open_connection(*self._settings.control, limit=LINE_BYTES_MAX)
        await self._network.listen()
        entry = sign_entry(self._identity, self._settings.run_id, self._key.public)
        self._say({"user": self._me, "entry": entry.to_bytes().hex()})
        orders = asyncio.ensure_future(self._obey(reader))
        try:
            await asyncio.wait((orders, self._shell.ended), return_when=asyncio.FIRST_COMPLETED)
            if not orders.done():
                await self._shell.ended
                raise RunFailed(f"the host of user {self._me} stopped")
            await orders
        finally:
            orders.cancel()
        self._network.close()
        self._shell.stop()
        await self._transport.close()
        self._writer.close()
        await self._writer.wait_closed()

    async def _obey(self, reader: asyncio.StreamReader) -> None:
        """Carry out orders until there are no more."""
        orders: dict[str, Callable[[dict[str, Any]], Any]] = {
            "begin": self._begin, "dial": self._dial, "bare": self._bare_hops,
            "cpu": self._cpu, "growth": self._growth,
        }  # fmt: skip
        while line := await reader.readline():
            order = json.loads(line)
            answer = orders[order["do"]](order)
            answer = await answer if asyncio.iscoroutine(answer) else answer
            if answer is not None:
                self._say(answer)

    def _begin(self, order: dict[str, Any]) -> dict[str, Any]:
        self._roster = Roster.from_bytes(bytes.fromhex(order["roster"]))
        credentials = Credentials(self._me, self._roster, self._identity, self._key, self._neighbours)
        self._network.serve(self._me, self._transport)
        journal = Journal(self._disk.stored.pop(VIEW), self._disk.stored.pop(PRIVATE))
        self._bare.agree(self._key.to_bytes(), {peer: self._roster.entry(peer).box for peer in self._others()})
        rows = self._settings.rows(self._me)
        self._shell.begin(user_host(self._settings.run, credentials, journal, ExactSampler(), self._entropy, rows))
        return {"user": self._me}

    def _others(self) -> Sequence[Peer]:
        return [peer for peer in self._users if peer != self._me]

    async def _dial(self, _order: dict[str, Any]) -> dict[str, Any]:
        """Compare sequence numbers with all neighbours, as after a lost connection; the lower user dials."""
        for peer in self._others():
            if peer > self._me:
                self._shell.connected(peer)
        host = self._shell.host
        assert host is not None
        while self._transport.strangers or not all(map(host.heard, self._others())):  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(LOOK_S)
        return {"user": self._me}

    def _bare_hops(self, order: dict[str, Any]) -> None:
        for _ in range(order["tokens"]):
            self._bare.begin(order["hops"])

    def _cpu(self, _order: dict[str, Any]) -> dict[str, Any]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return {"user": self._me, "cpu_s": used.ru_utime + used.ru_stime}

    def _growth(self, _order: dict[str, Any]) -> dict[str, Any]:
        """Return the bytes of the ledgers, and private memory."""
        place = self._settings.folder / f"{self._me:04d}"
        ledgers = sum(file.stat().st_size for file in place.glob("*.ledger"))
        return {
            "user": self._me,
            "ledger_bytes": ledgers,
            "private_mib": private_mib() if counts_private_memory() else None,
        }


Send = Callable[[Peer, bytes], None]


class BareNode:
    """One user of the baseline. The user that makes a token's last hop calls `done`."""

    def __init__(self, me: Peer, options: Sequence[Peer], send: Send, done: Callable[[], None]) -> None:
        self._me = me
        self._options = options
        self._send = send
        self._done = done
        self._header = _HEADER.pack(FORMAT_VERSION, BARE, me)
        self._entropy = SystemEntropy()
        self._choice = ExactSampler().choice
        self._keys: dict[Peer, bytes] = {}

    def agree(self, secret: bytes, publics: dict[Peer, bytes]) -> None:
        self._keys = {peer: crypto_box_beforenm(public, secret) for peer, public in publics.items()}

    def begin(self, hops: int) -> None:
        """Start a token that makes `hops` hops, the first of them here."""
        self._pass_on(hops)

    def hop(self, _origin: Origin, frame: bytes) -> None:
        peer = _HEADER.unpack_from(frame)[2]
        content = crypto_box_open_easy_afternm(frame[_BOX_AT:], frame[_HEADER.size : _BOX_AT], self._keys[peer])
        self._pass_on(_LEFT.unpack_from(content)[0])

    def _pass_on(self, left: int) -> None:
        to = self._me
        while to == self._me:
            left -= 1
            if left <= 0:
                self._done()
                return
            to = self._options[self._choice(len(self._options))]
        nonce = self._entropy.nonce()
        box = crypto_box_easy_afternm(_LEFT.pack(left) + _PADDING, nonce, self._keys[to])
        self._send(to, self._header + nonce + box)
