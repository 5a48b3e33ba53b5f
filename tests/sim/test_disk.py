from __future__ import annotations

from p2pdp.ledger.journal import PRIVATE, VIEW
from p2pdp.ledger.records import LEDGER_MAGIC, STARTED, Chain, read
from p2pdp.sim.disk import Disk


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
