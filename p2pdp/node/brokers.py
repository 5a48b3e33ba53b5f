"""The broker that a `[transport]` section names, and what it takes to be let in: passwords, certificates.

Guarantee: with `ca` or `certificate` the connection is TLS, and the broker's certificate and name are verified,
against `ca` or else against what the system trusts; there is no way round it and no fallback. A password goes in
clear to this very machine only. A certificate of ours that is out of date is refused before anybody is dialled.
Every error names the key of the section.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from p2pdp.core.errors import NotReady, UsageError
from p2pdp.core.spec import TransportPart
from p2pdp.core.stations import is_station
from p2pdp.crypto.addresses import join_address
from p2pdp.files.keys import read_secret_text
from p2pdp.transports.mqtt_places import PORT, TLS_PORT, Broker


def broker_of(part: TransportPart, host: str, port: int | None, *, tls: bool = False) -> Broker:
    """The broker at this host; `tls` asks for it also where the section names no files."""
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
    """Lines `user:password` of the password file; where the section names the user, one password alone will do."""
    if part.password_file is None:
        return {}
    lines = read_secret_text(Path(part.password_file), "[transport] password_file").splitlines()
    if part.user is not None and len(lines) == 1 and not lines[0].startswith(f"{part.user}:"):
        return {part.user: lines[0]}
    found = dict(_user_and_password(line) for line in lines if line.strip())
    if part.user is not None and part.user not in found:
        raise UsageError(f"[transport] password_file: has no line for the user {part.user}")
    return found


def announced(name: str, broker: Broker) -> Callable[[], Awaitable[str]]:
    """What others are told of a node at a broker: its station, written as an address is."""

    async def told() -> str:
        return join_address(name, broker.port)

    return told


def station_name(user: str) -> str:
    if not is_station(user):
        raise UsageError("[transport] user: must be up to 64 letters, digits, or one of . _ @ -")
    return user


def _user_and_password(line: str) -> tuple[str, str]:
    user, colon, password = line.partition(":")
    if not colon:
        raise UsageError(
            "[transport] password_file: must hold the password of [transport] user, or lines user:password"
        )
    return station_name(user), password


def _check_host(host: str) -> None:
    """The resolver would break off at such a name, in a thread of its own."""
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
