"""One connection to a broker: aiomqtt, with what our frames need of it and what it says when it breaks.

Incoming payloads are handed over from the callback that read them, and outgoing ones are published without a task
each, which is most of the cost of a small message. A client serves one connection and is made anew for the next:
aiomqtt reports a disconnection once, and a second one of the same client would find traces of the first. So what
the broker has not acknowledged is kept above it (`endpoint.py`).

Guarantee: only what comes for the topic that was entered is heard. The session is continued at every connection and
is kept by the broker for `SESSION_S`, unless it is `forget`ten at the end; no message is retained. An error that no
patience mends is a `NotReady` with one sentence: a password, a right or a certificate that the broker or we do not
take. Everything else is a `MqttError`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import sys
from collections.abc import Callable
from typing import Any, Final

import aiomqtt
from paho.mqtt.client import topic_matches_sub
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from p2pdp.core.errors import NotReady
from p2pdp.transports.mqtt.access import Broker, Login
from p2pdp.transports.mqtt.packets import PACKET_BYTES_MAX

CONNECT_S: Final = 5.0
KEEP_ALIVE_S: Final = 15
SILENCE_S: Final = 10.0
SESSION_S: Final = 24 * 3600
RECEIVE_MAX: Final = 1000
IN_FLIGHT_MAX: Final = 200  # what we send and the broker has not acknowledged; less if it says so
_TOPIC_BYTES_SPARE: Final = 1024  # of a packet beside its payload

_TAKEN_OVER: Final = 142
_REFUSALS: Final = {
    132: "it speaks another version of MQTT; version 5 is needed",
    133: "it does not take this name of a client",
    134: "it does not know this user, or not by this password or certificate",
    135: "it does not know this user, or not by this password or certificate",
    138: "it has banned this user",
    140: "it wants another way of proving who one is",
}


class _LastReason(logging.Logger):
    """What paho tells only to a log: why a connection broke."""

    def __init__(self) -> None:
        super().__init__("p2pdp.mqtt", logging.ERROR)
        self.reason: BaseException | None = None

    def handle(self, record: logging.LogRecord) -> None:
        for part in record.args if isinstance(record.args, tuple) else ():
            if isinstance(part, BaseException):
                self.reason = part


class Client(aiomqtt.Client):
    """To be made within a running event loop. `heard` gets payloads, `settled` what became of published ones."""

    def __init__(
        self, broker: Broker, login: Login, heard: Callable[[bytes], None], settled: Callable[[int, int], None]
    ) -> None:
        self._told = _LastReason()
        self._broker = broker
        self._heard = heard
        self._settled = settled
        self._continued = False
        self._writes = False
        self._topic = self._left = ""
        self.in_flight_max = IN_FLIGHT_MAX
        options: list[tuple[int, int, int]] = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
        if sys.platform == "linux":
            options.append((socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SILENCE_S * 1000)))
        super().__init__(
            broker.host,
            broker.port,
            username=login.user,
            password=login.password,
            logger=self._told,
            identifier=login.client,
            timeout=CONNECT_S,
            keepalive=KEEP_ALIVE_S,
            max_inflight_messages=IN_FLIGHT_MAX,
            tls_context=broker.tls,
            socket_options=options,
            **_session(version_5=broker.version_5),
        )
        self._client.connect_timeout = CONNECT_S

    async def enter(self, topic: str) -> bool:
        """Connects and subscribes; whether the broker had kept the session, for this topic or another."""
        self._topic = topic
        try:
            await self.__aenter__()
            granted = await self.subscribe(topic, qos=1)
        except aiomqtt.MqttError as error:
            self._judge(error)
            raise
        if any(_number(code) >= 128 for code in granted):
            raise NotReady(f"the broker at {self._broker} does not let this user read the topic {topic}")
        return self._continued

    def publish_now(self, topic: str, payload: bytes, lives_s: int | None) -> int:
        """Hands a payload to the connection; gives the number by which `settled` tells of it."""
        properties = None
        if lives_s is not None and self._broker.version_5:
            properties = _properties(PacketTypes.PUBLISH)
            properties.MessageExpiryInterval = lives_s
        return self._client.publish(topic, payload, 1, retain=False, properties=properties).mid

    async def until_lost(self) -> None:
        """Until the connection is no more. Raises `NotReady` where it makes no sense to make another."""
        await asyncio.wait([self._disconnected])
        error = self._disconnected.exception()
        if isinstance(error, Exception):
            self._judge(error)

    async def leave(self, *, forget: bool) -> None:
        """Disconnects, whatever became of the connection; with `forget` the broker drops the session."""
        if self._client.socket() is not None:
            properties = None
            if forget and self._broker.version_5:
                properties = _properties(PacketTypes.DISCONNECT)
                properties.SessionExpiryInterval = 0
            self._client.disconnect(properties=properties)
            if not self._disconnected.done():
                await asyncio.wait([self._disconnected], timeout=1.0)
            there = self._client.socket()
            if there is not None:
                self._on_socket_close(self._client, None, there)
                there.close()
        await asyncio.sleep(0)  # what the connection asked of the loop from its thread is done now
        misc, self._misc_task = self._misc_task, None
        if misc is not None:
            misc.cancel()
            await asyncio.wait([misc])
        for known in (self._connected, self._disconnected):
            if known.done() and not known.cancelled():
                known.exception()  # it has been told of, if anybody wanted to know

    def why(self, error: Exception) -> str:
        """A few words on what happened, without anything that a stranger wrote."""
        known = self._told.reason or error.__cause__ or error.__context__ or error
        if isinstance(known, ssl.SSLError):
            return f"TLS failed ({known.reason or 'closed'})"
        if isinstance(known, OSError):
            return known.strerror or type(known).__name__
        return "it closed the connection" if isinstance(error, aiomqtt.MqttCodeError) else "it does not answer"

    def _judge(self, error: Exception) -> None:
        """Raises `NotReady` for what stays as it is however often one tries."""
        known = self._told.reason or error.__cause__ or error.__context__
        if isinstance(known, ssl.SSLCertVerificationError):
            raise NotReady(
                f"the broker at {self._broker} has a certificate that is not accepted: {known.verify_message}"
            ) from None
        if isinstance(known, ssl.SSLError) and "ALERT" in (known.reason or ""):
            alert = known.reason.rpartition("ALERT_")[2].replace("_", " ").lower()
            raise NotReady(f"the broker at {self._broker} does not accept our side of TLS: {alert}") from None
        if isinstance(known, ssl.SSLError) and known.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
            raise NotReady(f"the broker at {self._broker} does not speak TLS at this port") from None
        code = _number(getattr(error, "rc", None))
        if code == _TAKEN_OVER:
            raise NotReady(f"somebody else came to the broker at {self._broker} under the same name") from None
        if code in _REFUSALS:
            raise NotReady(f"the broker at {self._broker} refuses us: {_REFUSALS[code]}") from None

    # aiomqtt.Client

    def _on_connect(self, client: Any, userdata: Any, flags: Any, reason_code: Any, properties: Any = None) -> None:
        self._continued = bool(flags.session_present)
        receive_max = getattr(properties, "ReceiveMaximum", None)
        if receive_max is not None:
            self.in_flight_max = min(IN_FLIGHT_MAX, receive_max)
        super()._on_connect(client, userdata, flags, reason_code, properties)

    def _on_disconnect(self, client: Any, userdata: Any, flags: Any, reason_code: Any, properties: Any = None) -> None:
        """One that comes before the answer to our first word would be waited out by aiomqtt."""
        if not self._connected.done():
            self._connected.set_exception(aiomqtt.MqttCodeError(reason_code, "closed"))
        super()._on_disconnect(client, userdata, flags, reason_code, properties)
        if self._disconnected.done():
            self._disconnected.exception()  # aiomqtt may forget this future before anybody has looked at it

    def _on_socket_register_write(self, client: Any, userdata: Any, sock: Any) -> None:
        """Writes in the next turn of the loop; a watcher is for what the system did not take at once."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # the thread that connects
            super()._on_socket_register_write(client, userdata, sock)
            return
        if not self._writes:
            self._writes = True
            loop.call_soon(self._write)

    def _write(self) -> None:
        self._writes = False
        there = self._client.socket()
        if there is None:
            return
        try:
            self._client.loop_write()
        except Exception as error:  # noqa: BLE001  (as aiomqtt does: the connection broke)
            if not self._disconnected.done():
                self._disconnected.set_exception(error)
            return
        if self._client.want_write() and self._client.socket() is there:
            self._loop.add_writer(there.fileno(), self._write)

    def _on_socket_unregister_write(self, client: Any, userdata: Any, sock: Any) -> None:
        if sock.fileno() >= 0:
            self._loop.remove_writer(sock.fileno())

    def _on_socket_close(self, client: Any, userdata: Any, sock: Any) -> None:
        self._on_socket_unregister_write(client, userdata, sock)
        super()._on_socket_close(client, userdata, sock)

    def _on_message(self, client: Any, userdata: Any, message: Any) -> None:
        """A session that is continued may read the topic of another run too; that is over."""
        topic = message.topic
        if topic == self._topic or topic_matches_sub(self._topic, topic):
            self._heard(message.payload)
        elif topic != self._left:
            self._left = topic
            self._client.unsubscribe(topic)

    def _on_publish(self, client: Any, userdata: Any, mid: int, reason_code: Any, properties: Any) -> None:
        self._settled(mid, _number(reason_code))


def _session(*, version_5: bool) -> dict[str, Any]:
    if not version_5:
        return {"protocol": aiomqtt.ProtocolVersion.V311, "clean_session": False}
    properties = _properties(PacketTypes.CONNECT)
    properties.SessionExpiryInterval = SESSION_S
    properties.ReceiveMaximum = RECEIVE_MAX
    properties.MaximumPacketSize = PACKET_BYTES_MAX + _TOPIC_BYTES_SPARE
    return {"protocol": aiomqtt.ProtocolVersion.V5, "clean_start": False, "properties": properties}


def _properties(kind: int) -> Any:
    """Fields are set by their names in the standard."""
    return Properties(kind)  # type: ignore[no-untyped-call]


def _number(code: Any) -> int:
    value = getattr(code, "value", code)
    return value if isinstance(value, int) else 0
