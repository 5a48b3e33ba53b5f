"""Where a node can be reached: statements that only its own identity can make, each newer than the one before.

Addresses are in no roster, since a machine may come back at another one. A statement names the run, the user's
identity, a counter that rises, and an address, all of it signed; the frame that carries it says whose it is.

Guarantee: `read_statement` gives what the user of the roster signed for this run, or raises `AddressError`.
Whoever passes a statement on can withhold it or show an older one, and change nothing in it. An address is a
hint, as everywhere: who answers there still has to prove who it is.

The caller owes: of two statements it believes the one with the higher counter.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from p2pdp.core.ids import Peer
from p2pdp.crypto.identity import Identity, sign_labelled, verify_labelled
from p2pdp.crypto.roster import Roster, RosterError
from p2pdp.wire.codec import CodecError, pack, unpack
from p2pdp.wire.frames import FRAME_HEADER_BYTES, Kind, decode_frame, encode_frame
from p2pdp.wire.padding import PaddingError, pad, unpad

COUNTER_MAX: Final = (1 << 63) - 1
PORT_MAX: Final = (1 << 16) - 1

_LABEL: Final = "p2pdp address"
_ADDRESS_CHARS_MAX: Final = 255  # as in a join token
_COUNTER_BYTES: Final = 8


class AddressError(Exception):
    """Bytes of a peer that are no statement of the user they name, or a text that is no address."""


@dataclass(frozen=True, slots=True)
class Statement:
    user: Peer
    counter: int
    address: str
    signature: bytes

    @property
    def place(self) -> tuple[str, int]:
        return split_address(self.address)


def split_address(text: str) -> tuple[str, int]:
    """Host and port of `host:port`; an IPv6 host stands in square brackets."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    bare = host[1:-1] if bracketed else host
    plain = all("!" <= letter <= "~" and letter not in "#[]/" for letter in bare) and len(text) <= _ADDRESS_CHARS_MAX
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= len(str(PORT_MAX)) else -1
    if not (colon and bare and plain and 0 <= number <= PORT_MAX) or (":" in bare) != bracketed:
        raise AddressError("must read HOST:PORT, with a port from 0 to 65535 and an IPv6 host in square brackets")
    return bare, number


def join_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_wildcard(host: str) -> bool:
    """Whether it stands for all addresses of a machine, and so for none that others could dial."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:  # a name
        return False


def sign_statement(identity: Identity, run_id: bytes, user: Peer, counter: int, address: str) -> Statement:
    signature = sign_labelled(identity, _LABEL, *_signed_parts(run_id, identity.public, counter, address))
    return Statement(user, counter, address, signature)


def _signed_parts(run_id: bytes, public: bytes, counter: int, address: str) -> tuple[bytes, ...]:
    return run_id, public, counter.to_bytes(_COUNTER_BYTES, "big"), address.encode()


def statement_frame(statement: Statement) -> bytes:
    document = pack([statement.counter, statement.address, statement.signature])
    return encode_frame(Kind.ADDRESS, statement.user, pad(document, FRAME_HEADER_BYTES))


def read_statement(data: bytes, roster: Roster) -> Statement:
    """The statement in a frame, once it is verified."""
    try:
        frame = decode_frame(data)
        parts = unpack(unpad(frame.body, FRAME_HEADER_BYTES))
    except (CodecError, PaddingError) as error:
        raise AddressError("malformed statement") from error
    well_formed = isinstance(parts, list) and [type(part) for part in parts] == [int, str, bytes]
    if frame.kind is not Kind.ADDRESS or not well_formed or not 0 <= parts[0] <= COUNTER_MAX:
        raise AddressError("malformed statement")
    counter, address, signature = parts
    if not 0 <= frame.sender < roster.n or split_address(address)[1] == 0:
        raise AddressError("a statement of nobody, or of no address")
    try:
        public = roster.entry(frame.sender).identity
    except RosterError as error:
        raise AddressError("a statement of somebody whose roster entry is not valid") from error
    if not verify_labelled(public, signature, _LABEL, *_signed_parts(roster.run_id, public, counter, address)):
        raise AddressError("a statement that is not signed by the user it names")
    return Statement(frame.sender, counter, address, signature)
