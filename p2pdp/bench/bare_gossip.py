"""The baseline of `bench gossip` and `bench vectors`: rounds of bare boxed exchanges.

Each user is a process of its own, and each edge one connection over the loopback. In a round every user boxes a text of
the size of a real message for each neighbour, sends it, and opens what its neighbours sent; then the next round begins.
There are no ledgers, no protocol, no acknowledgements and no arithmetic.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from struct import Struct
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Final

from nacl.bindings import crypto_box_beforenm

from p2pdp.bench.user import BACKLOG, LOOPBACK
from p2pdp.cluster.processes import fork, wait_for
from p2pdp.core.errors import RunFailed
from p2pdp.core.ids import Peer
from p2pdp.crypto.boxes import MAC_BYTES, box, large_box, large_unbox, unbox
from p2pdp.crypto.channel import NACL_FRAME_BYTES_MAX
from p2pdp.crypto.entropy import NONCE_BYTES, SystemEntropy, random_bytes
from p2pdp.crypto.identity import RunKey

_NUMBER: Final = Struct(">I")

Graph = Sequence[Sequence[Peer]]


def bare_rounds(neighbours: Graph, frame_bytes: int, rounds: int) -> float:
    """Return the seconds of all rounds, from the first user's start until the last user's end."""
    users = range(len(neighbours))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="p2pdp-bench-")))
        servers = [stack.enter_context(socket.create_server(LOOPBACK, backlog=BACKLOG)) for _ in users]
        ports = [server.getsockname()[1] for server in servers]
        keys = [RunKey(random_bytes(32)) for _ in users]
        ready, says_ready, start, says_start = (
            stack.enter_context(os.fdopen(end, mode, 0))
            for pipe in (os.pipe(), os.pipe())
            for end, mode in zip(pipe, ("rb", "wb"), strict=True)
        )

        async def body(me: Peer) -> None:
            shared = {peer: crypto_box_beforenm(keys[peer].public, keys[me].to_bytes()) for peer in neighbours[me]}
            user = BareUser(me, shared, frame_bytes, rounds)
            await user.connect(servers[me], ports)
            says_ready.write(b".")
            await asyncio.to_thread(start.read, 1)  # nothing comes there before all are ready
            began_s = monotonic()
            await user.exchange()
            (folder / f"{me}.json").write_text(json.dumps([began_s, monotonic()]))
            user.close()

        def close(me: Peer) -> None:
            for peer, server in enumerate(servers):
                if peer != me:
                    server.close()
            says_start.close()

        def report(_kind: str, text: str) -> None:
            (folder / f"failed-{os.getpid()}").write_text(text)

        children = [fork(partial(body, me), partial(close, me), report) for me in users]
        says_ready.close()
        missing = len(users)
        while missing and (said := ready.read(missing)):
            missing -= len(said)
        says_start.write(b"." * len(users))
        codes = [wait_for(child) for child in children]
        if any(codes):
            reasons = " / ".join(file.read_text() for file in sorted(folder.glob("failed-*")))
            raise RunFailed(f"the bare baseline failed: {reasons or 'no reason was given'}")
        times = [json.loads((folder / f"{me}.json").read_text()) for me in users]
        return float(max(ended_s for _, ended_s in times) - min(began_s for began_s, _ in times))


class BareUser:
    """One user of the baseline: it is in the round of the slowest of its neighbours, or one ahead of it."""

    def __init__(self, me: Peer, shared: dict[Peer, bytes], frame_bytes: int, rounds: int) -> None:
        self._me = me
        self._shared = shared
        self._frame_bytes = frame_bytes
        self._text = bytes(frame_bytes - NONCE_BYTES - MAC_BYTES)
        is_large = frame_bytes > NACL_FRAME_BYTES_MAX
        self._box, self._unbox = large_box if is_large else box, large_unbox if is_large else unbox
        self._rounds = rounds
        self._entropy = SystemEntropy()
        self._lines: dict[Peer, _Line] = {}
        self._came: Counter[Peer] = Counter()
        self._round = 0
        self._lacking = 0  # neighbours whose frame of this round is not here yet
        self._server: asyncio.Server | None = None
        self.connected: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def connect(self, server: socket.socket, ports: Sequence[int]) -> None:
        """Dial neighbours with higher numbers and wait for those with lower ones."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Line(self, None), sock=server)
        for peer in self._shared:
            if peer > self._me:
                await loop.create_connection(partial(_Line, self, peer), LOOPBACK[0], ports[peer])
        self._look()
        await self.connected

    def took(self, line: _Line, peer: Peer) -> None:
        """Take note of a connection with a neighbour."""
        self._lines[peer] = line
        self._look()

    def _look(self) -> None:
        if len(self._lines) == len(self._shared) and not self.connected.done():
            self.connected.set_result(None)

    async def exchange(self) -> None:
        """Make all rounds."""
        self._begin_round()
        await self.done

    def _begin_round(self) -> None:
        while self._round < self._rounds:
            self._round += 1
            for peer, key in self._shared.items():
                nonce = self._entropy.nonce()
                self._lines[peer].send(self._box(self._text, nonce, key, nonce))
            self._lacking = sum(self._came[peer] < self._round for peer in self._shared)
            if self._lacking:
                return
        if not self.done.done():
            self.done.set_result(None)

    def frame(self, peer: Peer, frame: bytes) -> None:
        """Open a frame; begin the next round if it was the last of this one."""
        if self._unbox(frame, NONCE_BYTES, frame[:NONCE_BYTES], self._shared[peer]) is None:
            raise RunFailed("a frame of the bare baseline cannot be opened")
        self._came[peer] += 1
        if self._came[peer] == self._round:
            self._lacking -= 1
            if not self._lacking:
                self._begin_round()

    @property
    def frame_bytes(self) -> int:
        return self._frame_bytes

    @property
    def me(self) -> Peer:
        return self._me

    def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for line in self._lines.values():
            line.close()


class _Line(asyncio.Protocol):
    """A connection; whoever dials says first who it is."""

    def __init__(self, user: BareUser, peer: Peer | None) -> None:
        self._user = user
        self._peer = peer
        self._rest = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # of a connection that reads and writes
        assert self._transport is not None
        if self._peer is not None:
            self._transport.write(_NUMBER.pack(self._user.me))
            self._user.took(self, self._peer)

    def data_received(self, data: bytes) -> None:
        rest = self._rest
        rest += data
        if self._peer is None and len(rest) >= _NUMBER.size:
            self._peer = _NUMBER.unpack_from(rest)[0]
            del rest[: _NUMBER.size]
            self._user.took(self, self._peer)
        if self._peer is None:
            return
        size = self._user.frame_bytes
        while len(rest) >= size:
            frame = bytes(rest[:size])
            del rest[:size]
            self._user.frame(self._peer, frame)

    def send(self, frame: bytes) -> None:
        assert self._transport is not None
        self._transport.write(frame)

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()
