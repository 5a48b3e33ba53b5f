from __future__ import annotations

from p2pdp.core.step import Fault, Message
from p2pdp.services.reports import Reports


def report(name: int, value: int = 1) -> Message:
    return Message("report", (100 + name, 5), (name, value))


def made() -> Reports:
    return Reports(lambda sealed: sealed if sealed[1] else None)


def test_a_name_counts_once_whoever_brings_it() -> None:
    reports = made()
    assert reports.take(4, report(7)) == 7
    assert reports.take(2, report(3, 2)) == 3
    assert reports.take(2, report(7)) == Fault("doubled_report", 2)
    assert reports.take(1, report(1, 0)) == Fault("bad_report", 1)
    assert reports.values() == [2, 1]
    assert reports.report(3) == 2
    assert reports.receipts_from(4) == [[107, 107, 5]]
    assert reports.receipts_from(1) == []


def test_after_an_exclusion_nobody_is_blamed_for_what_comes_again() -> None:
    reports = made()
    reports.take(4, report(7))
    reports.out(3)
    assert reports.take(2, report(7)) is None
    assert reports.values() == [1]


def test_it_is_complete_when_exclusions_are_settled_and_every_order_was_heeded() -> None:
    reports = made()
    assert reports.complete
    reports.out(3)
    assert not reports.complete
    reports.resolved([3], [[2, 2]])
    assert not reports.complete
    reports.heeded(2)
    assert not reports.complete
    reports.heeded(2)
    assert reports.complete


def test_an_order_may_be_heeded_before_the_curator_hears_of_it() -> None:
    reports = made()
    reports.heeded(2)
    assert reports.complete
    reports.out(3)
    reports.resolved([3], [[2, 1]])
    assert reports.complete
    reports.resolved([], [[2, 1]])
    assert not reports.complete


def test_of_somebody_who_is_out_nothing_is_expected_any_more() -> None:
    reports = made()
    reports.out(3)
    reports.resolved([3], [[2, 1]])
    reports.out(2)
    reports.resolved([2], [])
    assert reports.complete
