from __future__ import annotations

from p2pdp.core.step import Fault, Message
from p2pdp.services.reports import Reports


def report(name: int, value: int = 1) -> Message:
    return Message("report", (name, 5), value)


def made(*, waits_for_lost: bool = True) -> Reports:
    return Reports(lambda name, sealed: (name, sealed) if sealed else None, waits_for_lost=waits_for_lost)


def test_a_name_counts_once_whoever_brings_it() -> None:
    reports = made()
    assert reports.take(4, report(7)) is None
    assert reports.take(2, report(3, 2)) is None
    assert reports.take(2, report(7)) == Fault("doubled_report", 2)
    assert reports.take(1, report(1, 0)) == Fault("bad_report", 1)
    assert reports.values() == [(3, 2), (7, 1)]
    assert reports.report(3) == (3, 2)
    assert reports.receipts_from(2) == [[3, 5]]


def test_it_is_complete_when_exclusions_are_settled_and_what_comes_again_is_here() -> None:
    reports = made()
    assert reports.complete
    reports.take(0, report(1))
    reports.out(3)
    assert not reports.complete
    reports.resolved([3], [[1, 0], [8, 2]])
    assert not reports.complete
    reports.take(2, report(8))
    assert reports.complete


def test_of_somebody_who_is_out_nothing_is_expected_any_more() -> None:
    reports = made()
    reports.out(3)
    reports.resolved([3], [[8, 2]])
    reports.out(2)
    reports.resolved([2], [])
    assert reports.complete


def test_single_expects_nothing() -> None:
    reports = made(waits_for_lost=False)
    reports.out(3)
    reports.resolved([3], [[8, 2]])
    assert reports.complete
