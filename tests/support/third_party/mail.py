"""A transport of somebody else's: each peer has a mailbox, a datagram socket in a folder, and frames may get lost.

It knows no connections. Whoever is asked for a place names the file of a mailbox as a station.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from struct import Struct
from tempfile import TemporaryDirectory
from typing import Any

from p2pdp.core.addresses import Place, Station
from p2pdp.core.ids import Peer
from p2pdp.core.spec import Spec
from p2pdp.transports.contract import LocalNetworks, LocalProcess, Origin, Shell, Transport, TransportKind, Where

HEAD = Struct(">ii")  # the peer it is for, or who is answered; who may be answered
ANSWER = -10
FRAME_BYTES_MAX = 1 << 17


class MailTransport:
    strangers: tuple[Origin, ...] = ()

    def __init__(self, network: MailNetwork, shell: Shell, where: Where, number: int) -> None:
        self.network, self.shell, self._where, self._number = network, shell, where, number

    def send(self, peer: Peer, frame: bytes) -> None:
        place = self.network.mine if peer in self.network.served else self._where(peer)
        if isinstance(place, Station):
            self.network.post(str(self.network.folder / place.name), peer, self._number, frame)

    def answer(self, origin: Origin, frame: bytes) -> None:
        if isinstance(origin, tuple):
            self.network.post(origin[0], ANSWER - origin[1], self._number, frame)

    def belongs(self, origin: Origin, peer: Peer) -> None:
        pass

    async def close(self) -> None:
        pass


class MailNetwork:
    def __init__(self, folder: Path, mine: Station) -> None:
        self.folder, self.mine = folder, mine
        self.served: dict[Peer, MailTransport] = {}
        self._attached: list[MailTransport] = []
        (folder / mine.name).unlink(missing_ok=True)
        self._box = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._box.bind(str(folder / mine.name))
        self._box.setblocking(False)

    @property
    def faults(self) -> Mapping[str, int]:
        return {}

    def place(self, text: str) -> Place | None:
        return None

    def attach(self, shell: Shell, where: Where) -> MailTransport:
        self._attached.append(MailTransport(self, shell, where, len(self._attached)))
        return self._attached[-1]

    def serve(self, peer: Peer, transport: Transport) -> None:
        assert isinstance(transport, MailTransport)
        self.served[peer] = transport

    async def listen(self) -> None:
        asyncio.get_running_loop().add_reader(self._box, self._read)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._box)
        self._box.close()

    def post(self, box: str, to: int, number: int, frame: bytes) -> None:
        with suppress(OSError):  # nobody is there, or there is no room: the link above sends again
            self._box.sendto(HEAD.pack(to, number) + frame, box)

    def _read(self) -> None:
        data, box = self._box.recvfrom(FRAME_BYTES_MAX)
        to, number = HEAD.unpack_from(data)
        transport = self.served.get(to) if to > ANSWER else self._attached[ANSWER - to]
        if transport is not None:
            transport.shell.arrived((box, number), data[HEAD.size :])


class Folder:
    """The folder of all mailboxes."""

    def __init__(self, path: str) -> None:
        self.known: Mapping[str, Any] = {"folder": path}

    def check(self) -> None:
        pass


class Mail(TransportKind):
    name = "mail"
    has_broker = True

    @contextmanager
    def provide(self, spec: Spec) -> Iterator[Folder]:
        with TemporaryDirectory(prefix="mail-") as path:
            yield Folder(path)

    def local(self, process: LocalProcess) -> LocalNetworks:
        assert process.provided is not None
        folder = Path(process.provided["folder"])

        def where(slot: int) -> Station:
            return Station(f"box{slot}")

        return LocalNetworks(lambda slot: MailNetwork(folder, where(slot)), where)


KIND = Mail()
