"""Entries with large value parts, each of which is stored once."""

from __future__ import annotations

import pytest

from p2pdp.ledger.entries import ENVELOPE, LARGE_BYTES, LedgerError, content_at, enveloped, large_entry, pack, parts_of
from p2pdp.ledger.records import (
    LEDGER_MAGIC,
    NO_VALUE_DIGEST,
    OWN,
    SENT,
    Chain,
    chain_problem,
    digest_of,
    read,
    to_skeleton,
)

HEAD, PUBLIC = bytes(32), b"public"
LARGE, OTHER, SMALL = b"a" * LARGE_BYTES, b"b" * (5 * LARGE_BYTES), b"c" * (LARGE_BYTES - 1)


def stored(values: list[bytes]) -> bytes:
    return large_entry(HEAD, PUBLIC, values, [digest_of(value) for value in values])


def test_the_same_large_part_is_stored_once_and_read_at_each_place() -> None:
    values = [LARGE, b"", SMALL, OTHER, LARGE, SMALL, OTHER, LARGE]
    entry = stored(values)
    assert content_at(entry, 0) == entry[ENVELOPE.size :]
    assert parts_of(entry[ENVELOPE.size :]) == [HEAD, PUBLIC, *values]
    assert len(LARGE) + len(OTHER) + 2 * len(SMALL) < len(entry) < len(LARGE) + len(OTHER) + 2 * len(SMALL) + 100


def test_an_entry_without_repeated_parts_is_one_like_any_other() -> None:
    content = stored([LARGE, b"", OTHER])[ENVELOPE.size :]
    assert parts_of(content) == parts_of(pack((HEAD, PUBLIC, LARGE, b"", OTHER)))


@pytest.mark.parametrize(
    "item",
    [
        (HEAD, PUBLIC, 0),
        (HEAD, PUBLIC, LARGE, 1),
        (HEAD, PUBLIC, LARGE, -1),
        (HEAD, PUBLIC, LARGE, 2, LARGE),
        (HEAD, PUBLIC, LARGE, 0, 1),
        (HEAD, PUBLIC, LARGE, True),
        (HEAD, PUBLIC, LARGE, None),
        (HEAD, PUBLIC, LARGE, 0.0),
        (HEAD, 0, LARGE),
        (0, PUBLIC, LARGE),
        (HEAD, PUBLIC),
    ],
)
def test_a_place_is_one_of_a_part_before(item: tuple[object, ...]) -> None:
    with pytest.raises(LedgerError):
        parts_of(pack(item))
    with pytest.raises(LedgerError):
        read(LEDGER_MAGIC + enveloped(pack(item)))


def test_chain_and_skeleton_do_not_depend_on_how_parts_are_stored() -> None:
    records = [(OWN, 1.0, b"m"), (SENT, 2, b"m"), (SENT, 3, b"m"), (SENT, 4, b"m")]
    values = [OTHER, LARGE, LARGE, LARGE]
    chain = Chain()
    entry = chain.entry(records, values, {1: digest_of(LARGE)})
    data = LEDGER_MAGIC + entry
    plain = LEDGER_MAGIC + enveloped(pack((HEAD, parts_of(entry[ENVELOPE.size :])[1], *values)))
    assert len(plain) - len(data) > 2 * LARGE_BYTES - 20
    assert read(data).records == read(plain).records
    assert to_skeleton(data) == to_skeleton(plain)
    assert [one.value for one in read(data).records] == values
    assert read(data).records[-1].hash == chain.head
    bare = read(to_skeleton(data))
    assert chain_problem(bare) is None
    assert [one.digest for one in bare.records] == [digest_of(value) for value in values]
    assert NO_VALUE_DIGEST not in {one.digest for one in bare.records}
