"""Statements of where a node can be reached, which only its own identity can make, each newer than the one before.

Addresses are in no roster, since a machine may come back at another one. A statement names the run, the user's
identity, a counter that rises, and an address, all of it signed; the frame that carries it names the user.

Guarantee: `read_statement` returns what the user of the roster signed for this run, or raises `AddressError`. A peer
that passes a statement on can withhold it or show an older one, and change nothing in it. An address is a hint: the
node that answers there still has to prove its identity.

The caller owes: of two statements it believes the one with the higher counter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from p2pdp.core.addresses import AddressError, split_address
from p2pdp.core.ids import Peer
from p2pdp.crypto.identity import Identity, sign_labelled, verify_labelled
from p2pdp.crypto.roster import Roster, RosterError
from p2pdp.wire.codec import CodecError, pack, unpack
from p2pdp.wire.frames import FRAME_HEADER_BYTES, Kind, decode_frame, encode_frame
from p2pdp.wire.padding import PaddingError, pad, unpad

COUNTER_MAX: Final = (1 << 63) - 1

_LABEL: Final = "p2pdp address"
_COUNTER_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Statement:
    user: Peer
    counter: int
    address: str
    signature: bytes


def sign_statement(identity: Identity, run_id: bytes, user: Peer, counter: int, address: str) -> Statement:
    signature = sign_labelled(identity, _LABEL, *_signed_parts(run_id, identity.public, counter, address))
    return Statement(user, counter, address, signature)


def _signed_parts(run_id: bytes, public: bytes, counter: int, address: str) -> tuple[bytes, ...]:
    return run_id, public, counter.to_bytes(_COUNTER_BYTES, "big"), address.encode()


def statement_frame(statement: Statement) -> bytes:
    document = pack([statement.counter, statement.address, statement.signature])
    return encode_frame(Kind.ADDRESS, statement.user, pad(document, FRAME_HEADER_BYTES))


def read_statement(data: bytes, roster: Roster) -> Statement:
    """Verify the statement in a frame, and return it."""
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
        raise AddressError("the statement names no user of the roster, or no address")
    try:
        public = roster.entry(frame.sender).identity
    except RosterError as error:
        raise AddressError("the statement is of a user whose roster entry is not valid") from error
    if not verify_labelled(public, signature, _LABEL, *_signed_parts(roster.run_id, public, counter, address)):
        raise AddressError("the statement is not signed by the user that it names")
    return Statement(frame.sender, counter, address, signature)
