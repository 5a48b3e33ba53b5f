"""Types of messages, and those that every protocol shares: the life of a run, exclusion, results, items on their way.

A `MessageType` says once what a message is: its fields, whether it carries a value, who sends it to whom, and what
happens to it when somebody is missing. The check on receipt, the auditor's check of records, custody and the guide's
page `messages` follow from it. A protocol adds types of its own to `COMMON` in `Protocol.messages`.

Fields are read by name: `Item(*message.fields).step`. A message that must not get lost names its item and its step, so
that after an exclusion it can be settled who has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Final, NamedTuple

from p2pdp.core.endings import COMPLAINT, STALLED, STOP, STOPPED, Complaint, Stop, Stopped, Waiting
from p2pdp.core.fields import Bytes, Check, Integer, ListOf, Natural, Row, check_of, fields_of
from p2pdp.core.step import Custody, Message

MALFORMED: Final = "malformed"  # the kind of the fault
_HASH_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 64
_new: Final = tuple.__new__  # a named tuple takes its arguments through a function of Python


class Value(Enum):
    """The condition under which a type of messages carries a value."""

    NONE = "none"
    MAYBE = "if there is one"
    ALWAYS = "always"
    FILLER = "bytes of nobody"


_HAS_VALUE: Final = {Value.NONE: False, Value.MAYBE: None, Value.ALWAYS: True, Value.FILLER: True}


class NoFields(NamedTuple):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageType:
    """One message. `item`, `step` and `before` name the fields that hold these, if any does."""

    name: str
    routes: str  # who sends it to whom: "user -> curator", several with commas
    meaning: str
    fields: type[Any] = NoFields
    value: Value = Value.NONE
    item: str | None = None  # what it passes on: a token's number, or that of a report's hop
    step: str | None = None  # when: the step, round or activation that it belongs to
    before: str | None = None  # the number that a report had a hop before; its value is what came with that
    custody: bool = False  # it must not get lost: after an exclusion its item is sent again
    droppable: bool = False  # a peer that has closed takes none, and nothing is missing then

    def read(self, message: Message) -> Any:
        """Return a message's fields by name."""
        return _new(self.fields, message.fields)

    def named(self, field: str | None, message: Message) -> Any:
        """Return one field of a message; None where this type has none for that."""
        return None if field is None else getattr(self.read(message), field)

    def goes(self, sender: str, receiver: str) -> bool:
        """Return whether this kind of party sends it to that one."""
        return f"{sender} -> {receiver}" in self.routes.split(", ")


class MessageTable:
    """The types of messages that one protocol's runs have, by name."""

    def __init__(self, *types: MessageType) -> None:
        self._types = {one.name: one for one in types}
        if len(self._types) != len(types):
            raise ValueError("two types of messages have the same name")
        self._checks = {one.name: (check_of(one.fields), _HAS_VALUE[one.value]) for one in types}
        self._custody: dict[str, tuple[Check, int, int]] = {}
        for one in types:
            names = [name for name, _ in fields_of(one.fields)]
            for field in (one.item, one.step, one.before):
                if field is not None and field not in names:
                    raise ValueError(f"message {one.name!r} has no field {field!r}")
            if one.custody:
                if one.item is None or one.step is None:
                    raise ValueError(f"message {one.name!r} is in custody and names no item or no step")
                places = names.index(one.item), names.index(one.step)
                self._custody[one.name] = (check_of(one.fields), *places)

    def plus(self, *types: MessageType) -> MessageTable:
        """Return a table with these types besides."""
        return MessageTable(*self, *types)

    def __iter__(self) -> Iterator[MessageType]:
        return iter(self._types.values())

    def get(self, name: str) -> MessageType | None:
        """Return the type of this name, if it is here."""
        return self._types.get(name)

    def sent(self, sender: str, receiver: str) -> frozenset[str]:
        """Return the names of what one kind of party sends another."""
        return frozenset(one.name for one in self if one.goes(sender, receiver))

    @property
    def droppable(self) -> frozenset[str]:
        """Return the names of what a closed peer need not take."""
        return frozenset(one.name for one in self if one.droppable)

    def fits(self, message: Message, *, has_value: bool) -> bool:
        """Return whether a message is of a type that is here, and has its fields and a value as that says."""
        known = self._checks.get(message.type)
        if known is None:
            return False
        check, expected = known
        return (expected is None or has_value is expected) and check(message.fields)

    def problem(self, message: Message) -> str | None:
        """Return what is wrong with the form of a message, as the kind of a fault."""
        return None if self.fits(message, has_value=message.value is not None) else MALFORMED

    def item_of(self, message: Message) -> Any:
        """Return the item that a message names; None where its type names none."""
        one = self._types.get(message.type)
        return None if one is None else one.named(one.item, message)

    def step_of(self, message: Message) -> Any:
        """Return the step that a message names; None where its type names none."""
        one = self._types.get(message.type)
        return None if one is None else one.named(one.step, message)

    def custody_of(self, message: Message) -> Custody | None:
        """Return the item and step that a message carries, if it is one that must not get lost."""
        places = self._custody.get(message.type)
        if places is None or not places[0](message.fields):
            return None
        fields = message.fields
        return _new(Custody, (fields[places[1]], fields[places[2]]))


Hash = Annotated[bytes, Bytes(exactly=_HASH_BYTES)]
Signature = Annotated[bytes, Bytes(exactly=_SIGNATURE_BYTES)]
AnyPeer = Annotated[int, Integer(-2)]  # the roles are -1 and -2
Users = Annotated[list[int], ListOf(Integer(0))]


class Item(NamedTuple):
    item: Natural
    step: Natural


class OnePeer(NamedTuple):
    peer: AnyPeer


class Exclusion(NamedTuple):
    peer: AnyPeer
    signature: Signature


class LedgerHead(NamedTuple):
    hash: Hash


class SkeletonPiece(NamedTuple):
    offset: Natural
    length: Natural  # of the whole skeleton


class Resolution(NamedTuple):
    out: Users
    orders: Annotated[list[list[int]], ListOf(Row(("user", "count"), Integer(0)))]  # how often each got LOST


class Settling(NamedTuple):
    peer: AnyPeer
    receipts: Annotated[list[list[int]], ListOf(Row(("before", "item", "step"), Integer(0)))]
    claims: Annotated[list[list[int]], ListOf(Row(("item", "step"), Integer(0)))]


class EndedReport(NamedTuple):
    came_by: Natural
    step: Natural


class OpenedReport(NamedTuple):
    name: Natural


class Rounds(NamedTuple):
    rounds: Natural


READY: Final = "ready"
GO: Final = "go"
FINISHED: Final = "finished"
FINAL: Final = "final"
RESULT: Final = "result"
DONE: Final = "done"
HEAD: Final = "head"
SKELETON: Final = "skeleton"
OVER: Final = "over"
_LIFE: Final = (
    MessageType(name=READY, routes="user -> bootstrap, curator -> bootstrap", meaning="roster checked, ledger open"),
    MessageType(
        name=GO, routes="bootstrap -> user, bootstrap -> curator", meaning="everybody is ready", droppable=True
    ),
    MessageType(
        name=FINISHED,
        routes="user -> curator",
        meaning="its part is done; with its result if the spec publishes that",
        value=Value.MAYBE,
    ),
    MessageType(
        name=FINAL,
        routes="user -> itself",
        meaning="its own result, after so many rounds",
        fields=Rounds,
        value=Value.ALWAYS,
        step="rounds",
    ),
    MessageType(
        name=RESULT,
        routes="curator -> user, curator publishes",
        meaning="what the spec publishes",
        value=Value.MAYBE,
        droppable=True,
    ),
    MessageType(name=DONE, routes="curator -> bootstrap", meaning="the result is published; nothing can get lost now"),
    MessageType(
        name=HEAD,
        routes="user -> curator, bootstrap -> curator",
        meaning="the hash of all records of its closed ledger, and not how many they are",
        fields=LedgerHead,
    ),
    MessageType(
        name=SKELETON,
        routes="user -> curator, bootstrap -> curator",
        meaning="a piece of a skeleton, handed in by its owner",
        fields=SkeletonPiece,
        value=Value.ALWAYS,
    ),
    MessageType(name=OVER, routes="curator -> bootstrap", meaning="the heads of all users are in"),
)

SILENT: Final = "silent"
PROBE: Final = "probe"
ALIVE: Final = "alive"
SPARED: Final = "spared"
OUT: Final = "out"
EXCLUDED: Final = "excluded"
BLOCKED: Final = "blocked"
SEEN: Final = "seen"
LOST: Final = "lost"
RESOLVED: Final = "resolved"
_EXCLUSION: Final = (
    MessageType(
        name=SILENT,
        routes="bootstrap -> itself, curator -> bootstrap",
        meaning="a peer was not heard of; from the curator: it owes its head",
        fields=OnePeer,
        droppable=True,
    ),
    MessageType(name=PROBE, routes="bootstrap -> user, bootstrap -> curator", meaning="are you there", droppable=True),
    MessageType(
        name=ALIVE, routes="user -> bootstrap, curator -> bootstrap", meaning="the answer to a probe", droppable=True
    ),
    MessageType(
        name=SPARED,
        routes="bootstrap -> curator, curator -> bootstrap, bootstrap -> itself",
        meaning="the peer lives, keep waiting; and back: its head is here; to itself: it is heard again",
        fields=OnePeer,
        droppable=True,
    ),
    MessageType(
        name=OUT,
        routes="bootstrap -> user, bootstrap -> curator",
        meaning="the peer is excluded; refuse it from now on",
        fields=Exclusion,
        droppable=True,
    ),
    MessageType(
        name=EXCLUDED, routes="bootstrap publishes", meaning="the same decision, for everybody", fields=Exclusion
    ),
    MessageType(
        name=BLOCKED,
        routes="bootstrap publishes",
        meaning="the peer is silent, and the run cannot go on without it",
        fields=OnePeer,
    ),
    MessageType(
        name=SEEN,
        routes="user -> bootstrap, curator -> bootstrap",
        meaning="the answer to OUT: what the sender had from the peer, and what it had passed to peers that are out",
        fields=Settling,
        droppable=True,
    ),
    MessageType(
        name=LOST,
        routes="bootstrap -> user",
        meaning="what the receiver passed on last is lost; send it elsewhere",
        fields=Item,
        item="item",
        step="step",
        custody=True,
        droppable=True,
    ),
    MessageType(
        name=RESOLVED,
        routes="bootstrap -> curator",
        meaning="these exclusions are settled, and so many items are sent again",
        fields=Resolution,
        droppable=True,
    ),
)

_ENDINGS: Final = (
    MessageType(
        name=COMPLAINT, routes="user -> bootstrap, curator -> bootstrap", fields=Complaint, droppable=True,
        meaning="the sender refused a message of this peer",
    ),
    MessageType(
        name=STALLED, routes="user -> itself, user -> bootstrap, curator -> bootstrap", fields=Waiting, droppable=True,
        meaning="nothing came to the sender for long; it waits for these",
    ),
    MessageType(
        name=STOP, routes="bootstrap -> user, bootstrap -> curator", fields=Stop, droppable=True,
        meaning="there will be no result",
    ),
    MessageType(name=STOPPED, routes="bootstrap publishes", fields=Stopped, meaning="why, and who is concerned"),
)  # fmt: skip

BEGIN: Final = "begin"
TOKEN: Final = "token"
TOTAL: Final = "total"
REPORT: Final = "report"
OPENED_REPORT: Final = "opened"
HEEDED: Final = "heeded"
_ITEMS: Final = (
    MessageType(
        name=BEGIN,
        routes="bootstrap -> user",
        meaning="start this item; its step is 0",
        fields=Item,
        item="item",
        step="step",
        custody=True,
    ),
    MessageType(
        name=TOKEN,
        routes="user -> user, user -> itself",
        meaning="an item on its way; its step is the one at which the receiver contributes",
        fields=Item,
        value=Value.ALWAYS,
        item="item",
        step="step",
        custody=True,
    ),
    MessageType(
        name=TOTAL,
        routes="user -> curator",
        meaning="an item at its end, after its last step",
        fields=Item,
        value=Value.ALWAYS,
        item="item",
        step="step",
        custody=True,
    ),
    MessageType(
        name=REPORT,
        routes="user -> curator",
        meaning="a sealed report at its end, after the last round",
        fields=EndedReport,
        value=Value.ALWAYS,
        item="came_by",
        step="step",
        before="came_by",
    ),
    MessageType(
        name=OPENED_REPORT,
        routes="curator -> itself",
        meaning="a report without its seal, and the name that was inside",
        fields=OpenedReport,
        value=Value.ALWAYS,
        item="name",
    ),
    MessageType(
        name=HEEDED,
        routes="user -> curator",
        meaning="a report that was lost goes on from here, or was handed in just now",
        droppable=True,
    ),
)

COMMON: Final = MessageTable(*_LIFE, *_EXCLUSION, *_ENDINGS, *_ITEMS)
