from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.addresses import AddressError, Station
from p2pdp.core.errors import NotReady, UsageError
from p2pdp.core.spec import TransportPart
from p2pdp.crypto.certificates import Authority, Pair
from p2pdp.transports.mqtt.access import (
    Broker,
    BrokerAddress,
    Login,
    StationSettings,
    announced,
    broker_of,
    own_station,
    passwords_of,
    read_broker_address,
)

NAMES = st.text("abcXYZ019._@-", min_size=1, max_size=64)
NOW = datetime.now(UTC)


def written(place: Path, text: str, mode: int = 0o600) -> str:
    path = place / "passwords"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def pair_in(place: Path, pair: Pair, name: str = "own") -> TransportPart:
    (place / f"{name}.pem").write_bytes(pair.certificate)
    (place / f"{name}.key").write_bytes(pair.key)
    return TransportPart(certificate=str(place / f"{name}.pem"), key=str(place / f"{name}.key"))


def test_without_files_it_is_in_clear_and_nothing_else_is(tmp_path: Path) -> None:
    assert broker_of(TransportPart(), "broker", None) == Broker("broker", 1883)
    ca = tmp_path / "ca.pem"
    ca.write_bytes(Authority(NOW).pair.certificate)
    for broker in (
        broker_of(TransportPart(ca=str(ca)), "broker", None),
        broker_of(TransportPart(), "broker", None, tls=True),
        broker_of(pair_in(tmp_path, Authority(NOW).client("me", NOW)), "broker", None),
    ):
        assert broker.port == 8883
        assert broker.tls is not None
        assert broker.tls.verify_mode is ssl.CERT_REQUIRED
        assert broker.tls.check_hostname
        assert broker.tls.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert broker_of(TransportPart(ca=str(ca)), "broker", 7).port == 7


def test_a_password_crosses_no_network_in_clear(tmp_path: Path) -> None:
    part = TransportPart(user="me", password_file=written(tmp_path, "secret\n"))
    for host in ("localhost", "127.0.0.1", "::1"):
        assert broker_of(part, host, None).tls is None
    for host in ("broker", "10.0.0.1", "localhost.example"):
        with pytest.raises(UsageError, match=r"\[transport\] ca: missing"):
            broker_of(part, host, None)
    assert broker_of(part, "broker", None, tls=True).tls is not None


@pytest.mark.parametrize("host", ["a..b", f"{'a' * 64}.example", ".a"])
def test_a_host_that_no_resolver_takes_is_refused(host: str) -> None:
    with pytest.raises(UsageError, match=r"\[transport\] host: .* is no host name"):
        broker_of(TransportPart(), host, None)


def test_wrong_files_are_named(tmp_path: Path) -> None:
    rubbish = tmp_path / "rubbish"
    rubbish.write_text("no certificate")
    good = pair_in(tmp_path, Authority(NOW).client("me", NOW))
    other = pair_in(tmp_path, Authority(NOW).client("me", NOW), "other")
    cases = [
        (TransportPart(ca=str(tmp_path / "nowhere")), "ca: .*nowhere"),
        (TransportPart(ca=str(rubbish)), "ca: .*rubbish"),
        (TransportPart(key=good.key), "key: belongs"),
        (TransportPart(certificate=good.certificate), "key: missing"),
        (TransportPart(certificate=good.certificate, key=other.key), "certificate: .* belong together"),
        (TransportPart(certificate=str(rubbish), key=good.key), "certificate: .*rubbish"),
    ]
    for part, says in cases:
        with pytest.raises(UsageError, match=says):
            broker_of(part, "broker", None)


def test_a_certificate_out_of_date_is_refused_before_anybody_is_dialled(tmp_path: Path) -> None:
    old = Authority(NOW).client("me", NOW - timedelta(days=9), days=1)
    with pytest.raises(NotReady, match="expired on"):
        broker_of(pair_in(tmp_path, old), "broker", None)


def test_passwords_of_one_and_of_all(tmp_path: Path) -> None:
    assert passwords_of(TransportPart()) == {}
    assert passwords_of(TransportPart(user="me", password_file=written(tmp_path, "se:cret\n"))) == {"me": "se:cret"}
    every = TransportPart(password_file=written(tmp_path, "me:a:b\nyou:c\n\n"))
    assert passwords_of(every) == {"me": "a:b", "you": "c"}
    assert passwords_of(TransportPart(user="you", password_file=every.password_file)) == {"me": "a:b", "you": "c"}


@pytest.mark.parametrize(
    ("text", "mode", "user", "says"),
    [
        ("secret", 0o604, "me", "everybody may read it"),
        ("", 0o600, "me", "is empty"),
        ("secret", 0o600, None, "lines user:password"),
        ("a:b\nc:d", 0o600, "me", "no line for the user me"),
        ("a/b:c", 0o600, None, r"\[transport\] user"),
    ],
)
def test_password_files_that_will_not_do(tmp_path: Path, text: str, mode: int, user: str | None, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        passwords_of(TransportPart(user=user, password_file=written(tmp_path, text, mode)))
    assert "secret" not in str(caught.value).replace("password", "")


def test_a_station_is_announced_as_an_address() -> None:
    assert asyncio.run(announced(Station("me"), Broker("broker", 8883))()) == "me:8883"
    assert own_station("me") == Station("me")
    with pytest.raises(UsageError, match="user"):
        own_station("#")


def test_a_place_has_topics_below_its_run() -> None:
    place = StationSettings(Broker("broker", 8883), Login("me"), "abc", "me")
    assert place.topic("other") == "p2pdp/abc/other"
    assert (str(Broker("broker", 8883)), str(Broker("::1", 1))) == ("broker:8883", "[::1]:1")


@pytest.mark.parametrize(("run", "name"), [("a/b", "me"), ("abc", "+"), ("", "me"), ("abc", "#")])
def test_what_could_be_no_part_of_a_topic_is_refused(run: str, name: str) -> None:
    with pytest.raises(ValueError, match="topic"):
        StationSettings(Broker("broker", 1), Login("me"), run, name)


def test_passwords_are_in_no_repr() -> None:
    assert "hidden" not in repr(StationSettings(Broker("broker", 1), Login("me", "me", "hidden"), "abc", "me"))


@given(st.sampled_from(["broker.example", "10.0.0.1", "::1"]), st.integers(1, 65535), st.booleans(), NAMES, NAMES)
def test_what_is_written_is_read(host: str, port: int, tls: bool, run: str, station: str) -> None:
    address = BrokerAddress(host, port, tls, run, Station(station))
    assert read_broker_address(address.to_text()) == address
    assert address.to_text().startswith("mqtts://" if tls else "mqtt://")


@pytest.mark.parametrize(
    "text",
    [
        "mqtts://broker/run/bootstrap",
        "mqtts://broker:0/run/bootstrap",
        "mqtts://broker:1/run",
        "mqtts://broker:1/run/boot/strap",
        "mqtts://broker:1/+/bootstrap",
        "mqtts://broker:1/run/#",
        "mqtt://",
        "boot.example:7000",
        "http://broker:1/run/bootstrap",
    ],
)
def test_half_an_address_is_refused(text: str) -> None:
    with pytest.raises(AddressError):
        read_broker_address(text)
