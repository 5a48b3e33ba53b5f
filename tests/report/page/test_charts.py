from __future__ import annotations

import math

import pytest

from p2pdp.report.page.charts import curve_chart, distance_chart
from p2pdp.report.page.facts import Curve
from p2pdp.report.page.pairs import Step
from tests.support.made import read

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
