from __future__ import annotations

from typing import TYPE_CHECKING, Any

from p2pdp.experiments import style
from p2pdp.experiments.contract import STAND_IN, Picture
from p2pdp.experiments.sheet import rendered
from p2pdp.experiments.style import (
    COLOURS,
    LINES,
    MARKERS,
    Curve,
    Panel,
    draw_curves,
    legend_below,
    name_axes,
    panels,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _draw(figure: Figure) -> None:
    axes: Any = figure.subplots()
    bars = Curve("with bars", [1, 2, 3], [1.0, 2.0, 3.0], [0.5, 1.5, 2.5], [1.5, 2.5, 3.5])
    draw_curves(axes, [bars, Curve("band", [1, 2], [2.0, 1.0], [1.0, 0.5], [3.0, 1.5], look=1, band=True)])
    draw_curves(axes, [Curve("plain", [1, 2, 3], [3.0, 2.0, 1.0], look=9, markers=False)])
    name_axes(axes, "title", "x (steps)", "y (epsilon)")
    legend_below(figure, axes)


def test_a_note_stands_in_the_picture() -> None:
    said: list[str] = []

    def draw(figure: Figure) -> None:
        original = figure.supylabel

        def noted(text: str, **terms: Any) -> Any:
            said.append(text)
            return original(text, **terms)

        figure.supylabel = noted  # type: ignore[method-assign]
        _draw(figure)

    rendered(Picture("", 4.0, 3.0, draw), note=STAND_IN)
    assert said == [STAND_IN] * 3


def test_curves_differ_in_grey() -> None:
    """By marker and line style each, and neighbouring colours by their lightness."""
    assert len(set(MARKERS)) == len(MARKERS) == len(COLOURS) == len(LINES) == len(set(map(str, LINES)))
    looks = [style.look(place) for place in range(8)]
    assert len({(one["marker"], str(one["linestyle"])) for one in looks}) == 8


def test_panels_have_what_they_name() -> None:
    curve = Curve("told", [1.0, 10.0], [0.5, 0.1])
    shown = [
        Panel("left", "n", [curve], level=(0.3, "level", ":"), mark=(2.0, "mark", "-"), y_limits=(0.01, 2.0)),
        Panel("right", "e", [curve], log="y", ceiling=(0.1, 0.4), ticks=(1, 10)),
    ]
    picture = panels((6.0, 3.0), shown, y="epsilon", title="two", columns=3)
    assert (picture.width_in, picture.height_in) == (6.0, 3.0)
    seen: list[Any] = []

    def draw(figure: Figure) -> None:
        picture.draw(figure)
        seen.append(figure)

    rendered(Picture("", 6.0, 3.0, draw))
    left, right = seen[0].axes
    assert (left.get_xscale(), left.get_yscale(), right.get_xscale(), right.get_yscale()) == (
        "log",
        "log",
        "linear",
        "log",
    )
    assert [line.get_label() for line in left.lines] == ["told", "level", "mark"]
    assert right.lines[1].get_ydata().tolist() == [0.1, 0.4]
    assert [text.get_text() for text in right.get_xticklabels()] == ["1", "10"]
    assert (left.get_ylabel(), right.get_ylabel(), left.get_ylim()) == ("epsilon", "", (0.01, 2.0))
    assert [text.get_text() for text in seen[0].legends[0].get_texts()] == ["told", "level", "mark"]
