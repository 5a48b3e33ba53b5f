from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.report.page.facts import Curve
from p2pdp.report.page.leaks import against_printed, curve_chart, curves, distance, distance_chart, map_of_pairs
from p2pdp.report.page.pairs import Step
from tests.support.made import facts, matrix, read


def test_the_map_has_a_table_in_which_everybody_finds_themselves() -> None:
    page = read(map_of_pairs(facts()))
    assert "svg" in page.names()
    assert ["2", "user 1", "2.01", "2.005"] in page.rows
    assert "given the whole route" in page.said
    assert "Drawn coarsely" not in page.said


def test_the_conditioning_of_the_map_is_named() -> None:
    assert "given what the observer itself saw" in read(map_of_pairs(facts(conditioning="view"))).said


def test_colluders_have_a_column() -> None:
    words = read(map_of_pairs(facts(coalition=np.array([math.nan, 5.5, math.inf])))).said
    for part in ("one of them", "5.5", "infinite"):
        assert part in words


def test_many_users_are_drawn_in_blocks_and_listed_by_leak() -> None:
    page = read(map_of_pairs(facts(epsilon=matrix(201), nodes=201)))
    assert "2 by 2 pairs" in page.said
    assert "200 users" in page.said
    assert page.said.count("user 200") >= 199


def test_without_pairs_there_is_a_sentence() -> None:
    for epsilon in (None, np.full((3, 3), math.nan)):
        assert "single pairs" in read(map_of_pairs(facts(epsilon=epsilon))).said


def test_one_distance_needs_no_drawing() -> None:
    page = read(distance(facts()))
    assert "svg" not in page.names()
    assert "at distance 1" in page.said


def test_several_distances_are_drawn_and_listed() -> None:
    ways = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    page = read(distance(facts(distances=ways)))
    assert "svg" in page.names()
    assert ["1", "4", "0.01", "1.01", "2.01"] in page.rows


def test_unknown_distances_are_said_to_be() -> None:
    assert read(distance(facts(distances=None, no_distances="the graph is lost"))).said == "the graph is lost"


def test_infinite_curves_are_named_and_not_drawn() -> None:
    endless = Curve("one who sees all", [(1e-5, math.inf)])
    both = read(curves(facts(curves=[*facts().curves, endless])))
    assert "svg" in both.names()
    assert "one who sees all" in both.said
    alone = read(curves(facts(curves=[endless])))
    assert "svg" not in alone.names()


WAYS = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
TOLD = np.array([[np.nan, 1.0, 1.0], [1.0, np.nan, 1.0], [0.75, 1.0, np.nan]])


def test_both_are_drawn_and_listed_by_distance() -> None:
    page = read(against_printed(facts(leak=TOLD, printed=TOLD * 1.5, distances=WAYS)))
    assert "svg" in page.names()
    assert ["1", "4", "1", "1", "1.5", "1.5"] in page.rows
    assert ["2", "2", "0.875", "1", "1.312", "1.5"] in page.rows
    assert "nowhere below" in page.said


def test_where_the_formula_understates_the_leak_words_say_so() -> None:
    printed = np.where(WAYS == 2.0, 0.25, 1.5)
    page = read(against_printed(facts(leak=TOLD, printed=np.where(np.isnan(TOLD), np.nan, printed), distances=WAYS)))
    assert "2 of 6 ordered pairs" in page.said
    assert "for user 0, seen by user 2: it prints 0.25" in page.said


def test_it_is_part_of_the_page_where_there_are_such_numbers() -> None:
    assert against_printed(facts(distances=WAYS)) == []
    assert against_printed(facts(leak=TOLD, printed=np.full((3, 3), np.nan), distances=WAYS)) == []
    assert "nowhere below" in read(distance(facts(leak=TOLD, printed=TOLD, distances=WAYS))).said
    assert "nowhere below" not in read(distance(facts(distances=WAYS))).said


NEAR, FAR = Step(1, 4, 0.5, 1.0, 2.0), Step(3, 2, 0.25, 0.5, 1.0)


def paths(markup: str) -> list[str]:
    return [given["d"] or "" for name, given in read(markup).elements if name == "path"]


def test_three_lines_over_the_distances_that_occur() -> None:
    drawn = distance_chart([NEAR, FAR])
    assert len(paths(drawn)) == 3
    said = read(drawn).said
    for word in ("worst pair", "mean of all pairs", "best pair", "edges between the two users"):
        assert word in said
    heights = [[float(pair.split()[1]) for pair in path[1:].split("L")] for path in paths(drawn)]
    assert heights[0] < heights[1] < heights[2], "the worst stands highest"
    assert all(first < last for first, last in heights)


def test_infinite_leaks_have_their_place() -> None:
    endless = Step(2, 3, 1.0, math.inf, math.inf)
    drawn = distance_chart([NEAR, endless])
    assert "infinite" in read(drawn).said
    assert "inf" not in "".join(paths(drawn))
    everything = Step(1, 3, math.inf, math.inf, math.inf)
    assert "nan" not in distance_chart([everything, endless])


def test_long_distances_do_not_crowd_their_axis() -> None:
    steps = [Step(distance, 2, 0.5, 0.6, 0.7) for distance in range(1, 1025)]
    page = read(distance_chart(steps))
    assert len([text for text in page.texts if text.isdigit()]) < 20


CURVE = Curve("one", [(1e-8, 3.0), (1e-5, 2.0), (1e-2, 1.0)])


def test_equal_curves_are_drawn_once_under_both_names() -> None:
    drawn = curve_chart([CURVE, Curve("two", CURVE.points), Curve("three", [(1e-5, 9.0)])], 1e-5)
    assert len(paths(drawn)) == 1
    assert "one; two" in read(drawn).said
    assert "δ = 1e-5" in read(drawn).said


@pytest.mark.parametrize("delta", [1e-300, 5e-324, 1e-12, 0.5, 0.999])
def test_any_delta_has_its_place(delta: float) -> None:
    drawn = curve_chart([Curve("one", [(delta, 0.0)]), CURVE], delta)
    assert "nan" not in drawn
    assert "inf" not in "".join(paths(drawn))


def test_names_are_text() -> None:
    assert "b" not in read(curve_chart([Curve("<b>x</b>", CURVE.points)], 1e-5)).names()
