from __future__ import annotations

from typing import Any

import pytest

from p2pdp.core import messages
from p2pdp.core.messages import custody_of
from p2pdp.core.step import Custody, Message

NAMES = {name: value for name, value in vars(messages).items() if name.isupper() and isinstance(value, str)}


def test_no_two_messages_have_the_same_type() -> None:
    assert len(set(NAMES.values())) == len(NAMES)


ITEMS = [messages.BEGIN, messages.TOKEN, messages.TOTAL, messages.RELAY, messages.REPORT, messages.LOST]


@pytest.mark.parametrize("kind", ITEMS)
def test_items_that_must_not_get_lost_name_item_and_step(kind: str) -> None:
    assert custody_of(Message(kind, (2, 17), 5)) == Custody(2, 17)


@pytest.mark.parametrize("kind", sorted(set(NAMES.values()) - set(ITEMS)))
def test_other_messages_are_in_nobodys_custody(kind: str) -> None:
    assert custody_of(Message(kind, (2, 17), 5)) is None


@pytest.mark.parametrize("fields", [(), (1,), (1, 2, 3), ("1", 2), (1, 2.0), (1, None), ([1], 2), (b"1", 2), (True, 2)])
@pytest.mark.parametrize("kind", ITEMS)
def test_malformed_fields_of_a_peer_raise_nothing(kind: str, fields: tuple[Any, ...]) -> None:
    assert custody_of(Message(kind, fields)) is None


def test_idle_talk_holds_nothing_that_may_be_missed() -> None:
    """A peer that has closed misses no item, no total and no head; an order to send again comes to nothing then."""
    kept = {*ITEMS, messages.HEAD, messages.READY} - {messages.LOST}
    assert not kept & messages.IDLE_TALK
    assert set(NAMES.values()) >= messages.IDLE_TALK
