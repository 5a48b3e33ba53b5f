from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from p2pdp.report.page.heat_map import SIDE_MAX, heat_map
from tests.support.made import matrix, read


def random_matrix(n: int) -> Any:
    made = np.random.default_rng(n).uniform(0.0, 3.0, (n, n))
    np.fill_diagonal(made, math.nan)
    return made


def painted(markup: str, n: int) -> Any:
    """The colour of each square, however it was drawn; -1 where nothing was."""
    found = np.full((n, n), -1)
    for _, given in read(markup).elements:
        kind = re.search(r"\bh([0-9]+)$", given.get("class") or "")
        if kind is None:
            continue
        if "d" in given:
            for x, y, length in re.findall(r"M([0-9]+) ([0-9]+)h([0-9]+)", given["d"] or ""):
                assert np.all(found[int(y), int(x) : int(x) + int(length)] == -1)
                found[int(y), int(x) : int(x) + int(length)] = int(kind[1])
        elif "x" in given:
            found[int(given["y"] or 0), int(given["x"] or 0)] = int(kind[1])
    return found


@pytest.mark.parametrize("n", [2, 3, 40, 41, 100])
def test_every_pair_is_painted_and_the_diagonal_is_not(n: int) -> None:
    drawn, blocks = heat_map(random_matrix(n), "a map")
    assert blocks == ""
    squares = painted(drawn, n)
    assert np.array_equal(squares == -1, np.eye(n, dtype=bool))


@pytest.mark.parametrize("n", [30, 60])
def test_more_leak_is_never_paler(n: int) -> None:
    epsilon = random_matrix(n)
    squares = painted(heat_map(epsilon, "a map")[0], n)
    pairs = ~np.eye(n, dtype=bool)
    order = np.argsort(epsilon[pairs])
    assert np.all(np.diff(squares[pairs][order]) >= 0)
    assert len(np.unique(squares[pairs])) > 4


@pytest.mark.parametrize("n", [3, 50])
def test_infinite_and_refused_pairs_have_patterns_of_their_own(n: int) -> None:
    epsilon = matrix(n)
    epsilon[:, 1] = math.nan
    epsilon[2, 0] = math.inf
    drawn = heat_map(epsilon, "a map")[0]
    squares = painted(drawn, n)
    assert squares[2, 0] == 9
    assert squares[0, 1] == squares[2, 1] == 10
    assert squares[1, 1] == -1
    said = read(drawn).said
    assert "infinite: no protection" in said
    assert "refused: cannot be told" in said
    plain = read(heat_map(matrix(n), "a map")[0]).said
    assert "infinite" not in plain
    assert "refused" not in plain


def test_few_users_can_be_asked_one_by_one() -> None:
    said = read(heat_map(matrix(3), "a map")[0]).said
    assert "user 2, seen by user 1: ε 2.01" in said
    assert "user 1, seen by user 1" not in said


def test_everything_infinite_is_a_map_too() -> None:
    epsilon = np.where(np.eye(4, dtype=bool), math.nan, math.inf)
    page = read(heat_map(epsilon, "a map")[0])
    assert "up to" not in page.said
    assert "infinite: no protection" in page.said


def test_too_many_users_are_drawn_in_blocks_and_it_is_said() -> None:
    epsilon = np.full((SIDE_MAX + 1,) * 2, 0.1)
    np.fill_diagonal(epsilon, math.nan)
    epsilon[7, 150] = 3.0
    drawn, blocks = heat_map(epsilon, "a map")
    assert blocks == "2 by 2"
    squares = painted(drawn, 101)
    assert squares[3, 75] == squares.max()
    assert np.sum(squares == squares.max()) == 1
    assert np.all(squares[:-1] >= 0), "a block on the diagonal holds pairs, too"
    assert squares[-1, -1] == -1, "but not the last one, of one user alone"


def test_a_hundred_users_are_light() -> None:
    assert len(heat_map(random_matrix(100), "a map")[0]) < 120_000
    assert len(heat_map(random_matrix(200), "a map")[0]) < 400_000


@pytest.mark.parametrize("n", [2, 9, 77, 200, 2048])
def test_ticks_are_users(n: int) -> None:
    page = read(heat_map(np.where(np.eye(n, dtype=bool), math.nan, 1.0), "a map")[0])
    ticks = [int(text) for text in page.texts if text.isdigit()]
    assert ticks.count(0) == 2
    assert max(ticks) < n
    assert len(ticks) <= 2 * 9
