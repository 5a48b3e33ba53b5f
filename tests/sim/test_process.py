from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from nacl.exceptions import CryptoError

from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.ledger.journal import PRIVATE, VIEW
from p2pdp.ledger.records import LEDGER_MAGIC, STARTED, Chain, read
from p2pdp.sim.faults import Crash
from p2pdp.sim.process import Disk, PiecesOf, Process, SharedKey

if TYPE_CHECKING:
    from p2pdp.peer.host import Host

LINES = [LEDGER_MAGIC, *(chain.append(STARTED, (0.0,)) for chain in [Chain()] for _ in range(4))]


def made(*crashes: Crash) -> Process:
    return Process(3, Identity(bytes(32)), RunKey(bytes(32)), crashes=list(crashes))


def test_a_crash_strikes_after_its_record_is_stored() -> None:
    crash = Crash(3, at_record=3)
    process = made(crash)
    assert [process.write(VIEW, data) for data in LINES[:3]] == [None, None, crash]
    assert bytes(process.disk.view) == b"".join(LINES[:3])


def test_or_in_the_middle_of_it() -> None:
    process = made(Crash(3, at_record=3, torn_bytes=5))
    for data in LINES[:3]:
        process.write(VIEW, data)
    assert bytes(process.disk.view) == b"".join(LINES[:2]) + LINES[2][:5]
    process.boot()
    assert bytes(process.disk.view) == b"".join(LINES[:2])


@pytest.mark.parametrize(("torn_bytes", "kept"), [(None, b"headpiece"), (5, b"headp"), (0, b"")])
def test_a_crash_strikes_at_a_piece_as_at_a_record_and_nothing_is_kept_after_it(
    torn_bytes: int | None, kept: bytes
) -> None:
    crash = Crash(3, at_record=3, torn_bytes=torn_bytes)
    process = made(crash)
    shelf = PiecesOf(process)
    process.write(VIEW, LINES[0])
    shelf.write(1, 0, b"head", b"first")
    assert process.struck is None
    assert process.disk.records == 2
    shelf.write(2, 0, b"head", b"piece")
    assert process.struck is crash
    shelf.write(2, 9, b"head", b"piece")
    shelf.clear()
    assert (shelf.read(1), shelf.read(2)) == (b"headfirst", kept)
    process.boot()
    assert process.struck is None
    shelf.write(1, 4, b"", b"other")
    assert shelf.read(1) == b"headother"
    shelf.clear()
    assert process.disk.pieces == {}


def test_who_is_down_for_good_does_not_return() -> None:
    process = made()
    process.boot()
    assert (process.up, process.returns, process.incarnation) == (True, True, 1)
    process.stop(Crash(3, down_s=None))
    assert (process.up, process.returns) == (False, False)
    process.stop(Crash(3, down_s=2.0))
    assert process.returns


def test_a_rollback_takes_records_away() -> None:
    process = made()
    for data in LINES:
        process.write(VIEW, data)
    process.stop(Crash(3, rolled_back_to=2))
    assert bytes(process.disk.view) == b"".join(LINES[:3])


def test_each_life_has_randomness_of_its_own() -> None:
    process = made()
    process.boot()
    first = process.entropy(1).salt(), process.sampler(1).choice(2**60)
    assert first == (process.entropy(1).salt(), process.sampler(1).choice(2**60))
    process.boot()
    second = process.entropy(1).salt(), process.sampler(1).choice(2**60)
    assert first[0] != second[0]
    assert first[1] != second[1]


def test_its_journal_is_that_of_its_disk() -> None:
    process = made()
    for data in LINES:
        process.write(VIEW, data)
    assert len(process.journal().stored()) == 4


def test_faults_outlive_the_life_in_which_they_were_counted() -> None:
    process = made()
    for life in range(2):
        process.boot()
        process.host = cast("Host", SimpleNamespace(fault_counts={"gap": 2, "conflict": life}))
        process.stop(Crash(3))
    assert process.faults == {"gap": 4, "conflict": 1}


def filled(count: int) -> Disk:
    """Both files opened, then a view and a private record in turn."""
    disk, view, private = Disk(), Chain(), Chain()
    disk.append(VIEW, LEDGER_MAGIC)
    disk.append(PRIVATE, LEDGER_MAGIC)
    for _ in range(count):
        disk.append(PRIVATE, private.append(STARTED, (0.0,)))
        disk.append(VIEW, view.append(STARTED, (1.0,)))
    return disk


def test_records_are_counted_over_both_files_and_view_records_alone() -> None:
    disk = filled(3)
    assert (disk.records, disk.view_records) == (8, 3)


def test_a_rollback_takes_both_files_back_to_one_moment() -> None:
    disk = filled(5)
    disk.roll_back(2)
    assert (bytes(disk.view), bytes(disk.private)) == (bytes(filled(2).view), bytes(filled(2).private))
    assert disk.records == 12  # what was written was written
    disk.roll_back(4)
    assert disk.view_records == 2


def test_a_rollback_takes_whole_entries() -> None:
    disk, chain = Disk(), Chain()
    disk.append(VIEW, LEDGER_MAGIC)
    disk.append(VIEW, chain.append(STARTED, (0.0,)))
    one = bytes(disk.view)
    disk.append(VIEW, chain.entry([(STARTED, 1.0)] * 3, [b""] * 3))
    assert (disk.records, disk.view_records) == (5, 4)
    whole = bytes(disk.view)
    disk.roll_back(2)
    assert (disk.view_records, bytes(disk.view)) == (4, whole)
    disk.roll_back(1)
    assert (disk.view_records, bytes(disk.view)) == (1, one)


def test_a_rollback_to_the_beginning_leaves_nothing() -> None:
    disk = filled(2)
    disk.roll_back(0)
    assert (disk.view, disk.private) == (b"", b"")


def test_a_torn_tail_of_any_length_is_cut() -> None:
    record = Chain().append(STARTED, (5.0,))
    for name in (VIEW, PRIVATE):
        for length in range(len(record)):
            disk = filled(2)
            before = bytes(disk.view), bytes(disk.private)
            disk.tear(name, record, length)
            assert disk.records == 7
            disk.cut_torn_tails()
            assert (bytes(disk.view), bytes(disk.private)) == before


def test_a_torn_first_line_is_cut_too() -> None:
    for length in range(len(LEDGER_MAGIC)):
        disk = Disk()
        disk.tear(VIEW, LEDGER_MAGIC, length)
        disk.cut_torn_tails()
        assert disk.view == b""


def test_whole_records_stay() -> None:
    disk = filled(3)
    disk.cut_torn_tails()
    assert len(read(bytes(disk.view)).records) == 3


def test_both_ends_have_the_secret_that_plain_keys_have() -> None:
    halves = dict[frozenset[bytes], bytes]()
    one, other = (SharedKey(bytes([first]) + bytes(31), halves) for first in (8, 16))
    plain = RunKey(one.secret).agree(other.public)
    assert one.public == RunKey(one.secret).public
    for _ in range(2):  # the second time after a restart, when both ends agree anew
        assert one.agree(other.public) == plain
        assert len(halves) == 1
        assert other.agree(one.public) == plain
        assert halves == {}
    with pytest.raises(CryptoError):
        one.agree(bytes(32))
    assert halves == {}
