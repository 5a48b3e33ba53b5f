from __future__ import annotations

from typing import Any

import pytest

from p2pdp.core import messages
from p2pdp.core.messages import REPORT
from p2pdp.core.step import Custody, Message
from p2pdp.protocols import protocol
from p2pdp.protocols.shuffle.plan import COVER, COVER_HOP, MARK, MESSAGES, RELAY, SEED, STAY_OPTIONS, Hop, check_shuffle
from p2pdp.topology.graphs import complete_graph
from p2pdp.wire.codec import pack_message
from tests.support.shuffle_world import NAME_BYTES, plan_of

PLAN = plan_of(complete_graph(4), 3, slots=2)
BARE = plan_of(complete_graph(4), 3)
SEALED = bytes(NAME_BYTES + 1)
LEAST = 1 << 16
GOOD = [
    Message(RELAY, (LEAST, LEAST, 1), SEALED),
    Message(RELAY, (COVER_HOP - 1, LEAST, 3), SEALED),
    Message(messages.REPORT, (LEAST, 4), SEALED),
    Message(COVER, (COVER_HOP, COVER_HOP, 2), SEALED),
    Message(MARK, (3,)),
    Message(messages.FINISHED),
]
BAD: list[tuple[Message, str]] = [
    *((Message(RELAY, fields, SEALED), "malformed")
      for fields in ((LEAST - 1, LEAST, 1), (LEAST, COVER_HOP, 1), (LEAST, LEAST, 0), (LEAST, LEAST, 4), (LEAST, 1))),
    *((Message(messages.REPORT, fields, SEALED), "malformed")
      for fields in ((-1, 4), (LEAST, 3), (LEAST, 5), (COVER_HOP, 4))),
    *((Message(kind, (LEAST, *at), value), "bad_value")
      for kind, at in ((RELAY, (LEAST, 1)), (messages.REPORT, (4,)))
      for value in (b"", SEALED + b"0", 7)),
    *((Message(COVER, fields, SEALED), "malformed")
      for fields in ((), (1, 1, 2), (COVER_HOP, COVER_HOP, 0), (COVER_HOP, COVER_HOP, 4))),
    *((Message(COVER, (COVER_HOP, COVER_HOP, 2), value), "bad_value") for value in (b"", 0)),
    *((Message(MARK, fields), "malformed") for fields in ((), (0,), (4,), (1, 1), (1.0,), ("1",))),
    *((Message(kind, (LEAST, LEAST, 1)), "malformed") for kind in (RELAY, COVER)),
    (Message(MARK, (1,), SEALED), "malformed"),
    (Message(messages.FINISHED, (1,)), "malformed"),
    (Message(messages.FINISHED, (), 3), "malformed"),
]  # fmt: skip


def problem(message: Message) -> str | None:
    return MESSAGES.problem(message) or check_shuffle(PLAN, message)


@pytest.mark.parametrize("message", GOOD)
def test_messages_of_the_promised_form_pass(message: Message) -> None:
    assert problem(message) is None


@pytest.mark.parametrize(("message", "kind"), BAD)
def test_others_are_named(message: Message, kind: str) -> None:
    assert problem(message) == kind


def test_cover_is_as_long_as_a_report_on_its_way() -> None:
    for number in (1, 127, 128, 70_000):
        hops = (LEAST, COVER_HOP - 1)
        reports = {len(pack_message(Message(RELAY, (hop, hop, number), SEALED))) for hop in hops}
        assert reports == {len(pack_message(Message(COVER, (COVER_HOP, COVER_HOP, number), SEALED)))}


def test_cover_belongs_to_runs_that_have_it() -> None:
    assert check_shuffle(BARE, Message(COVER, (COVER_HOP, COVER_HOP, 2), SEALED)) == "malformed"


def test_what_is_public_of_a_run() -> None:
    assert (PLAN.starts, PLAN.needed, PLAN.length) == ((), 1, 3)
    assert SEED in PLAN.mechanisms
    assert BARE.exchanges(6) == 2 * 6 * 3 + 4 * 3
    assert PLAN.exchanges(6) == 2 * 6 * 3 * (1 + 2)
    lazy: Any = plan_of(complete_graph(4), 10, stay=0.25)
    assert lazy.exchanges(6) == 2 * 6 * 10 + 30
    assert lazy.stay_below == STAY_OPTIONS // 4


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
