"""Frames through an MQTT broker: calls between stations take the place of connections (`transports/pool.py`).

Nobody listens but the broker, so nodes reach each other from wherever they reach it. A peer is called at its
station (`endpoint.py`); calls are repeated until they are taken, with the same number, so that a late answer
counts. The broker is trusted with nothing: it sees who sends to whom, when and how much, and can lose, repeat and
reorder what passes; who a frame is from shows when its box is opened.

A process that was killed cannot say so, and the broker does not: its calls are ended when something comes for
them once it is there again. That may be never, and a role that came back does not know where users are. So whoever
has a call with a role sees to it that not much more than `PROBE_S` goes by without anything sent over it (never
twice as long), and hears of the loss. A user that comes back calls its peers itself.

Where the broker comes back after it was gone, all peers in touch are reported as lost and connected again, so
that both ends compare sequence numbers: a broker that was killed may have forgotten what it had acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from p2pdp.core.addresses import AddressError, Station, is_station, split_address
from p2pdp.core.errors import P2pdpError
from p2pdp.core.ids import Peer, is_user
from p2pdp.transports.contract import Shell, Transport, Where
from p2pdp.transports.mqtt.access import StationSettings
from p2pdp.transports.mqtt.endpoint import Endpoint
from p2pdp.transports.mqtt.packets import CALL_BYTES, Act, Packet
from p2pdp.transports.pool import (
    CONNECTIONS_MAX,
    LEAVE_S,
    STRANGER_FRAME_BYTES_MAX,
    STRANGERS_MAX,
    Connection,
    DiallingPool,
)

CALL_S: Final = 0.5  # until a call is repeated; then twice as long
CALL_MAX_S: Final = 4.0
PROBE_S: Final = 5.0


class Call(Connection):
    """One end of a call; that which called has a peer."""

    def __init__(
        self, endpoint: Endpoint, owner: MqttTransport, other: str, number: bytes, called: Peer, peer: Peer | None
    ) -> None:
        self.peer = peer
        self.heard = False
        self.open = False
        self._dropped = False
        self.taken = asyncio.get_running_loop().create_future()
        self._endpoint = endpoint
        self._owner = owner
        self._other = other
        self._number = number
        self._called = called
        self._caller = peer is not None
        self._deadline: asyncio.TimerHandle | None = None
        self._probe: asyncio.TimerHandle | None = None
        self._said_nothing = False  # since the last probe was due
        endpoint.calls[self._key] = self

    @property
    def _key(self) -> tuple[str, bytes, bool]:
        return self._other, self._number, self._caller

    def _post(self, act: Act, frame: bytes = b"") -> None:
        self._said_nothing = False
        self._endpoint.post(self._other, act, self._number, self._called, frame, from_caller=self._caller)

    def ask(self) -> None:
        self._post(Act.CALL)

    def accept(self) -> None:
        self.open = True
        self._post(Act.ACCEPT)
        self._owner.opened(self)

    def hear(self, packet: Packet) -> None:
        """Act on a packet of the other end."""
        if packet.act is Act.FRAME:
            if self._caller and not self.open:
                self._opened()  # the acceptance was lost
            self._take(packet.frame)
        elif packet.act is Act.ACCEPT:
            self._opened()
        elif packet.act is Act.CALL and not self._caller:
            self._post(Act.ACCEPT)
        elif packet.act is Act.LEAVE:
            self.heard = True
            self._owner.left(self)
            self.drop()
        elif packet.act is Act.END:
            self._ended()

    def _opened(self) -> None:
        if self._caller and not self.open and not self.taken.done():
            self.open = True
            self.taken.set_result(True)
            self._owner.opened(self)
            self._watch()

    def _take(self, frame: bytes) -> None:
        if self.peer is None and len(frame) > STRANGER_FRAME_BYTES_MAX:
            self.drop()
        if self._dropped:
            return
        self.heard = True
        self._owner.arrived(self, frame)

    def _watch(self) -> None:
        """Probe whether a role still knows of the call, unless something else was sent to it meanwhile."""
        if self.peer is None or is_user(self.peer) or self._key not in self._endpoint.calls:
            return
        if self._said_nothing:
            self._post(Act.PROBE)
        self._said_nothing = True
        self._probe = asyncio.get_running_loop().call_later(self._owner.probe_s, self._watch)

    def _ended(self) -> None:
        """End the call, which may never have been taken."""
        if self._endpoint.calls.pop(self._key, None) is None:
            return
        self._endpoint.strangers.discard(self)
        for timer in (self._deadline, self._probe):
            if timer is not None:
                timer.cancel()
        if not self.taken.done():
            self.taken.set_result(False)
        if self.open:
            self.open = False
            self._owner.closed(self)

    # transports.pool.Connection

    def write(self, frame: bytes) -> None:
        if self.open and not self._dropped:
            self._post(Act.FRAME, frame)

    def proved(self) -> None:
        self._endpoint.strangers.discard(self)
        self._watch()

    def leave(self) -> None:
        self._post(Act.LEAVE)
        self.heard = True  # whatever came of it, the next call need not wait
        self._deadline = asyncio.get_running_loop().call_later(LEAVE_S, self.drop)

    def finish(self) -> None:
        self.drop()

    def drop(self) -> None:
        """End the call after what was written before."""
        if not self._dropped and self._key in self._endpoint.calls:
            self._dropped = True
            self._post(Act.END)
            asyncio.get_running_loop().call_soon(self._ended)  # the shell may be calling us


class MqttTransport(DiallingPool[str]):
    def __init__(
        self,
        shell: Shell,
        endpoint: Endpoint,
        where: Callable[[Peer], str | None],
        connections_max: int = CONNECTIONS_MAX,
        probe_s: float = PROBE_S,
    ) -> None:
        super().__init__(shell, where, connections_max)
        self.probe_s = probe_s
        self._endpoint = endpoint
        endpoint.transports.add(self)

    async def close(self) -> None:
        await super().close()
        await self._endpoint.left(self)

    def on_broker(self, *, there: bool) -> None:
        """Tell the shell that the broker, and with it every peer, was lost or is there again."""
        for peer in [] if self._closing else list(self._to):
            (self._shell.connected if there else self._shell.lost)(peer)

    def fail(self, error: P2pdpError) -> None:
        if not self._closing:
            self._shell.fail(error)

    async def _call(self, peer: Peer, station: str) -> None:
        """Call until the call is taken or refused, or the peer called us in the meantime."""
        call = Call(self._endpoint, self, station, self._endpoint.fresh(CALL_BYTES), peer, peer)
        again_s = CALL_S
        try:
            while peer in self._queues and not call.taken.done():
                if again_s == CALL_S or self._endpoint.connected:  # what was asked first waits for the broker
                    call.ask()
                with suppress(TimeoutError):
                    async with asyncio.timeout(again_s):
                        await asyncio.shield(call.taken)
                again_s = min(2 * again_s, CALL_MAX_S)
        finally:
            if not call.taken.done():
                call.drop()


class MqttNetwork:
    """Peers behind one station at a broker."""

    def __init__(
        self,
        settings: StationSettings,
        fresh: Callable[[int], bytes],
        say: Callable[[str], None] = lambda _text: None,
        calls_max: int = CONNECTIONS_MAX,
        strangers_max: int = STRANGERS_MAX,
    ) -> None:
        self._calls_max = calls_max
        self._endpoint = Endpoint(settings, fresh, say, strangers_max)

    @property
    def faults(self) -> Mapping[str, int]:
        return self._endpoint.faults

    def place(self, text: str) -> Station | None:
        """Read the station, which its node signed as the host of an address."""
        try:
            name = split_address(text).host
        except AddressError:
            return None
        return Station(name) if is_station(name) else None

    def attach(self, shell: Shell, where: Where) -> MqttTransport:
        def of(peer: Peer) -> str | None:
            if peer in self._endpoint.served:
                return self._endpoint.settings.name
            place = where(peer)
            return place.name if isinstance(place, Station) else None

        return MqttTransport(shell, self._endpoint, of, self._calls_max)

    def serve(self, peer: Peer, transport: Transport) -> None:
        assert isinstance(transport, MqttTransport)
        self._endpoint.served[peer] = transport

    async def listen(self) -> None:
        self._endpoint.takes_calls = True
        self._endpoint.begin()

    def close(self) -> None:
        self._endpoint.takes_calls = False
