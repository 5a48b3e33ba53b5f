"""Ledgers in files, which are read as their bytes are, with no large value in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.files.ledgers import LedgerFile, ledger_at
from p2pdp.ledger.records import (
    LEDGER_MAGIC,
    OWN,
    SENT,
    Chain,
    DamagedLedger,
    LateRecord,
    LedgerError,
    read,
    to_skeleton,
)
from p2pdp.ledger.stored import Entries, bytes_of, contents_of, has_begun, skeleton_of

LARGE = [bytes([number]) * (1 << 18) for number in range(6)]


def written() -> bytes:
    chain, pieces = Chain(), [LEDGER_MAGIC]
    for number, value in enumerate(LARGE):
        records = [(OWN, float(number), b"m"), (SENT, 1, b"m"), (SENT, 2, b"m")]
        pieces.append(chain.entry(records, [b"small" * 10, value, value]))
    return b"".join(pieces)


DATA = written()


def stored(folder: Path, data: bytes) -> LedgerFile:
    path = folder / "view.ledger"
    path.write_bytes(data)
    return LedgerFile(path, len(data))


@pytest.mark.parametrize("tail", [b"", bytes(5), DATA[16:400]])
def test_a_file_is_read_as_its_bytes_are(tmp_path: Path, tail: bytes) -> None:
    for data in (DATA + tail, to_skeleton(DATA) + tail[:5]):
        ledger = stored(tmp_path, data)
        found, expected = contents_of(ledger, Entries()), read(data)
        assert (found.skeleton, found.torn_bytes) == (expected.skeleton, expected.torn_bytes)
        for one, other in zip(found.records, expected.records, strict=True):
            assert (one.value, one.digest, one.hash, one.body) == (other.value, other.digest, other.hash, other.body)
        assert skeleton_of(ledger) == to_skeleton(data)
        assert has_begun(ledger)
        assert bytes_of(ledger) == data


def test_large_values_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    entries = Entries()
    records = contents_of(stored(tmp_path, DATA), entries).records
    late = [record for record in records if isinstance(record, LateRecord)]
    assert [record.kind for record in late] == [SENT] * (2 * len(LARGE))
    assert [record.value for record in reversed(late)] == [value for value in reversed(LARGE) for _ in range(2)]
    assert late[0].value == late[1].value == LARGE[0]


def test_a_file_that_was_changed_meanwhile_is_named_so(tmp_path: Path) -> None:
    ledger = stored(tmp_path, DATA)
    records = contents_of(ledger, Entries()).records
    ledger.path.write_bytes(DATA[:-100] + bytes(100))
    with pytest.raises(LedgerError):
        _ = records[-1].value


def test_damage_is_found_and_a_file_without_a_record_has_not_begun(tmp_path: Path) -> None:
    with pytest.raises(DamagedLedger):
        contents_of(stored(tmp_path, DATA[:40] + b"x" + DATA[41:]), Entries())
    assert not has_begun(stored(tmp_path, LEDGER_MAGIC))
    with pytest.raises(LedgerError):
        contents_of(stored(tmp_path, b"another file"), Entries())


def test_a_small_file_is_its_bytes_and_one_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert ledger_at(stored(tmp_path, DATA[:1000]).path) == DATA[:1000]
    assert ledger_at(stored(tmp_path, DATA).path) == LedgerFile(tmp_path / "view.ledger", len(DATA))
    with pytest.raises(UsageError, match="absent"):
        ledger_at(tmp_path / "absent")
