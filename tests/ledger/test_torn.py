"""Bytes behind the last whole entry of a file: what is a torn tail, and what damage."""

from __future__ import annotations

import pytest

from p2pdp.ledger.entries import content_at, enveloped
from p2pdp.ledger.records import LEDGER_MAGIC, NOTE, SALT_BYTES, Chain, DamagedLedger, to_skeleton, whole_length
from p2pdp.ledger.stored import InMemory, whole_end

SALT = bytes(range(1, 1 + SALT_BYTES))


def ledger(*values: bytes) -> list[bytes]:
    """The parts of a ledger whose entries hold these values."""
    chain = Chain()
    return [LEDGER_MAGIC, *(chain.append(NOTE, (at,), SALT + value) for at, value in enumerate(values))]


OTHERS = to_skeleton(b"".join(ledger(b"first", b"second", b"third")))
PARTS = ledger(b"before", OTHERS, b"behind")  # as the curator's, which holds entries of somebody else
START = sum(map(len, PARTS[:2]))
END = START + len(PARTS[2])
WHOLE = b"".join(PARTS)


def whole(data: bytes) -> int | None:
    """How many bytes are whole entries; None if the file is damaged. Both readers say the same."""
    found: list[int | None] = []
    for read in (whole_length, lambda given: whole_end(InMemory(given))):
        try:
            found.append(read(data))
        except DamagedLedger:
            found.append(None)
    assert found[0] == found[1]
    return found[0]


def test_an_entry_with_entries_in_it_that_is_torn_anywhere_is_a_torn_tail() -> None:
    for end in range(START, END):
        assert whole(WHOLE[:end]) == START
        for zeros in (1, 512):
            assert whole(WHOLE[:end] + bytes(zeros)) == START
    assert whole(WHOLE[:END]) == END


def test_of_the_last_entry_a_block_may_be_missing_that_stands_before_entries_in_it() -> None:
    for at in range(START + 60, END - 200, 7):
        assert whole(WHOLE[:at] + bytes(40) + WHOLE[at + 40 : END]) == START


def test_with_entries_in_it_too_an_entry_in_the_middle_with_a_flipped_bit_is_damage() -> None:
    for at in range(START, END):
        for bit in range(8):
            assert whole(WHOLE[:at] + bytes([WHOLE[at] ^ 1 << bit]) + WHOLE[at + 1 :]) is None


@pytest.mark.parametrize("size", [8, 12, 100])
def test_with_entries_in_it_too_an_entry_in_the_middle_that_was_lost_is_damage(size: int) -> None:
    for at in range(START, END - size):
        changed = WHOLE[:at] + bytes(size) + WHOLE[at + size :]
        assert changed == WHOLE or whole(changed) is None


def test_an_entry_is_found_where_it_begins_and_nowhere_else() -> None:
    assert content_at(WHOLE, START) == PARTS[2][8:]
    assert content_at(WHOLE, START + 1) is None
    assert enveloped(PARTS[2][8:]) == PARTS[2]
    assert [content_at(WHOLE[:END], at) for at in (END - 1, END, END + 8)] == [None, None, None]
