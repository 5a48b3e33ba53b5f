from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.report.page.axes import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Frame,
    Scale,
    colours,
    drawing,
    key,
    levels_of,
    round_step,
    scale_of,
    steps,
)
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


VALUES = st.lists(st.floats(0.0, allow_nan=False, allow_infinity=False), max_size=6)


@pytest.mark.parametrize(("span", "parts", "step"), [(10, 5, 2), (1.2, 5, 0.25), (7, 7, 1), (0.3, 3, 0.1), (55, 5, 20)])
def test_steps_are_round(span: float, parts: int, step: float) -> None:
    assert round_step(span, parts) == pytest.approx(step)


def test_a_linear_scale_starts_at_0_and_holds_the_largest() -> None:
    scale = scale_of([1.0, 3.7])
    assert (scale.edges, scale.logarithmic) == ((0.0, 1.0, 2.0, 3.0, 4.0), False)
    assert [scale.place(value) for value in (-1.0, 0.0, 1.0, 4.0, 9.0)] == [0.0, 0.0, 0.25, 1.0, 1.0]


def test_values_that_differ_much_are_placed_by_their_logarithms() -> None:
    scale = scale_of([0.0, 0.02, 5.0])
    assert scale.logarithmic
    assert scale.edges == pytest.approx((0.01, 0.1, 1.0, 10.0))
    assert scale.place(1.0) == pytest.approx(2 / 3)
    assert scale.place(0.0) == 0.0
    assert steps(scale)[0] == (0.0, pytest.approx(0.1))


def test_between_few_powers_there_are_steps() -> None:
    assert scale_of([0.02, 5.0], 9).edges == pytest.approx((0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0))
    assert scale_of([0.002, 5.0], 9).edges == pytest.approx((0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0))
    assert scale_of([1e-6, 1.0], 3).edges == pytest.approx((1e-6, 1e-4, 1e-2, 1.0))


def test_a_few_values_close_to_0_do_not_make_a_scale_logarithmic() -> None:
    assert not scale_of([1e-9, *[1.0] * 20]).logarithmic
    assert scale_of([*[1e-9] * 3, *[1.0] * 20]).logarithmic


def test_without_a_value_above_0_there_is_a_scale_all_the_same() -> None:
    for values in ([], [0.0, 0.0]):
        assert scale_of(values).edges[0] == 0.0
        assert scale_of(values).place(0.0) == 0.0


@given(VALUES, st.integers(1, 12))
def test_every_scale_is_sound(values: list[float], parts: int) -> None:
    scale = scale_of(values, parts)
    assert all(math.isfinite(edge) for edge in scale.edges)
    assert all(low < high for low, high in zip(scale.edges, scale.edges[1:], strict=False))
    assert 2 <= len(scale.edges) <= parts + 2
    places = [scale.place(value) for value in sorted(values)]
    assert all(0.0 <= place <= 1.0 for place in places)
    assert places == sorted(places)
    assert all(value <= scale.edges[-1] * (1 + 1e-9) or value > 1e300 for value in values)


@given(VALUES)
def test_there_are_never_more_levels_than_colours(values: list[float]) -> None:
    tints = colours(len(steps(levels_of(values))))
    assert tints == sorted(set(tints))
    assert set(tints) <= set(range(9))


def test_few_levels_are_spread_over_all_colours() -> None:
    assert colours(3) == [0, 4, 8]
    assert len(colours(1)) == 1
    assert colours(0) == []
    assert steps(Scale((0.0, 1.0, 2.0), logarithmic=False)) == [(0.0, 1.0), (1.0, 2.0)]


def test_values_that_lie_close_together_are_told_apart() -> None:
    close = [1.743, 1.8, 1.838, 1.925]
    scale = levels_of(close)
    assert scale.edges[0] > 1.0
    assert scale.edges[0] <= min(close) <= max(close) <= scale.edges[-1] * (1 + 1e-9)
    assert len({sum(value > edge for edge in scale.edges) for value in close}) == 4
    assert levels_of([1.5, 1.5]).edges[0] == 0.0
    assert levels_of([0.5, 1.5]).edges[0] == 0.0
    assert levels_of([]).edges[0] == 0.0
    assert 2 <= len(levels_of([1e6, 1e6 + 1.0]).edges) <= 10
