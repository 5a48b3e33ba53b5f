from __future__ import annotations

import pytest

from p2pdp.core.step import Message
from p2pdp.ledger.messages import carries_message, packed_message, public_message, whole_message
from p2pdp.ledger.records import (
    CHOSEN,
    CLOSED,
    KIND_NAMES,
    LEDGER_MAGIC,
    OWN,
    PUBLISHED,
    RECEIVED,
    SENT,
    STARTED,
    Chain,
    LedgerError,
    Record,
    read,
    to_skeleton,
)
from p2pdp.wire.codec import pack_message, pack_value

MESSAGE = Message("token", (3, 14), 271828)
PACKED = pack_message(MESSAGE)
PART = b"saltsaltsaltsalt" + pack_value(MESSAGE.value)
BODIES = {
    RECEIVED: (1.5, 7, PACKED),
    OWN: (1.5, PACKED),
    SENT: (7, PACKED),
    PUBLISHED: (PACKED,),
}


def stored(kind: int, *, skeleton: bool = False, part: bytes = PART) -> Record:
    data = LEDGER_MAGIC + Chain().append(kind, BODIES[kind], part)
    (record,) = read(to_skeleton(data) if skeleton else data).records
    return record


@pytest.mark.parametrize("kind", BODIES, ids=lambda kind: KIND_NAMES[kind])
def test_a_message_comes_back_from_each_kind_that_holds_one(kind: int) -> None:
    record = stored(kind)
    assert carries_message(record)
    assert packed_message(record) == PACKED
    assert public_message(record) == Message("token", (3, 14), None)
    assert whole_message(record) == MESSAGE


@pytest.mark.parametrize("kind", BODIES, ids=lambda kind: KIND_NAMES[kind])
def test_a_skeleton_holds_messages_without_their_values(kind: int) -> None:
    record = stored(kind, skeleton=True)
    assert public_message(record) == whole_message(record) == Message("token", (3, 14), None)


def test_a_message_without_a_value_has_none() -> None:
    assert whole_message(stored(SENT, part=b"")).value is None


@pytest.mark.parametrize("kind", [STARTED, CHOSEN, CLOSED])
def test_other_records_carry_no_message(kind: int) -> None:
    data = LEDGER_MAGIC + Chain().append(kind, (1.0, 2))
    assert not carries_message(read(data).records[0])


@pytest.mark.parametrize(
    "body", [(), (b"",), (b"\xc1",), (5,), ("text",), (None,), ([b"x"],), (PACKED[:-1],)], ids=repr
)
def test_a_record_without_a_readable_message_is_an_error_of_the_ledger(body: tuple[object, ...]) -> None:
    """Whoever wrote a skeleton may have put anything into it and still have chained it rightly."""
    (record,) = read(LEDGER_MAGIC + Chain().append(PUBLISHED, body)).records
    for parse in (public_message, whole_message):
        with pytest.raises(LedgerError, match="record 0: holds no readable message"):
            parse(record)
