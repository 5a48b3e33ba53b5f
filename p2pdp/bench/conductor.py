"""The conductor of `bench hops` gives orders to all users' processes and times what they do.

It stands for bootstrap and curator with hosts like theirs, whose machines only begin tokens and see totals
come in. A stretch of real hops lasts from the order to begin its tokens until the last total arrives; a bare one
from its order until its last token has made its last hop.
"""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

from p2pdp.assembly.hosts import timing_of
from p2pdp.bench.user import LINE_BYTES_MAX, BenchSettings
from p2pdp.core import messages
from p2pdp.core.draws import Draws
from p2pdp.core.errors import RunFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.step import NOTHING, Message, Send, Step
from p2pdp.crypto.entropy import SystemEntropy
from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.crypto.roster import RosterEntry, sign_entry, sign_roster
from p2pdp.ledger.journal import Journal
from p2pdp.mechanisms.sampler import ExactSampler
from p2pdp.node.clock import Clock
from p2pdp.node.disk import Disk
from p2pdp.node.shell import HostShell
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.host import Host
from p2pdp.transports.contract import ROLES, Network, Transport

POLL_S: Final = 0.01
DIGEST: Final = bytes(32)


class Progress:
    """The state of a stretch of real hops, which both machines share."""

    def __init__(self) -> None:
        self.to_begin: list[int] = []
        self.missing: set[int] = set()
        self.began_s = 0.0
        self.ended_s = 0.0
        self.over = asyncio.Event()


class Role:
    """Bootstrap has user 0 begin tokens when told so, and the curator sees their totals come in."""

    finished = False

    def __init__(self, me: Peer, progress: Progress) -> None:
        self._me = me
        self._progress = progress

    def start(self, now_s: float, draws: Draws) -> Step:
        return Step(wake_at_s=now_s) if self._me == BOOTSTRAP else NOTHING

    def receive(self, sender: Peer, message: Message, now_s: float, draws: Draws) -> Step:
        progress = self._progress
        if message.type == messages.TOTAL:
            progress.missing.discard(messages.Item(*message.fields).item)
            progress.ended_s = now_s
            if not progress.missing:
                progress.over.set()
        return NOTHING

    def wake(self, now_s: float, draws: Draws) -> Step:
        progress = self._progress
        items, progress.to_begin = progress.to_begin, []
        if items:
            progress.began_s, progress.missing = now_s, set(items)
        sends = tuple(Send(0, Message(messages.BEGIN, (item, 0))) for item in items)
        return Step(sends=sends, wake_at_s=now_s + POLL_S)

    def excluded(self, peer: Peer, now_s: float, draws: Draws) -> Step:
        return NOTHING


@dataclass(frozen=True)
class Stretch:
    """Seconds of a stretch, and the processor time of all users together."""

    seconds: float
    cpu_s: float


class Conductor:
    """Made within a running event loop, after the fork."""

    def __init__(self, settings: BenchSettings, control: socket.socket) -> None:
        self._settings = settings
        self._n = settings.run.n
        self._control = control
        self._entropy = SystemEntropy()
        self._users: dict[Peer, asyncio.StreamWriter] = {}
        self._said: dict[Peer, dict[str, Any]] = {}
        self._all_said = asyncio.Event()
        self._heard: set[asyncio.Task[None]] = set()
        self._network: Network | None = None
        self._roles: list[tuple[HostShell, Transport]] = []
        self._bare_missing = 0
        self._bare_over = asyncio.Event()
        self._progress = Progress()
        self._next_item = 0

    async def listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._user, sock=self._control, limit=LINE_BYTES_MAX)

    async def _user(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._heard.add(task)
        while line := await reader.readline():
            said = json.loads(line)
            if "done" in said:
                self._bare_missing -= 1
                if self._bare_missing == 0:
                    self._bare_over.set()
                continue
            self._users.setdefault(said["user"], writer)
            self._said[said["user"]] = said
            if len(self._said) == self._n:
                self._all_said.set()

    async def close(self) -> None:
        """End the roles and all users' control connections."""
        if self._network is not None:
            self._network.close()
        for shell, transport in self._roles:
            shell.stop()
            await transport.close()
        for writer in self._users.values():
            writer.close()
        await asyncio.gather(*self._heard)

    async def _until(self, event: asyncio.Event) -> None:
        """Wait for `event`, and raise what ended a role meanwhile. The launcher notices users that fail."""
        waiting: asyncio.Future[Any] = asyncio.ensure_future(event.wait())
        try:
            ended = [shell.ended for shell, _ in self._roles]
            await asyncio.wait([waiting, *ended], return_when=asyncio.FIRST_COMPLETED)
            for role in ended:
                if not role.done():
                    continue
                await role
                raise RunFailed("the host of bootstrap or of the curator stopped")
        finally:
            waiting.cancel()

    async def _answers(self) -> dict[Peer, dict[str, Any]]:
        await self._until(self._all_said)
        said, self._said = self._said, {}
        self._all_said.clear()
        return said

    async def _ask(self, order: dict[str, Any]) -> dict[Peer, dict[str, Any]]:
        """Give all users an order and return their answers."""
        for writer in self._users.values():
            writer.write(json.dumps(order).encode() + b"\n")
        return await self._answers()

    async def begin(self) -> None:
        """Hand out the roster; all hosts begin."""
        said = await self._answers()
        run_id, run = self._settings.run_id, self._settings.run
        identity, keys = Identity(self._entropy.seed()), [RunKey(self._entropy.seed()) for _ in range(2)]
        roles = [sign_entry(identity, run_id, key.public) for key in keys]
        entries = [RosterEntry.from_bytes(bytes.fromhex(said[user]["entry"])) for user in range(self._n)]
        roster = sign_roster(
            identity, run_id=run_id, spec_digest=DIGEST, protocol=run.spec.run.protocol, facts=run.facts,
            bootstrap=roles[0], curator=roles[1], entries=entries,
        )  # fmt: skip
        networks = self._settings.networks
        network = self._network = networks.network(ROLES)
        for peer, key in zip((BOOTSTRAP, CURATOR), keys, strict=True):
            disk = Disk(self._settings.folder / f"role{-peer}", power=False)
            shell = HostShell(disk, Clock(), lambda _origin, _frame: None, lambda _output: None)
            transport = network.attach(shell, networks.where)
            shell.transport = transport
            self._roles.append((shell, transport))
            network.serve(peer, transport)
            credentials = Credentials(peer, roster, identity, key, None)
            role = Role(peer, self._progress)
            parts = (Journal(), ExactSampler(), self._entropy)
            shell.begin(Host(credentials, role, *parts, timing=timing_of(run), check=run.check))
        await network.listen()
        await self._ask({"do": "begin", "roster": roster.to_bytes().hex()})

    async def dial(self) -> float:
        """Return the seconds until all neighbours have compared sequence numbers."""
        began_s = perf_counter()
        await self._ask({"do": "dial"})
        return perf_counter() - began_s

    async def growth(self) -> list[dict[str, Any]]:
        return list((await self._ask({"do": "growth"})).values())

    async def _cpu_s(self) -> float:
        said = await self._ask({"do": "cpu"})
        return float(sum(user["cpu_s"] for user in said.values()))

    async def real(self, tokens: int) -> Stretch:
        before_s = await self._cpu_s()
        self._progress.over.clear()
        self._progress.to_begin = list(range(self._next_item, self._next_item + tokens))
        self._next_item += tokens
        await self._until(self._progress.over)
        return Stretch(self._progress.ended_s - self._progress.began_s, await self._cpu_s() - before_s)

    async def bare(self, tokens: int, hops: int) -> Stretch:
        before_s = await self._cpu_s()
        self._bare_over.clear()
        self._bare_missing = tokens
        began_s = perf_counter()
        self._users[0].write(json.dumps({"do": "bare", "tokens": tokens, "hops": hops}).encode() + b"\n")
        await self._until(self._bare_over)
        return Stretch(perf_counter() - began_s, await self._cpu_s() - before_s)
