"""One connection to a broker: paho's client on our event loop, with what frames need of it and why it broke.

Incoming payloads are handed over from the callback that read them, and outgoing ones are published without a task
each, which is most of the cost of a small message. A client serves one connection and is made anew for the next. So
what the broker has not acknowledged is kept above it (`endpoint.py`).

Guarantee: only what comes for the topic that was entered is heard. The session is continued at every connection and
is kept by the broker for `SESSION_S`, unless it is `forget`ten at the end; no message is retained. An error that no
patience mends is a `NotReady` with one sentence: a password, a right or a certificate that the broker or we do not
take. Everything else is a `BrokerError`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import sys
from collections.abc import Callable
from typing import Any, Final

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from p2pdp.core.errors import NotReady
from p2pdp.transports.mqtt.access import Broker, Login
from p2pdp.transports.mqtt.packets import PACKET_BYTES_MAX

CONNECT_S: Final = 5.0
KEEP_ALIVE_S: Final = 15
LOOK_S: Final = 1.0  # between looks at whether the broker still answers
LEAVE_S: Final = 1.0
SILENCE_S: Final = 10.0
SESSION_S: Final = 24 * 3600
RECEIVE_MAX: Final = 1000
IN_FLIGHT_MAX: Final = 200  # what we send and the broker has not acknowledged; less if it says so
_TOPIC_BYTES_SPARE: Final = 1024  # of a packet beside its payload

_FAILED: Final = 128  # reason codes from here on are errors
_TAKEN_OVER: Final = 142
_REFUSALS: Final = {
    132: "it speaks another version of MQTT; version 5 is needed",
    133: "it does not take this name of a client",
    134: "it does not know this user, or not by this password or certificate",
    135: "it does not know this user, or not by this password or certificate",
    138: "it has banned this user",
    140: "it wants another way of proving who one is",
}


class BrokerError(Exception):
    """The connection could not be made, or broke; a few words say why, without anything that a stranger wrote."""


class _LastReason(logging.Logger):
    """The error that broke a connection, which paho writes only to a log."""

    def __init__(self) -> None:
        super().__init__("p2pdp.mqtt", logging.ERROR)
        self.reason: BaseException | None = None

    def handle(self, record: logging.LogRecord) -> None:
        for part in record.args if isinstance(record.args, tuple) else ():
            if isinstance(part, BaseException):
                self.reason = part


class Client:
    """Make it within a running event loop. `heard` gets payloads, `settled` what became of published ones."""

    def __init__(
        self, broker: Broker, login: Login, heard: Callable[[bytes], None], settled: Callable[[int, int], None]
    ) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._broker = broker
        self._heard = heard
        self._settled = settled
        self._told = _LastReason()
        self._connected: asyncio.Future[int] = loop.create_future()  # with the broker's reason code
        self._granted: asyncio.Future[int] = loop.create_future()
        self._lost: asyncio.Future[int] = loop.create_future()
        self._continued = False
        self._soon: Callable[..., object] = loop.call_soon_threadsafe
        self._writes = False
        self._look: asyncio.TimerHandle | None = None
        self._topic = self._left = ""
        self.in_flight_max = IN_FLIGHT_MAX
        self._paho = paho.Client(
            CallbackAPIVersion.VERSION2,
            login.client,
            clean_session=None if broker.version_5 else False,
            protocol=MQTTProtocolVersion.MQTTv5 if broker.version_5 else MQTTProtocolVersion.MQTTv311,
            reconnect_on_failure=False,
        )
        self._paho.enable_logger(self._told)
        self._paho.connect_timeout = CONNECT_S
        self._paho.max_inflight_messages_set(IN_FLIGHT_MAX)
        if login.user is not None:
            self._paho.username_pw_set(login.user, login.password)
        if broker.tls is not None:
            self._paho.tls_set_context(broker.tls)
        for name in ("connect", "disconnect", "subscribe", "message", "publish"):
            setattr(self._paho, f"on_{name}", getattr(self, f"_on_{name}"))
        for name in ("open", "close", "register_write", "unregister_write"):
            setattr(self._paho, f"on_socket_{name}", getattr(self, f"_on_socket_{name}"))

    async def enter(self, topic: str) -> bool:
        """Connect and subscribe; return whether the broker had kept the session, for this topic or another."""
        self._topic = topic
        try:
            await self._loop.run_in_executor(None, self._connect)  # which blocks until TLS is agreed on
            self._soon = self._loop.call_soon
        except OSError as error:
            raise self._trouble(error) from None
        code = await self._answer(self._connected)
        if code >= _FAILED:
            raise self._trouble(code=code)
        self._paho.subscribe(topic, 1)
        if await self._answer(self._granted) >= _FAILED:
            raise NotReady(f"the broker at {self._broker} does not let this user read the topic {topic}")
        return self._continued

    def publish_now(self, topic: str, payload: bytes, lives_s: int | None, *, at_most_once: bool = False) -> int:
        """Hand a payload to the connection; return the number by which `settled` tells of it.

        With `at_most_once` that is when it left, else when the broker has it.
        """
        properties = None
        if lives_s is not None and self._broker.version_5:
            properties = _properties(PacketTypes.PUBLISH)
            properties.MessageExpiryInterval = lives_s
        return self._paho.publish(topic, payload, 0 if at_most_once else 1, retain=False, properties=properties).mid

    async def until_lost(self) -> None:
        """Wait until the connection is no more. Raise `NotReady` where it makes no sense to make another."""
        await asyncio.wait([self._lost])
        error = self._trouble(code=self._lost.result())
        if isinstance(error, NotReady):
            raise error

    async def leave(self, *, forget: bool) -> None:
        """Disconnect, whatever became of the connection; with `forget` the broker drops the session."""
        if self._paho.socket() is not None:
            properties = None
            if forget and self._broker.version_5:
                properties = _properties(PacketTypes.DISCONNECT)
                properties.SessionExpiryInterval = 0
            self._paho.disconnect(properties=properties)
            await asyncio.wait([self._lost], timeout=LEAVE_S)
            there = self._paho.socket()
            if there is not None:  # it takes no last word
                self._on_socket_close(self._paho, None, there)
                there.close()
        await asyncio.sleep(0)  # what the connection asked of the loop from its thread is done now
        if self._look is not None:
            self._look.cancel()

    def _connect(self) -> None:
        options: dict[str, Any] = {}
        if self._broker.version_5:
            properties = _properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = SESSION_S
            properties.ReceiveMaximum = RECEIVE_MAX
            properties.MaximumPacketSize = PACKET_BYTES_MAX + _TOPIC_BYTES_SPARE
            options = {"clean_start": False, "properties": properties}
        self._paho.connect(self._broker.host, self._broker.port, KEEP_ALIVE_S, **options)

    async def _answer(self, answer: asyncio.Future[int]) -> int:
        """Wait for the broker's answer, or raise what came instead."""
        await asyncio.wait([answer, self._lost], timeout=CONNECT_S, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        raise self._trouble(code=self._lost.result() if self._lost.done() else None)

    def _trouble(self, error: BaseException | None = None, code: int | None = None) -> Exception:
        """Return a `NotReady` for what stays as it is however often one tries, else a `BrokerError`.

        `code` is the broker's, None where it said nothing.
        """
        known = self._told.reason or error
        if isinstance(known, ssl.SSLCertVerificationError):
            return NotReady(
                f"the broker at {self._broker} has a certificate that is not accepted: {known.verify_message}"
            )
        if isinstance(known, ssl.SSLError) and "ALERT" in (known.reason or ""):
            alert = known.reason.rpartition("ALERT_")[2].replace("_", " ").lower()
            return NotReady(f"the broker at {self._broker} does not accept our side of TLS: {alert}")
        if isinstance(known, ssl.SSLError) and known.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
            return NotReady(f"the broker at {self._broker} does not speak TLS at this port")
        if code == _TAKEN_OVER:
            return NotReady(f"somebody else came to the broker at {self._broker} under the same name")
        if code in _REFUSALS:
            return NotReady(f"the broker at {self._broker} refuses us: {_REFUSALS[code]}")
        if isinstance(known, ssl.SSLError):
            return BrokerError(f"TLS failed ({known.reason or 'closed'})")
        if isinstance(known, OSError):
            return BrokerError(known.strerror or type(known).__name__)
        return BrokerError("it does not answer" if code is None else "it closed the connection")

    # Callbacks of paho, in our event loop

    def _on_connect(self, _client: Any, _data: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._continued = bool(flags.session_present)
        receive_max = getattr(properties, "ReceiveMaximum", None)
        if receive_max is not None:
            self.in_flight_max = min(IN_FLIGHT_MAX, receive_max)
        _settle(self._connected, _number(reason))

    def _on_disconnect(self, _client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        _settle(self._lost, _number(reason))

    def _on_subscribe(self, _client: Any, _data: Any, _number_of: int, reasons: list[Any], _properties: Any) -> None:
        _settle(self._granted, max(map(_number, reasons), default=0))

    def _on_message(self, _client: Any, _data: Any, message: Any) -> None:
        """Hear a message, unless a session that is continued reads the topic of another run too; that is over."""
        topic = message.topic
        if topic == self._topic or paho.topic_matches_sub(self._topic, topic):
            self._heard(message.payload)
        elif topic != self._left:
            self._left = topic
            self._paho.unsubscribe(topic)

    def _on_publish(self, _client: Any, _data: Any, number: int, reason: Any, _properties: Any) -> None:
        self._settled(number, _number(reason))

    # The socket: opened in the thread that connects, and used in the loop

    def _on_socket_open(self, _client: Any, _data: Any, there: Any) -> None:
        there.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if sys.platform == "linux":
            there.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SILENCE_S * 1000))
        self._loop.call_soon_threadsafe(self._loop.add_reader, there.fileno(), self._read)
        self._loop.call_soon_threadsafe(self._look_again)

    def _on_socket_close(self, _client: Any, _data: Any, there: Any) -> None:
        self._on_socket_unregister_write(_client, _data, there)
        if there.fileno() >= 0:
            self._loop.remove_reader(there.fileno())

    def _on_socket_register_write(self, _client: Any, _data: Any, _there: Any) -> None:
        """Write in the next turn of the loop; a watcher is for what the system did not take at once."""
        if not self._writes:
            self._writes = True
            self._soon(self._write)

    def _on_socket_unregister_write(self, _client: Any, _data: Any, there: Any) -> None:
        if there.fileno() >= 0:
            self._loop.remove_writer(there.fileno())

    def _read(self) -> None:
        """Read what is there; TLS may hold more of it than the system shows."""
        try:
            while self._paho.loop_read() == paho.MQTT_ERR_SUCCESS:
                there = self._paho.socket()
                if not isinstance(there, ssl.SSLSocket) or there.pending() == 0:
                    return
        except Exception:  # noqa: BLE001  (whatever paho raises at what it does not expect: the connection broke)
            _settle(self._lost, 0)

    def _write(self) -> None:
        self._writes = False
        there = self._paho.socket()
        if there is None:
            return
        try:
            self._paho.loop_write()
        except Exception:  # noqa: BLE001  (as above)
            _settle(self._lost, 0)
            return
        if self._paho.want_write() and self._paho.socket() is there:
            self._loop.add_writer(there.fileno(), self._write)

    def _look_again(self) -> None:
        """Ask whether the broker is there where it was silent for long."""
        if self._paho.loop_misc() == paho.MQTT_ERR_SUCCESS:
            self._look = self._loop.call_later(LOOK_S, self._look_again)


def _settle(answer: asyncio.Future[int], code: int) -> None:
    if not answer.done():
        answer.set_result(code)


def _properties(kind: int) -> Any:
    """Return empty properties, whose fields are set by their names in the standard."""
    return Properties(kind)  # type: ignore[no-untyped-call]


def _number(reason: Any) -> int:
    value = getattr(reason, "value", reason)
    return value if isinstance(value, int) else 0
