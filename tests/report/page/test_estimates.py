from __future__ import annotations

import math

import pytest

from p2pdp.report.page.estimates import SHOWN_MAX, counts_chart, error_chart
from tests.support.made import outcome, read


def test_three_ways_to_err_beside_each_other() -> None:
    page = read(error_chart(outcome()))
    bars = [given for name, given in page.elements if name == "rect"]
    widths = [float(bar["width"] or 0) for bar in bars]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.02)
    assert widths[2] == pytest.approx(4 * widths[0], rel=0.02)
    for word in ("this run", "local DP", "a trusted curator", "off by 1.5"):
        assert word in page.said


def test_without_truth_there_is_no_dot_and_without_rivals_one_bar() -> None:
    page = read(error_chart(outcome(truth=None, error=None, local=None, central=None)))
    assert "circle" not in page.names()
    assert len([name for name, _ in page.elements if name == "rect"]) == 1


def test_an_error_far_off_is_still_on_the_drawing() -> None:
    page = read(error_chart(outcome(error=-1000.0)))
    dot = next(given for name, given in page.elements if name == "circle")
    assert 0.0 < float(dot["cx"] or -1) < 560.0


@pytest.mark.parametrize(
    "change",
    [
        {"standard_error": 0.0, "error": 0.0, "local": None, "central": None},
        {"standard_error": math.inf},
        {"standard_error": 1e308},
        {"standard_error": None, "local": None, "central": None, "error": None},
        {"standard_error": [1.0], "local": [1.0], "central": [1.0], "error": [1.0]},
    ],
)
def test_what_cannot_be_drawn_is_not(change: dict[str, object]) -> None:
    if change == {"standard_error": None, "local": None, "central": None, "error": None}:
        change = change | {"estimate": None}
    assert error_chart(outcome(**change)) == ""


VECTOR = {
    "estimate": [5.0, -1.0, 0.0],
    "standard_error": [1.0, 1.0, 0.0],
    "truth": [4.0, 0.0, 0.0],
    "error": [1.0, -1.0, 0.0],
}


def test_a_bar_and_a_true_value_for_each_number() -> None:
    page = read(counts_chart(outcome(**VECTOR)))
    assert len([name for name, _ in page.elements if name == "rect"]) == 3
    assert len([name for name, _ in page.elements if name == "circle"]) == 3
    assert "0: 5 ± 1.96" in page.said
    without = read(counts_chart(outcome(**VECTOR | {"truth": None})))
    assert "circle" not in without.names()


def test_long_lists_are_cut() -> None:
    long = {name: [1.0] * 500 for name in VECTOR}
    assert len([name for name, _ in read(counts_chart(outcome(**long))).elements if name == "rect"]) == SHOWN_MAX


@pytest.mark.parametrize(
    "change",
    [
        {"estimate": 3.0},
        {"standard_error": 1.0},
        {"estimate": []},
        {"estimate": [1.0, math.inf, 2.0]},
        {"truth": [1e301] * 3},
    ],
)
def test_lists_that_cannot_be_drawn_are_not(change: dict[str, object]) -> None:
    assert counts_chart(outcome(**VECTOR | change)) == ""
