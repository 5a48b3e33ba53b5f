from __future__ import annotations

import pytest

from p2pdp.core.messages import COMMON
from p2pdp.core.step import Message
from p2pdp.protocols import names, protocol
from p2pdp.protocols.decision import COLLECTED, DECISION, SURVIVORS, Absent, Survivors, survivors_bytes

TABLE = COMMON.plus(*DECISION)


@pytest.mark.parametrize(
    ("message", "fits"),
    [
        (Message(COLLECTED, ([],)), True),
        (Message(COLLECTED, ([1, 5],)), True),
        (Message(COLLECTED, (5,)), False),
        (Message(SURVIVORS, ([2], bytes(64))), True),
        (Message(SURVIVORS, ([2], bytes(63))), False),
        (Message(SURVIVORS, ([-1], bytes(64))), False),
        (Message(SURVIVORS, ([2],)), False),
    ],
)
def test_a_decision_names_users_and_is_signed(message: Message, fits: bool) -> None:
    assert (TABLE.problem(message) is None) is fits


def test_only_bootstrap_decides() -> None:
    assert TABLE.sent("bootstrap", "user") - COMMON.sent("bootstrap", "user") == {SURVIVORS}
    assert TABLE.sent("curator", "bootstrap") - COMMON.sent("curator", "bootstrap") == {COLLECTED}
    assert not TABLE.sent("curator", "user") - COMMON.sent("curator", "user")


def test_fields_are_read_by_name() -> None:
    assert Absent(*Message(COLLECTED, ([1],)).fields).absent == [1]
    assert Survivors([1], b"s").signature == b"s"


def test_what_is_signed_tells_decisions_apart() -> None:
    signed = [survivors_bytes(absent) for absent in ([], [0], [1], [0, 1], [256], [1, 0])]
    assert len(set(signed)) == len(signed)


def test_who_has_a_collector_has_its_messages() -> None:
    for name in names():
        assert (protocol(name).messages.get(SURVIVORS) is not None) == (name == "pairwise.sum")
