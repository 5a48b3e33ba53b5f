"""The place of a peer: an `Address`, which a socket can dial, or a `Station`, a name that a transport knows.

An address is written `host:port`; an IPv6 host stands in square brackets. A station is a plain name, fit to be a user
at a broker, a client's name and a part of a topic.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, NamedTuple

from p2pdp.core.errors import UsageError

PORT_MAX: Final = (1 << 16) - 1
ADDRESS_CHARS_MAX: Final = 255  # as in a join token
STATION_LETTERS_MAX: Final = 64
_STATION: Final = re.compile(rf"[A-Za-z0-9._@-]{{1,{STATION_LETTERS_MAX}}}")


class AddressError(Exception):
    """A text that is no address, or bytes of a peer that state none."""


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return join_address(self.host, self.port)


def is_station(name: str) -> bool:
    return _STATION.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Station:
    name: str

    def __post_init__(self) -> None:
        """Refuse what could be no part of a topic."""
        if not is_station(self.name):
            raise ValueError("a station has up to 64 letters, digits, or one of . _ @ -")

    def __str__(self) -> str:
        return self.name


Place = Address | Station

ROLES_STATION: Final = Station("bootstrap")  # of bootstrap and curator, where nobody names another


def user_station(number: int) -> Station:
    """Return the station of a node that has no name of its own, by its slot or join token."""
    return Station(f"node-{number:04d}")


def split_address(text: str) -> Address:
    """Read an address, or raise `AddressError`."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    bare = host[1:-1] if bracketed else host
    plain = all("!" <= letter <= "~" and letter not in "#[]/" for letter in bare) and len(text) <= ADDRESS_CHARS_MAX
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= len(str(PORT_MAX)) else -1
    if not (colon and bare and plain and 0 <= number <= PORT_MAX) or (":" in bare) != bracketed:
        raise AddressError("must read HOST:PORT, with a port from 0 to 65535 and an IPv6 host in square brackets")
    return Address(bare, number)


def split_option(option: str, text: str) -> Address:
    """Read the address that an option of a command gives."""
    try:
        return split_address(text)
    except AddressError as error:
        raise UsageError(f"{option} {text}: {error}") from None


def join_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_wildcard(host: str) -> bool:
    """Return whether it stands for all addresses of a machine, and so for none that others could dial."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:  # a name
        return False
