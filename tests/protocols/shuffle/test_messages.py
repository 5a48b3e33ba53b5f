from __future__ import annotations

import pytest

from p2pdp.core.messages import REPORT
from p2pdp.core.step import Custody, Message
from p2pdp.protocols import protocol
from p2pdp.protocols.shuffle.messages import COVER, MARK, MESSAGES, RELAY, Hop


def test_a_reports_item_is_the_hop_that_it_makes() -> None:
    assert MESSAGES.custody_of(Message(RELAY, (70, 71, 3), b"sealed")) == Custody(71, 3)
    for fields in ((70, 71), (70, 71, 3, 4), (70, 71, "3"), (70, b"", 3)):
        assert MESSAGES.custody_of(Message(RELAY, fields)) is None


@pytest.mark.parametrize("kind", [COVER, MARK, REPORT])
def test_nobody_looks_for_other_messages(kind: str) -> None:
    assert MESSAGES.custody_of(Message(kind, (70, 71, 3), b"sealed")) is None


def test_reports_say_what_they_came_by_and_cover_says_nothing() -> None:
    for kind, fields in ((RELAY, (70, 71, 3)), (REPORT, (70, 4))):
        known = MESSAGES.get(kind)
        assert known is not None
        assert known.named(known.before, Message(kind, fields)) == 70
    cover = Message(COVER, Hop(1, 1, 3), b"")
    assert (MESSAGES.item_of(cover), MESSAGES.step_of(cover)) == (None, None)


def test_both_protocols_have_these_messages() -> None:
    assert protocol("shuffle.all").messages is protocol("shuffle.single").messages is MESSAGES
