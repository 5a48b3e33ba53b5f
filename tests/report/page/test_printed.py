from __future__ import annotations

import numpy as np

from p2pdp.report.page.leaks import distance
from p2pdp.report.page.printed import against_printed
from tests.support.made import facts, read

WAYS = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
TOLD = np.array([[np.nan, 1.0, 1.0], [1.0, np.nan, 1.0], [0.75, 1.0, np.nan]])


def test_both_are_drawn_and_listed_by_distance() -> None:
    page = read(against_printed(facts(leak=TOLD, printed=TOLD * 1.5, distances=WAYS)))
    assert "svg" in page.names()
    assert "1 4 1 1 1.5 1.5" in page.said
    assert "2 2 0.875 1 1.312 1.5" in page.said
    assert "nowhere below what was told" in page.said


def test_where_the_formula_understates_the_leak_words_say_so() -> None:
    printed = np.where(WAYS == 2.0, 0.25, 1.5)
    page = read(against_printed(facts(leak=TOLD, printed=np.where(np.isnan(TOLD), np.nan, printed), distances=WAYS)))
    assert "understates what was told for 2 of 6 ordered pairs" in page.said
    assert "for user 0, seen by user 2: it prints 0.25, and 1 was told" in page.said


def test_it_is_part_of_the_page_where_there_are_such_numbers() -> None:
    assert against_printed(facts(distances=WAYS)) == []
    assert against_printed(facts(leak=TOLD, printed=np.full((3, 3), np.nan), distances=WAYS)) == []
    assert "nowhere below" in read(distance(facts(leak=TOLD, printed=TOLD, distances=WAYS))).said
    assert "nowhere below" not in read(distance(facts(distances=WAYS))).said
