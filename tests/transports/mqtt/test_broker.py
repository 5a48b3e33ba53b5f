from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
from base64 import b64decode
from hashlib import pbkdf2_hmac
from pathlib import Path
from typing import Any

import pytest

from p2pdp.core.errors import NotReady
from p2pdp.transports.mqtt import broker
from p2pdp.transports.mqtt.access import Broker, Login
from p2pdp.transports.mqtt.broker import (
    ACCESS_LIST,
    LOOPBACK,
    PACKET_BYTES_MAX,
    fresh_password,
    mosquitto_settings,
    own_broker,
    password_hash,
    password_lines,
)
from p2pdp.transports.mqtt.client import BrokerError, Client
from p2pdp.wire.padding import FRAME_BYTES_MAX
from tests.support.mosquitto import mosquitto
from tests.support.sources import TOP

KINDS = ("mosquitto", "amqtt")


def choose(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "mosquitto":
        mosquitto()
    else:
        monkeypatch.setattr(shutil, "which", lambda *_arguments, **_options: None)


async def enters(there: Broker, login: Login, topic: str) -> Client:
    client = Client(there, login, lambda _payload: None, lambda _number, _code: None)
    try:
        await client.enter(topic)
    except BaseException:
        await client.leave(forget=False)
        raise
    return client


@pytest.mark.parametrize("kind", KINDS)
def test_only_its_stations_come_in_and_each_reads_its_own_topic(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    choose(kind, monkeypatch)

    async def story(there: Broker, passwords: Any) -> None:
        client = await enters(there, Login("a", "a", passwords["a"]), "p2pdp/run/a")
        await client.leave(forget=True)
        for login in (Login("a", "a", passwords["b"]), Login("c", "c", passwords["a"]), Login("a")):
            with pytest.raises((NotReady, BrokerError)):
                await enters(there, login, "p2pdp/run/a")
        if kind == "amqtt":  # Mosquitto grants any subscription, and then passes nothing on
            with pytest.raises(NotReady, match="read the topic"):
                await enters(there, Login("a", "a", passwords["a"]), "p2pdp/run/b")

    with own_broker(["a", "b"]) as process:
        process.check()
        known = process.broker
        assert known.version_5 == (kind == "mosquitto")
        assert set(known.passwords) == {"a", "b"}
        assert not any(password in repr(known) for password in known.passwords.values())
        asyncio.run(story(Broker(LOOPBACK, known.port, version_5=known.version_5), known.passwords))
        child = process._process.pid
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_nobody_takes_over_the_session_of_another_by_its_name() -> None:
    mosquitto()

    async def story(there: Broker, passwords: Any) -> None:
        heard = asyncio.get_running_loop().create_future()
        one = Client(there, Login("a", "a", passwords["a"]), heard.set_result, lambda _number, _code: None)
        await one.enter("p2pdp/run/a")
        other = await enters(there, Login("a", "b", passwords["b"]), "p2pdp/run/b")
        other.publish_now("p2pdp/run/a", b"still there", None)
        async with asyncio.timeout(240):
            assert await heard == b"still there"
        for client in (one, other):
            await client.leave(forget=True)

    with own_broker(["a", "b"]) as process:
        asyncio.run(story(Broker(LOOPBACK, process.broker.port), process.broker.passwords))


def test_somebody_else_at_its_port_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mosquitto()
    with socket.create_server((LOOPBACK, 0)) as somebody:
        free = broker._free_port()
        ports = [free, somebody.getsockname()[1]]
        monkeypatch.setattr(broker, "_free_port", ports.pop)
        with own_broker(["a"]) as process:
            assert process.broker.port == free
            process.check()


def test_it_leaves_no_file_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mosquitto()
    monkeypatch.setattr(broker.tempfile, "tempdir", str(tmp_path))
    with own_broker(["a"]):
        assert list(tmp_path.iterdir()) == [], "what it has read is gone once it listens"


def test_one_that_ends_by_itself_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    mosquitto()
    with own_broker(["a"]) as process:
        os.kill(process._process.pid, signal.SIGKILL)
        os.waitid(os.P_PID, process._process.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(NotReady, match="p2pdp resume"):
            process.check()


def test_without_any_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    choose("none", monkeypatch)
    monkeypatch.setattr(broker, "find_spec", lambda _name: None)
    with pytest.raises(NotReady, match=r"install mosquitto .*'\.\[broker\]'"), own_broker(["a"]):
        pass


def test_one_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    mosquitto()
    monkeypatch.setattr(broker, "ACCESS_LIST", "rubbish\n")
    with pytest.raises(NotReady, match=r"mosquitto does not start: ."), own_broker(["a"]):
        pass


def test_a_password_is_hashed_as_mosquitto_hashes_it() -> None:
    empty, kind, rounds, salt, hashed = password_hash("secret").split("$")
    assert (empty, kind) == ("", "7")
    assert pbkdf2_hmac("sha512", b"secret", b64decode(salt), int(rounds), 64) == b64decode(hashed)
    assert password_hash("secret") != password_hash("secret"), "each has a salt of its own"
    assert "secret" not in password_lines({"a": "secret"})


def test_passwords_are_long_and_fresh() -> None:
    passwords = {fresh_password() for _ in range(100)}
    assert len(passwords) == 100
    assert min(map(len, passwords)) >= 32


def test_nobody_comes_in_without_a_secret_and_the_largest_frame_passes() -> None:
    text = mosquitto_settings("listener 1", password_file="p", access_file="a")  # noqa: S106  (a path)
    assert "allow_anonymous false\n" in text
    assert "use_username_as_clientid true\n" in text
    assert "persistence false\n" in text
    assert PACKET_BYTES_MAX > FRAME_BYTES_MAX + 1024
    kept = mosquitto_settings("listener 1", password_file=None, access_file="a", persistence="/x/")
    assert "persistence_location /x/\n" in kept
    assert "password_file" not in kept


def test_the_settings_for_containers_are_those_that_keygen_writes() -> None:
    place = TOP / "deploy" / "mosquitto"
    listener = (
        "listener 8883\ncafile /mosquitto/config/ca.pem\ncertfile /mosquitto/config/server.pem\n"
        "keyfile /mosquitto/config/server.key\ntls_version tlsv1.2"
    )
    places = {"password_file": "/mosquitto/config/passwords", "access_file": "/mosquitto/config/acl"}
    expected = mosquitto_settings(listener, **places, persistence="/mosquitto/data")
    written = (place / "mosquitto.conf").read_text()
    assert written[written.index("listener 8883") :] == expected
    assert (place / "acl").read_text() == ACCESS_LIST
