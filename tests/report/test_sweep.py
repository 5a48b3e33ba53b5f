from __future__ import annotations

import math
from typing import Any

import pytest

from p2pdp.report import sweep as pages
from p2pdp.report.sweep import summary, sweep_page
from tests.support.made import read

HOSTILE = "\"'><script>alert(1)</script>"


def _row(**given: Any) -> dict[str, Any]:
    names = "seed estimate truth error standard_error epsilon observer worst_epsilon messages excluded problem".split()
    return dict.fromkeys(names) | {"code": 0, "version": "1", "seed": 1, "epsilon": 1.0, "observer": "node"} | given


def _rows(count: int = 3) -> list[dict[str, Any]]:
    return [
        _row(**{"a.x": float(x), "b.y": y, "seed": seed, "error": x + seed, "epsilon": 1.0 / (1 + x)})
        for x in range(count)
        for y in ("one", "two")
        for seed in (1, 2)
    ]


def test_points_take_runs_together() -> None:
    rows = [*_rows(1), _row(**{"a.x": 0.0, "b.y": "two", "code": 3, "epsilon": None, "observer": None})]
    one, two = summary(["a.x", "b.y"], rows)
    assert (one.values, one.runs, one.failed) == ([0.0, "one"], 2, 0)
    assert one.error == pytest.approx(math.sqrt(2.5))
    assert (two.runs, two.failed, two.epsilon, two.observers) == (3, 1, 1.0, ["node"])
    assert one.standard_error is one.worst_epsilon is None
    (whole,) = summary([], rows)
    assert whole.runs == 5


def test_the_picture_has_a_line_for_each_value_of_the_second_key() -> None:
    made = sweep_page("s.toml", "simulate", ["a.x", "b.y"], _rows(), "sweep.csv")
    page = read(made)
    assert 'text-anchor="middle">a.x</text>' in made  # below the horizontal axis
    assert 'y="16">root mean square error</text>' in made
    paths = [given for name, given in page.elements if name == "path"]
    assert len(paths) == 2
    assert "Root mean square error against a.x" in page.said
    assert "b.y = one" in page.said
    assert "each point over seeds" in page.said
    ids = [given["id"] for name, given in page.elements if name == "section"]
    assert ids == ["picture", "points", "runs"]


def test_without_errors_the_picture_is_of_epsilon_infinite_ones_too() -> None:
    rows = [row | {"error": None, "epsilon": math.inf if row["a.x"] == 2 else 1.0} for row in _rows()]
    page = read(sweep_page("s.toml", "plan", ["a.x", "b.y"], rows, "sweep.csv"))
    assert "Epsilon against a.x" in page.said
    assert "infinite" in page.said


@pytest.mark.parametrize("values", [[1, "auto", 10], [-1.0, 2.0, 3.0], [[0.0, 1.0], [0.0, 2.0], True]])
def test_values_that_are_no_numbers_stand_side_by_side(values: list[Any]) -> None:
    rows = [_row(**{"a.x": value, "error": 1.0}) for value in values]
    page = read(sweep_page("s.toml", "simulate", ["a.x"], rows, "sweep.csv"))
    places = [float(given["cx"] or "") for name, given in page.elements if name == "circle"]
    assert len(set(places)) == 3
    assert "auto" in page.said or values[1] != "auto"


def test_no_grid_is_drawn_over_seeds_and_no_number_is_not_drawn() -> None:
    rows = [_row(seed=seed, error=1.0 / seed) for seed in (1, 2, 3)]
    page = read(sweep_page("s.toml", "simulate", [], rows, "sweep.csv"))
    assert "Root mean square error against seed" in page.said
    nothing = [_row(epsilon=None, code=3, problem="no")]
    assert "nothing to draw" in read(sweep_page("s.toml", "plan", [], nothing, "sweep.csv")).said


def test_failures_are_counted_and_listed_and_texts_are_escaped() -> None:
    rows = [*_rows(), _row(**{"a.x": HOSTILE, "b.y": "one", "code": 3, "problem": HOSTILE, "epsilon": None})]
    made = sweep_page(HOSTILE, "simulate", ["a.x", "b.y"], rows, "sweep.csv")
    page = read(made)
    assert "<script" not in made
    assert "script" not in page.names()
    assert page.having(id="failures")
    assert "1 of 13 runs failed" in page.said


def test_lines_and_rows_have_limits_that_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [_row(**{"a.x": x, "b.y": y, "error": 1.0 + x}) for x in (1, 2) for y in range(8)]
    monkeypatch.setattr(pages, "ROWS_MAX", 10)
    page = read(sweep_page("s.toml", "simulate", ["a.x", "b.y"], rows, "sweep.csv"))
    assert sum(name == "path" for name, _ in page.elements) == pages.LINES_MAX
    assert "the first 6 of 8 values of b.y" in page.said
    assert "The first 10 of 16 runs" in page.said


def test_the_same_rows_give_the_same_bytes() -> None:
    made = [sweep_page("s.toml", "fast", ["a.x", "b.y"], _rows(), "sweep.csv") for _ in range(2)]
    assert made[0] == made[1]
