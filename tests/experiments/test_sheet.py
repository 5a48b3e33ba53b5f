from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, get_args

import pytest

from p2pdp.experiments.contract import Picture, Width
from p2pdp.experiments.sheet import WIDTHS_IN, rendered
from p2pdp.experiments.style import Curve, Panel, panels

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

CURVE = Curve("a rather long name of a curve", [5.0, 20.0], [0.2, 0.8])
WORDY = "a title of very many words that is much longer than any single column of any paper could ever hold in one line"


def _drawn(picture: Picture, width: Width) -> Figure:
    """The figure as it was written last, through the same path as the files."""
    seen: list[Figure] = []

    def draw(figure: Figure) -> None:
        picture.draw(figure)
        seen.append(figure)

    rendered(Picture("", picture.width_in, picture.height_in, draw), width=width)
    return seen[-1]


def _three() -> Picture:
    return panels((7.2, 3.6), [Panel(name, "n", [CURVE]) for name in "abc"], y="epsilon", title=WORDY, columns=3)


@pytest.mark.parametrize("width", get_args(Width))
def test_the_same_numbers_give_the_same_bytes_without_a_date(width: Width) -> None:
    first, second = (rendered(_three(), note="n", title="t", alt="a", width=width) for _ in range(2))
    assert first == second
    assert set(first) == {"png", "svg", "pdf"}
    assert b"dc:date" not in first["svg"]
    assert b"CreationDate" not in first["pdf"]
    assert b"/Type3" not in first["pdf"]
    assert rendered(_three(), width=width)["png"] != first["png"]


def test_title_and_description_are_where_screen_readers_look() -> None:
    files = rendered(_three(), title="five < six", alt="a & b")
    assert re.search(
        rb"<svg [^>]*role=\"img\">\s*(<title>five &lt; six</title>)\s*<desc>a &amp; b</desc>", files["svg"]
    )
    assert b"five < six" in files["png"]
    assert b"five < six" in files["pdf"]


def test_a_single_column_stacks_panels_and_wraps_words() -> None:
    double, single = (_drawn(_three(), width) for width in ("double", "single"))
    assert double.get_figwidth() == WIDTHS_IN["double"]
    assert single.get_figwidth() == WIDTHS_IN["single"]
    places: Callable[[Figure], list[Any]] = lambda figure: [axes.get_position() for axes in figure.axes]  # noqa: E731
    assert len({round(place.y0, 2) for place in places(double)}) == 1
    assert len({round(place.x0, 2) for place in places(single)}) == 1
    assert [axes.get_ylabel() for axes in double.axes] == ["epsilon", "", ""]
    assert [axes.get_ylabel() for axes in single.axes] == ["epsilon"] * 3
    assert single.get_figheight() > double.get_figheight()


@pytest.mark.parametrize("width", get_args(Width))
def test_nothing_is_cut_off(width: Width) -> None:
    figure = _drawn(_three(), width)
    whole: Any = figure.bbox
    renderer: Any = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    texts = [figure._suptitle, *figure.legends, *(axes.title for axes in figure.axes)]  # type: ignore[attr-defined]
    for text in texts:
        box = text.get_window_extent(renderer)
        assert whole.x0 <= box.x0
        assert box.x1 <= whole.x1
        assert whole.y0 <= box.y0
        assert box.y1 <= whole.y1


def test_a_grid_is_handed_back_in_the_asked_shape() -> None:
    shapes = []

    def draw(figure: Figure) -> None:
        grid: Any = figure.subplots(2, 4)
        shapes.append(grid.shape)
        left, right = figure.subplots(1, 2)
        for axes in (*grid.flat, left, right):
            axes.plot([1, 2], [1, 2])

    rendered(Picture("", 7.2, 4.0, draw), width="single")
    assert set(shapes) == {(2, 4)}


@pytest.mark.parametrize(
    ("low", "high", "least", "form"),
    [
        (4.0, 8.0, 3, r"[\d.]+"),
        (0.02, 0.2, 3, r"0\.[\d]+"),
        (1e-9, 10.0, 4, r".*10\^\{-?\d+\}.*"),
        (1.0, 4e4, 4, r"[\d,]+"),
    ],
)
def test_ticks_of_logarithmic_axes_are_few_and_plain(low: float, high: float, least: int, form: str) -> None:
    picture = panels((7.2, 3.6), [Panel("t", "n", [Curve("c", [1.0, 2.0], [low, high])], log="y")])
    (axes,) = _drawn(picture, "double").axes
    bottom, top = axes.get_ylim()
    pairs = zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    shown = [label.get_text() for place, label in pairs if bottom <= place <= top]
    assert least <= len(shown) <= 12
    assert all(re.fullmatch(form, text) for text in shown), shown
