from __future__ import annotations

from typing import Any

import pytest

from p2pdp.core import messages
from p2pdp.core.messages import custody_of
from p2pdp.core.step import Custody, Message

NAMES = {name: value for name, value in vars(messages).items() if name.isupper() and isinstance(value, str)}


def test_no_two_messages_have_the_same_type() -> None:
    assert len(set(NAMES.values())) == len(NAMES)


ITEMS = [messages.BEGIN, messages.TOKEN, messages.TOTAL, messages.LOST]


@pytest.mark.parametrize("kind", ITEMS)
def test_items_that_must_not_get_lost_name_item_and_step(kind: str) -> None:
    assert custody_of(Message(kind, (2, 17), 5)) == Custody(2, 17)


def test_a_reports_item_is_the_hop_that_it_makes() -> None:
    assert custody_of(Message(messages.RELAY, (70, 71, 3), b"sealed")) == Custody(71, 3)
    for fields in ((70, 71), (70, 71, 3, 4), (70, 71, "3"), (70, b"", 3)):
        assert custody_of(Message(messages.RELAY, fields)) is None


@pytest.mark.parametrize("kind", sorted(set(NAMES.values()) - set(ITEMS)))
def test_other_messages_are_in_nobodys_custody(kind: str) -> None:
    assert custody_of(Message(kind, (2, 17), 5)) is None


@pytest.mark.parametrize("fields", [(), (1,), (1, 2, 3), ("1", 2), (1, 2.0), (1, None), ([1], 2), (b"1", 2), (True, 2)])
@pytest.mark.parametrize("kind", ITEMS)
def test_malformed_fields_of_a_peer_raise_nothing(kind: str, fields: tuple[Any, ...]) -> None:
    assert custody_of(Message(kind, fields)) is None


def test_idle_talk_holds_nothing_that_may_be_missed() -> None:
    """A peer that has closed misses no item, no total and no head; an order to send again comes to nothing then."""
    kept = {*ITEMS, messages.RELAY, messages.REPORT, messages.HEAD, messages.READY} - {messages.LOST}
    assert not kept & messages.IDLE_TALK
    assert set(NAMES.values()) >= messages.IDLE_TALK
