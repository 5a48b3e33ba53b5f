"""What a record of each kind says in public: one named tuple a kind, in the order in which it is stored.

`Record.body` is the named tuple of its kind, as stored and unchecked: whoever holds a node's key can sign anything, so
it may lack fields, which then raise `IndexError`, or hold what it should not. `is_whole` finds those.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final, NamedTuple

from p2pdp.core.fields import AnyBytes, AnyNumber, AnyText, AnyWhole, ListOf, Maybe, Natural, Positive, Whole, check_of

Wholes = Annotated[list[int], ListOf(Whole())]
Shape = Wholes  # of a draw: empty for a number, and its length for a vector
Index = Annotated[int | None, Maybe(Whole(0))]  # of the view record whose event this belongs to


class Opened(NamedTuple):
    """The beginning of any ledger; what follows is for its owner to know, but for `UserOpened`."""

    role: AnyText
    run_id: AnyBytes
    peer: AnyWhole


class UserOpened(NamedTuple):
    """The beginning of a user's view."""

    role: AnyText
    run_id: AnyBytes
    peer: AnyWhole
    roster_digest: AnyBytes
    values: Positive  # how many numbers it contributes
    neighbours: Annotated[list[int] | None, Maybe(ListOf(Whole()))]  # None: everybody


class Started(NamedTuple):
    now_s: AnyNumber


class ReceivedMessage(NamedTuple):
    now_s: AnyNumber
    sender: AnyWhole
    message: AnyBytes  # packed, as it crossed the wire


class OwnMessage(NamedTuple):
    """A message that a peer sends to itself."""

    now_s: AnyNumber
    message: AnyBytes


class Woken(NamedTuple):
    now_s: AnyNumber


class Drawn(NamedTuple):
    """A draw of noise, whose value is at an offset of a pool in the private ledger."""

    number: AnyWhole
    mechanism: AnyText
    scale: AnyNumber
    categories: AnyWhole
    shape: Shape
    pool: AnyWhole
    offset: AnyWhole

    @property
    def terms(self) -> tuple[Any, ...]:
        """What was drawn: mechanism, scale, categories and shape."""
        return self[1:5]


class Chosen(NamedTuple):
    options: AnyWhole
    picked: AnyWhole


class SentMessage(NamedTuple):
    receiver: AnyWhole
    message: AnyBytes


class PublishedMessage(NamedTuple):
    message: AnyBytes


class Enrolled(NamedTuple):
    now_s: AnyNumber
    token: AnyWhole
    entry: AnyBytes


class SignedRoster(NamedTuple):
    roster: AnyBytes


class Closed(NamedTuple):
    signature: AnyBytes


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
    categories: AnyWhole
    shape: Shape
    size: AnyWhole

    @property
    def terms(self) -> tuple[Any, ...]:
        """What was drawn: mechanism, scale, categories and shape."""
        return self[3:7]


class Note(NamedTuple):
    event: Natural


class Met(NamedTuple):
    """Whom a user meets in a round, on a graph that changes."""

    round: AnyWhole
    users: Wholes


# By kind, in the order of `records.KIND_NAMES`.
BODIES: Final[tuple[type[Any], ...]] = (
    UserOpened, Started, ReceivedMessage, OwnMessage, Woken, Drawn, Chosen, SentMessage, PublishedMessage, Enrolled,
    SignedRoster, Closed, Inputs, Pool, Note, Met,
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
