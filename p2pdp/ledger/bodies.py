"""The public fields of each kind of record: one named tuple a kind, in the order in which it is stored.

`Record.body` is the named tuple of its kind, as stored and unchecked: whoever holds a node's key can sign anything, so
it may lack fields, which then raise `IndexError`, or hold what it should not. `is_whole` finds those.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final, NamedTuple

from p2pdp.core.fields import (
    AnyBytes,
    AnyInteger,
    AnyNumber,
    AnyText,
    Bytes,
    Integer,
    ListOf,
    Maybe,
    Natural,
    Positive,
    check_of,
)
from p2pdp.crypto.vouchers import VOUCHER_BYTES

_PEER_BYTES: Final = 4

Integers = Annotated[list[int], ListOf(Integer())]
Voucher = Annotated[bytes, Bytes(exactly=VOUCHER_BYTES)]
Shape = Integers  # of a draw: empty for a number, and its length for a vector
Index = Annotated[int | None, Maybe(Integer(0))]  # of the view record whose event this belongs to


class Opened(NamedTuple):
    """The beginning of any ledger; what follows is for its owner to know, but for `UserOpened`."""

    role: AnyText
    run_id: AnyBytes
    peer: AnyInteger


class UserOpened(NamedTuple):
    """The beginning of a user's view."""

    role: AnyText
    run_id: AnyBytes
    peer: AnyInteger
    roster_digest: AnyBytes
    values: Positive  # how many numbers it contributes
    neighbours: Annotated[list[int] | None, Maybe(ListOf(Integer()))]  # None: everybody


class Started(NamedTuple):
    now_s: AnyNumber


class ReceivedMessage(NamedTuple):
    now_s: AnyNumber
    sender: AnyInteger
    message: AnyBytes  # packed, as it crossed the wire
    voucher: Voucher  # of the sender, see `crypto/vouchers.py`


class OwnMessage(NamedTuple):
    """A message that a peer sends to itself."""

    now_s: AnyNumber
    message: AnyBytes


class Woken(NamedTuple):
    now_s: AnyNumber


class Drawn(NamedTuple):
    """A draw of noise, whose value is at an offset of a pool in the private ledger."""

    number: AnyInteger
    mechanism: AnyText
    scale: AnyNumber
    categories: AnyInteger
    shape: Shape
    pool: AnyInteger
    offset: AnyInteger

    @property
    def terms(self) -> tuple[Any, ...]:
        """Return what was drawn: mechanism, scale, categories and shape."""
        return self[1:5]


class Chosen(NamedTuple):
    options: AnyInteger
    picked: AnyInteger


class SentMessage(NamedTuple):
    receiver: AnyInteger
    message: AnyBytes


class PublishedMessage(NamedTuple):
    message: AnyBytes


class Enrolled(NamedTuple):
    now_s: AnyNumber
    token: AnyInteger
    entry: AnyBytes


class SignedRoster(NamedTuple):
    roster: AnyBytes


class Closed(NamedTuple):
    """The end of any ledger. The signature covers all records before it, and the rest of this one.

    In a view that is the key of the owner's vouchers, and which other peers had last acknowledged its messages without
    a message of their own: the peer (4 bytes) and its voucher.
    """

    signature: AnyBytes
    voucher_key: AnyBytes
    acknowledged: Annotated[list[bytes], ListOf(Bytes(exactly=_PEER_BYTES + VOUCHER_BYTES))]


class Inputs(NamedTuple):
    event: Index
    values: Natural  # how many


class Pool(NamedTuple):
    """Values that were drawn together, before any of them is used."""

    event: Index
    number: Natural
    sampler: AnyText
    mechanism: AnyText
    scale: AnyNumber
    categories: AnyInteger
    shape: Shape
    size: AnyInteger

    @property
    def terms(self) -> tuple[Any, ...]:
        """Return what was drawn: mechanism, scale, categories and shape."""
        return self[3:7]


class Note(NamedTuple):
    event: Natural


class Met(NamedTuple):
    """The users that a user meets in a round, on a graph that changes."""

    round: AnyInteger
    users: Integers


class Paired(NamedTuple):
    """A draw that a user shares with a peer. The value part is the key from which both unfold it, with a salt."""

    peer: Natural
    number: Natural
    mechanism: AnyText
    scale: AnyNumber
    categories: AnyInteger
    shape: Shape

    @property
    def terms(self) -> tuple[Any, ...]:
        """Return what was drawn: mechanism, scale, categories and shape."""
        return self[2:6]


class RefusedMessage(NamedTuple):
    """A message that took its number and was refused: nobody was told what it says. Its bytes may be anything."""

    now_s: AnyNumber
    sender: AnyInteger
    message: AnyBytes  # as it crossed the wire
    voucher: Voucher
    fault: AnyText


# By kind, in the order of `records.KIND_NAMES`.
BODIES: Final[tuple[type[Any], ...]] = (
    UserOpened, Started, ReceivedMessage, OwnMessage, Woken, Drawn, Chosen, SentMessage, PublishedMessage, Enrolled,
    SignedRoster, Closed, Inputs, Pool, Note, Met, Paired, RefusedMessage,
)  # fmt: skip

_new: Final = tuple.__new__  # makes a named tuple of any number of items
_CHECKS: Final = tuple(map(check_of, BODIES))
_OPENED_FIELDS: Final = len(Opened._fields)
_opened: Final = check_of(Opened)


def body_of(kind: int, items: Iterable[Any]) -> Any:
    """Return the named tuple of a kind with these items, be they too many or too few."""
    return _new(BODIES[kind], items)


def is_whole(kind: int, body: tuple[Any, ...], *, of_a_user: bool = False) -> bool:
    """Return whether a body has what its kind asks for; `of_a_user` where it is of a user's view."""
    if BODIES[kind] is UserOpened and not of_a_user:
        return _opened(body[:_OPENED_FIELDS])
    return _CHECKS[kind](body)
