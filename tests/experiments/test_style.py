from __future__ import annotations

from typing import TYPE_CHECKING, Any

from p2pdp.experiments import style
from p2pdp.experiments.contract import STAND_IN, Picture
from p2pdp.experiments.style import COLOURS, LINES, MARKERS, Curve, draw_curves, legend_below, name_axes, rendered

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _draw(figure: Figure) -> None:
    axes: Any = figure.subplots()
    bars = Curve("with bars", [1, 2, 3], [1.0, 2.0, 3.0], [0.5, 1.5, 2.5], [1.5, 2.5, 3.5])
    draw_curves(axes, [bars, Curve("band", [1, 2], [2.0, 1.0], [1.0, 0.5], [3.0, 1.5], look=1, band=True)])
    draw_curves(axes, [Curve("plain", [1, 2, 3], [3.0, 2.0, 1.0], look=9, markers=False)])
    name_axes(axes, "title", "x (steps)", "y (epsilon)")
    legend_below(figure, axes)


def test_the_same_numbers_give_the_same_bytes() -> None:
    picture = Picture("", 4.0, 3.0, _draw)
    first, second = rendered(picture, stand_in=False), rendered(picture, stand_in=False)
    assert first == second
    assert b"<dc:date>" not in first["svg"]
    assert first["png"] != rendered(picture, stand_in=True)["png"]


def test_a_stand_in_is_said_in_the_picture() -> None:
    said: list[str] = []

    def draw(figure: Figure) -> None:
        original = figure.supylabel

        def noted(text: str, **terms: Any) -> Any:
            said.append(text)
            return original(text, **terms)

        figure.supylabel = noted  # type: ignore[method-assign]

    rendered(Picture("", 2.0, 2.0, draw), stand_in=True)
    assert said == [STAND_IN] * 2


def test_curves_differ_in_grey() -> None:
    """By marker and line style each, and neighbouring colours by their lightness."""
    assert len(set(MARKERS)) == len(MARKERS) == len(COLOURS) == len(LINES) == len(set(map(str, LINES)))
    looks = [style.look(place) for place in range(8)]
    assert len({(one["marker"], str(one["linestyle"])) for one in looks}) == 8
