from __future__ import annotations

import math

import numpy as np

from p2pdp.report.page.facts import Curve
from p2pdp.report.page.leaks import curves, distance, map_of_pairs
from tests.support.made import facts, matrix, read


def test_the_map_has_a_table_in_which_everybody_finds_themselves() -> None:
    page = read(map_of_pairs(facts()))
    assert "svg" in page.names()
    assert "2 user 1 2.01 2.005" in page.said
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
    assert "a square stands for 2 by 2 pairs and shows the largest ε" in page.said
    assert "the 200 users who leak most" in page.said
    assert page.said.count("user 200") >= 199


def test_without_pairs_there_is_a_sentence() -> None:
    for epsilon in (None, np.full((3, 3), math.nan)):
        assert "no numbers for single pairs" in read(map_of_pairs(facts(epsilon=epsilon))).said


def test_one_distance_needs_no_drawing() -> None:
    page = read(distance(facts()))
    assert "svg" not in page.names()
    assert "Every two users are at distance 1" in page.said


def test_several_distances_are_drawn_and_listed() -> None:
    ways = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    page = read(distance(facts(distances=ways)))
    assert "svg" in page.names()
    assert "1 4 0.01 1.01 2.01" in page.said


def test_unknown_distances_are_said_to_be() -> None:
    assert read(distance(facts(distances=None, no_distances="the graph is lost"))).said == "the graph is lost"


def test_infinite_curves_are_named_and_not_drawn() -> None:
    endless = Curve("one who sees all", [(1e-5, math.inf)])
    both = read(curves(facts(curves=[*facts().curves, endless])))
    assert "svg" in both.names()
    assert "Infinite at every δ: one who sees all." in both.said
    alone = read(curves(facts(curves=[endless])))
    assert "svg" not in alone.names()
