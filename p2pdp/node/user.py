"""One user's node: asks for a seat, takes part, closes its ledger, hands in its head.

What it keeps in its folder: `run.key` (mode 0600, durable before enrolment, unlinked when the run closes),
`seat` (the roster and its number in it, for a restart), and its two ledgers. A node whose key is unlinked
has done its part and is not started again (`has_finished`).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from p2pdp.assembly.hosts import user_host
from p2pdp.core.draws import Sampler
from p2pdp.core.errors import P2pdpError, Refused, RunFailed, VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, Peer
from p2pdp.crypto.entropy import SystemEntropy
from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.crypto.roster import Roster, RosterError
from p2pdp.host.applicant import RETRY_S, Applicant
from p2pdp.host.seat import Seat
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.ledger.records import to_skeleton
from p2pdp.node.clock import Clock
from p2pdp.node.disk import Disk, is_closed
from p2pdp.node.keys import durable_secret, write_durably
from p2pdp.node.shell import HostShell
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.transports.contract import Origin
from p2pdp.transports.tcp import Address, TcpListener, TcpTransport
from p2pdp.wire.codec import CodecError, pack, unpack

RUN_KEY_FILE: Final = "run.key"
SEAT_FILE: Final = "seat"


@dataclass(frozen=True)
class UserSettings:
    """What a node is started with; `prepare` gives the plan and the user's rows once it knows its number."""

    folder: Path
    identity: Identity
    token: int
    secret: bytes
    bootstrap_public: bytes
    accept: Callable[[str], bytes]
    prepare: Callable[[Roster, Peer], tuple[RunPlan, Any]]
    bootstrap_address: Address
    where: Callable[[Roster, Peer], Address | None]
    listening: socket.socket
    sampler: Callable[[], Sampler]
    power: bool = False
    share_skeleton: bool = False


def has_finished(folder: Path) -> bool:
    """Whether a node did all of its part before: its ledger is closed, and the curator has its head."""
    if not (folder / SEAT_FILE).exists() or (folder / RUN_KEY_FILE).exists():
        return False
    if not is_closed(folder):
        raise VerificationFailed(f"{folder / RUN_KEY_FILE}: is gone, and without it this node cannot go on")
    return True


class UserNode:
    """To be made within a running event loop."""

    def __init__(self, settings: UserSettings) -> None:
        self._settings = settings
        self._clock = Clock()
        self._disk = Disk(settings.folder, power=settings.power)
        self._entropy = SystemEntropy()
        self._run_key = RunKey(durable_secret(settings.folder / RUN_KEY_FILE))
        self._shell = HostShell(self._disk, self._clock, self._document, lambda _output: None, self._ask_again)
        self._transport = TcpTransport(self._shell, self._where)
        self._listener = TcpListener(lambda peer: self._transport if peer == self._me else None)
        self._shell.transport = self._transport
        self._me: Peer | None = None
        self._roster: Roster | None = None
        self._applicant: Applicant | None = None
        self._answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._refusal: P2pdpError | None = None

    async def run(self) -> None:
        """Until the ledger is closed and the curator has its head. May raise what refuses or stops it."""
        await self._listener.listen(self._settings.listening)
        try:
            seat = _stored_seat(self._settings.folder, self._settings.identity, self._run_key)
            if seat is None:
                seat = await self._enrol()
            self._begin(seat)
            await self._shell.ended
            if self._shell.host is not None and self._shell.host.stopped:
                raise RunFailed("this node's disk was rolled back: its peers hold more than it remembers")
            self._shell.write_totals(self._settings.folder)
            (self._settings.folder / RUN_KEY_FILE).unlink(missing_ok=True)
        finally:
            self._listener.close()
            self._shell.stop()
            await self._transport.close()

    def _where(self, peer: Peer) -> Address | None:
        if peer < 0:
            return self._settings.bootstrap_address
        return None if self._roster is None else self._settings.where(self._roster, peer)

    async def _enrol(self) -> Seat:
        settings = self._settings
        self._applicant = Applicant(
            settings.identity,
            self._run_key,
            settings.token,
            settings.secret,
            settings.bootstrap_public,
            settings.accept,
            self._entropy,
        )
        while not self._answered.done():
            self._transport.send(BOOTSTRAP, self._applicant.ask())
            futures = self._answered, self._shell.ended
            await asyncio.wait(futures, timeout=RETRY_S, return_when=asyncio.FIRST_COMPLETED)
            if self._shell.ended.done():
                await self._shell.ended  # raises what went wrong meanwhile
        if self._refusal is not None:
            raise self._refusal
        if self._applicant.refused is not None:
            raise Refused(f"bootstrap refused this node: {self._applicant.refused}")
        seat = self._applicant.seat
        assert seat is not None
        _store_seat(settings.folder, seat)
        return seat

    def _ask_again(self, peer: Peer) -> None:
        """Bootstrap went away while it had our application: it may have come back without it."""
        if peer == BOOTSTRAP and self._applicant is not None and not self._answered.done():
            self._transport.send(BOOTSTRAP, self._applicant.ask())

    def _document(self, origin: Origin, frame: bytes) -> None:
        if self._applicant is None or self._answered.done():
            return
        try:
            reply = self._applicant.frame(frame)
        except P2pdpError as error:  # the node's owner does not accept the spec
            self._refusal = error
            self._answered.set_result(None)
            return
        if self._applicant.seat is not None or self._applicant.refused is not None:
            self._answered.set_result(None)
        elif reply is not None:
            self._transport.answer(origin, reply)

    def _begin(self, seat: Seat) -> None:
        self._me, self._roster = seat.me, seat.roster
        run, rows = self._settings.prepare(seat.roster, seat.me)
        journal = Journal(self._disk.stored.pop(VIEW), self._disk.stored.pop(PRIVATE))
        skeleton = (lambda: to_skeleton(self._disk.read(VIEW))) if self._settings.share_skeleton else None
        host = user_host(run, seat, journal, self._settings.sampler(), self._entropy, rows, skeleton)
        self._shell.begin(host)


def _store_seat(folder: Path, seat: Seat) -> None:
    neighbours = None if seat.neighbours is None else list(seat.neighbours)
    write_durably(folder / SEAT_FILE, pack([seat.me, neighbours, seat.roster.to_bytes()]))


def _stored_seat(folder: Path, identity: Identity, run_key: RunKey) -> Seat | None:
    path = folder / SEAT_FILE
    if not path.exists():
        return None
    try:
        me, neighbours, packed = unpack(path.read_bytes())
        roster = Roster.from_bytes(packed)
    except (CodecError, RosterError, TypeError, ValueError) as error:
        raise VerificationFailed(f"{path}: is damaged") from error
    return Seat(me, roster, identity, run_key, None if neighbours is None else tuple(neighbours))
