from __future__ import annotations

import math

from p2pdp.report.page.axes import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Frame, drawing, key
from p2pdp.report.page.scales import Scale
from tests.support.made import read

FRAME = Frame(Scale((0.0, 10.0), logarithmic=False), Scale((0.0, 2.0, 4.0), logarithmic=False))


def test_the_corners_of_the_data_are_the_corners_of_the_frame() -> None:
    assert (FRAME.x(0.0), FRAME.x(10.0)) == (LEFT, WIDTH - RIGHT)
    assert (FRAME.y(0.0), FRAME.y(4.0)) == (HEIGHT - BOTTOM, TOP)
    assert FRAME.x(5.0) == (LEFT + WIDTH - RIGHT) / 2


def test_infinity_stands_above_everything_finite() -> None:
    frame = Frame(FRAME.x_scale, FRAME.y_scale, with_infinity=True)
    assert frame.y(math.inf) < frame.y(4.0) < frame.y(0.0)
    assert "infinite" in read(frame.axes("x", "y", [])).said
    assert "infinite" not in read(FRAME.axes("x", "y", [])).said


def test_axes_say_what_they_show() -> None:
    page = read(FRAME.axes("distance", "leak", [(0.0, "none"), (10.0, "far")]))
    for word in ("distance", "leak", "none", "far", "2", "4"):
        assert word in page.said


def test_series_differ_in_more_than_colour() -> None:
    points = [(0.0, 1.0), (5.0, 2.0), (10.0, 4.0)]
    drawn = [read(FRAME.line(points, series)).having() for series in range(6)]
    paths = [next(given for name, given in elements if name == "path") for elements in drawn]
    assert len({path.get("stroke-dasharray") for path in paths}) == 6
    assert len([name for name, _ in drawn[0] if name == "circle"]) == 3
    many = [(place / 10, 1.0) for place in range(100)]
    assert "circle" not in read(FRAME.line(many, 0)).names()
    assert read(FRAME.line(points[:1], 1)).names() == {"circle"}


def test_keys_show_lines_as_lines_and_dots_as_dots() -> None:
    page = read(key(["a < b", "c"], dots=[False, True]))
    assert [name for name, _ in page.elements if name in ("line", "circle")] == ["line", "circle"]
    assert "a < b" in page.said


def test_a_drawing_has_a_name_and_a_description() -> None:
    page = read(drawing("a name", "a description", height=99))
    assert page.elements[0][1]["role"] == "img"
    assert page.elements[0][1]["aria-label"] == "a name"
    assert page.elements[0][1]["viewbox"] == f"0 0 {WIDTH} 99"
    assert [name for name, _ in page.elements] == ["svg", "title", "desc"]
