"""A node's place at a broker: its topic, its calls with other stations, and what has to outlast a lost connection.

A station reads `p2pdp/<run>/<its name>` and writes to the topics of others. A call is what a connection is over TCP:
one station calls a peer at another, which accepts, and frames go both ways until one of them ends it. So several
peers can share a station, and shells hear of losses and of strangers just as they do over TCP.

Guarantee: what was posted is published in order. Calls and ends are published at least once (QoS 1), also when the
connection to the broker breaks in between, and the broker keeps them for us meanwhile. Frames are published at most
once (QoS 0) on each connection: links number them and send them again, so a second acknowledgement below theirs
would only cost. Since a broker may forget, whoever talked to a peer is told of each broken connection and of the next
one, and compares numbers. What waits to be published is bounded, and what is above that is dropped. Bytes that are no
packet are counted and dropped, a packet of a call that is not known is answered by its end, and strangers are as
bounded as they are over TCP.

The caller owes: `fresh` gives random bytes; no two stations of one broker and run have one name.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from p2pdp.core.admission import Admission
from p2pdp.core.errors import NotReady
from p2pdp.core.ids import Peer
from p2pdp.transports.mqtt.access import StationSettings
from p2pdp.transports.mqtt.client import BrokerError, Client
from p2pdp.transports.mqtt.packets import Act, Packet, PacketError, packet_head, read_packet
from p2pdp.transports.pool import STRANGERS_MAX

if TYPE_CHECKING:
    from p2pdp.transports.mqtt.transport import Call, MqttTransport

AGAIN_S: Final = 0.05
AGAIN_MAX_S: Final = 3.0
SHORT_S: Final = 5.0  # a connection that lasts no longer than that was not worth having
SHORT_MAX: Final = 6  # in a row
NOTE_S: Final = 3.0
FLUSH_S: Final = 2.0
CALL_LIVES_S: Final = 10  # a call that nobody took until then was given up, or made anew; a probe, made again
WAITING_FRAMES_MAX: Final = 16384
WAITING_BYTES_MAX: Final = 64 * 1024 * 1024
WAITING_SPARE_MAX: Final = 1024  # for what begins and ends calls that are known, beside frames
_REFUSED: Final = (131, 135)  # of a published message: by the broker, for want of a right


class _Outgoing(NamedTuple):
    topic: str
    payload: bytes
    lives_s: int | None
    at_most_once: bool  # frames: links send them again, so the broker need not


class Endpoint:
    """One station of this process; it connects when first needed, until all its transports have left."""

    def __init__(
        self,
        settings: StationSettings,
        fresh: Callable[[int], bytes],
        say: Callable[[str], None] = lambda _text: None,
        strangers_max: int = STRANGERS_MAX,
    ) -> None:
        self.settings = settings
        self.fresh = fresh
        self.served: dict[Peer, MqttTransport] = {}
        self.transports: set[MqttTransport] = set()
        self.calls: dict[tuple[str, bytes, bool], Call] = {}  # the last: whether we called
        self.strangers: Admission[Call] = Admission()
        self.faults: dict[str, int] = {}
        self.takes_calls = False
        self._say = say
        self._strangers_max = strangers_max
        self._name = settings.name.encode("ascii")
        self._waiting: deque[_Outgoing] = deque()
        self._waiting_bytes = 0
        self._unsettled: dict[int, _Outgoing] = {}
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._flushed = asyncio.Event()
        self._ending = False
        self._broken_since_s: float | None = None
        self._noted = False

    # Calls

    @property
    def connected(self) -> bool:
        return self._client is not None

    def begin(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._stay(), name="station")

    def post(self, station: str, act: Act, call: bytes, called: Peer, frame: bytes, *, from_caller: bool) -> None:
        if act is Act.PROBE and self._client is None:
            return  # with the next connection all numbers are compared
        self.begin()
        payload = packet_head(act, call, called, self._name, from_caller=from_caller) + frame
        lives_s = CALL_LIVES_S if act in (Act.CALL, Act.PROBE) else None
        outgoing = _Outgoing(self.settings.topic(station), payload, lives_s, act is Act.FRAME)
        room = len(self._waiting) < WAITING_FRAMES_MAX and self._waiting_bytes + len(payload) <= WAITING_BYTES_MAX
        if not room and not self._spared(act, (station, call, from_caller)):
            return  # the link above sends frames again; calls, acceptances and ends are asked for again
        self._waiting.append(outgoing)
        self._waiting_bytes += len(payload)
        self._publish()

    def _spared(self, act: Act, call: tuple[str, bytes, bool]) -> bool:
        known = act is not Act.FRAME and call in self.calls
        return known and len(self._waiting) < WAITING_FRAMES_MAX + WAITING_SPARE_MAX

    def came(self, stranger: Call, station: str) -> None:
        self.strangers.add(stranger, station)
        if len(self.strangers) > self._strangers_max:
            first = self.strangers.first_to_go()
            assert first is not None
            self.strangers.discard(first)
            first.drop()

    def _heard(self, payload: bytes) -> None:
        try:
            packet = read_packet(payload)
        except PacketError:
            self._fault("malformed_packet")
            return
        call = self.calls.get((packet.station, packet.call, not packet.from_caller))
        if call is not None:
            call.hear(packet)
        elif packet.act is Act.CALL:
            self._called(packet)
        elif packet.act is not Act.END:
            if packet.act is not Act.PROBE:
                self._fault("unknown_call")
            self._end(packet)

    def _called(self, packet: Packet) -> None:
        from p2pdp.transports.mqtt.transport import Call

        transport = self.served.get(packet.called) if self.takes_calls and packet.from_caller else None
        if transport is None:
            self._end(packet)
            return
        call = Call(self, transport, packet.station, packet.call, packet.called, None)
        self.came(call, packet.station)
        call.accept()

    def _end(self, packet: Packet) -> None:
        self.post(packet.station, Act.END, packet.call, packet.called, b"", from_caller=not packet.from_caller)

    def _fault(self, kind: str) -> None:
        self.faults[kind] = self.faults.get(kind, 0) + 1

    # Publishing

    def _publish(self) -> None:
        client = self._client
        if client is None:
            return
        while self._waiting and len(self._unsettled) < client.in_flight_max:
            outgoing = self._waiting.popleft()
            self._waiting_bytes -= len(outgoing.payload)
            self._unsettled[client.publish_now(*outgoing[:3], at_most_once=outgoing.at_most_once)] = outgoing

    def _settled(self, number: int, code: int) -> None:
        self._unsettled.pop(number, None)
        if code in _REFUSED:
            self._fail(NotReady(f"the broker at {self.settings.broker} does not let this user write to others' topics"))
        if self._waiting:
            self._publish()
        elif not self._unsettled:
            self._flushed.set()

    # The connection

    async def _stay(self) -> None:
        """Stay connected; report whatever ends this but ourselves, or the station would fall silent for ever."""
        try:
            await self._connect_again_and_again()
        except Exception as error:  # noqa: BLE001  (what a library raises at what it does not expect)
            kind = type(error).__name__
            self._fail(NotReady(f"the connection to the broker at {self.settings.broker} cannot be kept: {kind}"))

    async def _connect_again_and_again(self) -> None:
        """Connect until cancelled, or until there is no point in it."""
        again_s, soon_broken = AGAIN_S, 0
        while True:
            connected_s = None
            client = Client(self.settings.broker, self.settings.login, self._heard, self._settled)
            try:
                await _undisturbed(client.enter(self.settings.topic(self.settings.name)))
                connected_s = monotonic()
                self._connected(client)
                await client.until_lost()
                self._trouble("it closed the connection")
            except BrokerError as error:
                self._trouble(str(error))
            except NotReady as error:
                self._fail(error)
                return
            finally:
                self._disconnected()
                await _undisturbed(client.leave(forget=self._ending))
            if connected_s is not None and monotonic() >= connected_s + SHORT_S:
                again_s, soon_broken = AGAIN_S, 0
            soon_broken += connected_s is not None
            if soon_broken >= SHORT_MAX:
                self._fail(
                    NotReady(
                        f"the broker at {self.settings.broker} closes each connection soon after it took it: "
                        f"somebody else may come there under the name {self.settings.login.client}"
                    )
                )
                return
            await asyncio.sleep(again_s)
            again_s = min(2 * again_s, AGAIN_MAX_S)

    def _connected(self, client: Client) -> None:
        """Take a connection into use; what the last one left unsettled goes first."""
        self._waiting.extendleft(reversed(self._unsettled.values()))
        self._waiting_bytes = sum(len(outgoing.payload) for outgoing in self._waiting)
        self._unsettled.clear()
        self._client = client
        self._publish()
        if self._noted:
            self._say(f"the broker at {self.settings.broker} is there; it goes on")
        broken, self._broken_since_s, self._noted = self._broken_since_s is not None, None, False
        if broken:
            for transport in list(self.transports):
                transport.on_broker(there=True)

    def _disconnected(self) -> None:
        was, self._client = self._client, None
        if was is not None:
            for transport in list(self.transports):
                transport.on_broker(there=False)

    def _trouble(self, why: str) -> None:
        now_s = monotonic()
        if self._broken_since_s is None:
            self._broken_since_s = now_s
        if not self._noted and now_s - self._broken_since_s >= NOTE_S:
            self._noted = True
            self._say(f"waiting for the broker at {self.settings.broker}: {why}")

    def _fail(self, error: NotReady) -> None:
        for transport in list(self.transports):
            transport.fail(error)

    async def left(self, transport: MqttTransport) -> None:
        """Let a transport go; with the last one disconnect, once what was posted has left, and be forgotten."""
        self.transports.discard(transport)
        for peer in [peer for peer, served in self.served.items() if served is transport]:
            del self.served[peer]
        task = self._task
        if self.transports or task is None or self._ending:
            return
        self._ending = True
        if self._client is not None and (self._waiting or self._unsettled):
            self._flushed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_S):
                    await self._flushed.wait()
        task.cancel()
        await asyncio.wait([task])


async def _undisturbed(work: Coroutine[Any, Any, Any]) -> None:
    """Bring to its end what a thread has begun, also when cancelled."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()
        raise
