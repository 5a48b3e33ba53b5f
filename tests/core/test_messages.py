from __future__ import annotations

from typing import Any

import pytest

from p2pdp.core import messages
from p2pdp.core.endings import STALLED
from p2pdp.core.messages import COMMON, MALFORMED, Exclusion, Item, MessageTable, MessageType, Value
from p2pdp.core.step import Custody, Message

NAMES = {
    value
    for name, value in vars(messages).items()
    if name.isupper() and not name.startswith("_") and isinstance(value, str)
} - {MALFORMED}


def test_every_name_has_a_type() -> None:
    assert {one.name for one in COMMON} == NAMES


ITEMS = [messages.BEGIN, messages.TOKEN, messages.TOTAL, messages.LOST]


@pytest.mark.parametrize("kind", ITEMS)
def test_items_that_must_not_get_lost_name_item_and_step(kind: str) -> None:
    message = Message(kind, (2, 17), 5)
    assert COMMON.custody_of(message) == Custody(2, 17)
    assert (COMMON.item_of(message), COMMON.step_of(message)) == (2, 17)


@pytest.mark.parametrize("kind", sorted(NAMES - set(ITEMS)))
def test_other_messages_are_in_nobodys_custody(kind: str) -> None:
    assert COMMON.custody_of(Message(kind, (2, 17), 5)) is None


@pytest.mark.parametrize("fields", [(), (1,), (1, 2, 3), ("1", 2), (1, 2.0), (1, None), ([1], 2), (b"1", 2), (True, 2)])
@pytest.mark.parametrize("kind", ITEMS)
def test_malformed_fields_of_a_peer_raise_nothing(kind: str, fields: tuple[Any, ...]) -> None:
    message = Message(kind, fields, 5)
    assert COMMON.custody_of(message) is None
    assert COMMON.problem(message) == MALFORMED


def test_what_may_be_dropped_holds_nothing_that_may_be_missed() -> None:
    """A peer that has closed misses no item, no total and no head; an order to send again comes to nothing then."""
    kept = {*ITEMS, messages.REPORT, messages.HEAD, messages.READY} - {messages.LOST}
    assert not kept & COMMON.droppable


def test_a_value_is_there_as_the_type_says() -> None:
    for value, with_one, without in (
        (Value.NONE, False, True),
        (Value.MAYBE, True, True),
        (Value.ALWAYS, True, False),
        (Value.FILLER, True, False),
    ):
        table = MessageTable(MessageType(name="m", routes="user -> user", meaning="", value=value))
        assert table.fits(Message("m"), has_value=True) is with_one
        assert table.fits(Message("m"), has_value=False) is without
        assert (table.problem(Message("m", (), 0)) is None) is with_one


def test_what_is_unknown_is_malformed_and_names_nothing() -> None:
    unknown = Message("what", (1, 2))
    assert COMMON.problem(unknown) == MALFORMED
    assert (COMMON.get("what"), COMMON.item_of(unknown), COMMON.step_of(unknown)) == (None, None, None)


def test_fields_are_read_by_name_also_where_there_are_too_few() -> None:
    out = COMMON.get(messages.OUT)
    assert out is not None
    assert out.read(Message(messages.OUT, (3, b"signed"))) == Exclusion(3, b"signed")
    with pytest.raises(IndexError):
        out.named("signature", Message(messages.OUT, (3,)))
    assert out.named(None, Message(messages.OUT, (3,))) is None


def test_routes_are_those_that_are_named() -> None:
    assert messages.SPARED in COMMON.sent("bootstrap", "curator") & COMMON.sent("curator", "bootstrap")
    assert COMMON.sent("user", "itself") == {messages.TOKEN, messages.FINAL, STALLED}
    assert not COMMON.sent("user", "boot")


@pytest.mark.parametrize(
    "changed",
    [{"item": "token"}, {"before": "hop"}, {"custody": True}, {"custody": True, "item": "item"}],
)
def test_a_type_that_contradicts_itself_is_no_type(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="message 'm'"):
        MessageTable(MessageType(name="m", routes="user -> user", meaning="", fields=Item, **changed))
    with pytest.raises(ValueError, match="same name"):
        COMMON.plus(MessageType(name=messages.TOKEN, routes="user -> user", meaning=""))
