"""The address of a broker and the logins of stations: tokens, passwords, certificates. Loads nothing of MQTT.

Each station reads its own topic and writes to those of others, all below the run's:

    p2pdp/<run>/<station>

so that a broker's access list needs two lines for all runs and nodes (`broker.py`). A join token names the broker,
the run and bootstrap's station:

    mqtts://broker.example.org:8883/<run>/<station>

`mqtts` asks for TLS, and a node that has such a token uses nothing else; `mqtt` is a connection in clear.

Guarantee: with `ca` or `certificate` the connection is TLS, and the broker's certificate and name are verified,
against `ca` or else against what the system trusts; there is no way round it and no fallback. A password goes in
clear to this very machine only. A certificate of ours that is out of date is refused before anybody is dialled.
Every error names the key of the section `[transport]`.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from p2pdp.core.addresses import AddressError, Station, is_station, join_address, split_address
from p2pdp.core.errors import NotReady, UsageError
from p2pdp.core.spec import TransportPart

PORT: Final = 1883
TLS_PORT: Final = 8883
SCHEMES: Final = {"mqtt": False, "mqtts": True}  # whether each asks for TLS


@dataclass(frozen=True)
class Broker:
    """The place of a broker. `tls` verifies its certificate and its name; without it the connection is in clear.

    Without `version_5` it speaks MQTT 3.1.1: sessions have no end, and calls that wait in one do not expire.
    """

    host: str
    port: int
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    version_5: bool = True

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Login:
    """The name and secrets of a client. Two clients of one name push each other out."""

    client: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class StationSettings:
    """A station's name in a run at a broker."""

    broker: Broker
    login: Login
    run: str
    name: str

    def __post_init__(self) -> None:
        """Refuse what could be no part of a topic."""
        if not (is_station(self.name) and is_station(self.run)):
            raise ValueError("this can be no part of a topic")

    def topic(self, station: str) -> str:
        return f"p2pdp/{self.run}/{station}"


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """The place of bootstrap at a broker."""

    host: str
    port: int
    tls: bool
    run: str
    station: Station

    def to_text(self) -> str:
        scheme = "mqtts" if self.tls else "mqtt"
        return f"{scheme}://{join_address(self.host, self.port)}/{self.run}/{self.station}"


def read_broker_address(text: str) -> BrokerAddress:
    """Read an address of a join token, or raise `AddressError`."""
    scheme, _, rest = text.partition("://")
    place, *parts = rest.split("/")
    host, port = split_address(place)
    if scheme not in SCHEMES or len(parts) != 2 or port == 0 or not all(map(is_station, parts)):
        raise AddressError("must read mqtts://HOST:PORT/RUN/STATION, or mqtt:// for a broker without TLS")
    return BrokerAddress(host, port, SCHEMES[scheme], parts[0], Station(parts[1]))


def broker_of(part: TransportPart, host: str, port: int | None, *, tls: bool = False) -> Broker:
    """Return the broker at this host; `tls` asks for TLS also where the section names no files."""
    _check_host(host)
    context = _tls(part) if tls or part.ca is not None or part.certificate is not None else None
    if part.key is not None and part.certificate is None:
        raise UsageError("[transport] key: belongs to a certificate; name that as well, or neither")
    if context is None and part.password_file is not None and not _is_here(host):
        raise UsageError(
            f"[transport] ca: missing; without TLS the password would travel to {host} in clear "
            "(p2pdp keygen --tls makes what a broker needs)"
        )
    return Broker(host, port or (PORT if context is None else TLS_PORT), context)


def passwords_of(part: TransportPart) -> dict[str, str]:
    """Read lines `user:password` of the password file; if the section names the user, one password alone will do."""
    if part.password_file is None:
        return {}
    lines = read_secret_text(Path(part.password_file), "[transport] password_file").splitlines()
    if part.user is not None and len(lines) == 1 and not lines[0].startswith(f"{part.user}:"):
        return {part.user: lines[0]}
    found = dict(_user_and_password(line) for line in lines if line.strip())
    if part.user is not None and part.user not in found:
        raise UsageError(f"[transport] password_file: has no line for the user {part.user}")
    return found


def announced(station: Station, broker: Broker) -> Callable[[], Awaitable[str]]:
    """Return what tells others where a node is: its station, written as an address is."""

    async def told() -> str:
        return join_address(station.name, broker.port)

    return told


def own_station(user: str) -> Station:
    """Return the station of a node that comes as this user."""
    if not is_station(user):
        raise UsageError("[transport] user: must be up to 64 letters, digits, or one of . _ @ -")
    return Station(user)


def _user_and_password(line: str) -> tuple[str, str]:
    user, colon, password = line.partition(":")
    if not colon:
        raise UsageError(
            "[transport] password_file: must hold the password of [transport] user, or lines user:password"
        )
    return own_station(user).name, password


def _check_host(host: str) -> None:
    """Refuse a name at which the resolver would fail in a thread of its own."""
    try:
        host.encode("idna")
    except UnicodeError:
        raise UsageError(
            f"[transport] host: {host!r} is no host name; between its dots are 1 to 63 letters each"
        ) from None


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tls(part: TransportPart) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=part.ca)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"[transport] ca: {part.ca}: {_why(error)}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if part.certificate is not None:
        if part.key is None:
            raise UsageError("[transport] key: missing; a certificate is worth nothing without it")
        try:
            context.load_cert_chain(part.certificate, part.key, password=_no_passphrase)
        except (OSError, ssl.SSLError, ValueError) as error:
            raise UsageError(f"[transport] certificate: {part.certificate} with {part.key}: {_why(error)}") from None
        _check_date(Path(part.certificate))
    return context


def _no_passphrase() -> str:
    raise ValueError("the key is locked by a passphrase, and nobody is here to type it")


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return "is no such file in PEM, or the two do not belong together"
    return str(error.strerror) if isinstance(error, OSError) else str(error)


def _check_date(path: Path) -> None:
    from cryptography import x509

    certificate: Any = x509.load_pem_x509_certificate(path.read_bytes())
    if certificate.not_valid_after_utc < datetime.now(UTC):
        day = certificate.not_valid_after_utc.date()
        raise NotReady(f"[transport] certificate: {path}: expired on {day}; make another one with p2pdp keygen --tls")


def read_secret_text(path: Path, what: str) -> str:
    """Read a secret text of its owner's; `what` names the key that holds the path."""
    try:
        text = path.read_text().strip()
        mode = path.stat().st_mode
    except OSError as error:
        raise UsageError(f"{what}: {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{what}: {path}: is no text") from None
    if mode & 0o007:  # a group may be the one through which a container gets its secrets
        raise UsageError(f"{what}: {path}: everybody may read it; run chmod 600 on it")
    if not text:
        raise UsageError(f"{what}: {path}: is empty")
    return text
