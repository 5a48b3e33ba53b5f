from __future__ import annotations

from base64 import b64decode
from hashlib import pbkdf2_hmac

from p2pdp.transports.mqtt.mosquitto import (
    ACCESS_LIST,
    PACKET_BYTES_MAX,
    fresh_password,
    mosquitto_settings,
    password_hash,
    password_lines,
)
from p2pdp.wire.padding import FRAME_BYTES_MAX
from tests.support.sources import TOP


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
