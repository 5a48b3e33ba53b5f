"""One look for all pictures: readable in print and in grey, and the same bytes from the same numbers.

Curves differ by marker and line style before they differ by colour, and the colours by lightness too. Legends stand
below the axes and so never over data. Letters are outlines in the SVG, so that it looks alike everywhere, and whole
fonts in the PDF, so that publishers take it. `experiments/sheet.py` makes files of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from p2pdp.experiments.contract import Picture
from p2pdp.report import look as shared

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SETTINGS: Final = {**shared.SETTINGS, "pdf.fonttype": 42}
SINGLE_SETTINGS: Final[Any] = {
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 7.5,
    "legend.fontsize": 7.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.5,
}
"""What differs in a single column."""
LEAK_COLOURS: Final = "YlOrRd"
"""Of leaks drawn on graphs: the more is told, the darker, also in grey."""
LEAK_SHADES: Final = 0.01, 1.0
"""Where these shades begin and end; less than a hundredth of local privacy is little, and more than all is all."""
COLOURS: Final = shared.COLOURS
MARKERS: Final = shared.MARKERS
LINES: Final = shared.LINES


@dataclass(frozen=True, slots=True)
class Curve:
    """A line of points, with the ends of an error bar or band where there are some.

    `look` chooses marker, line style and colour; `band` shades between the ends instead of drawing bars.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    look: int = 0
    band: bool = False
    markers: bool = True


def look(index: int) -> dict[str, Any]:
    """Return marker, line style and colour number `index`, for what is drawn without `draw_curves`."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": LINES[index % len(LINES)],
    }


def draw_curves(axes: Axes, curves: Sequence[Curve]) -> None:
    for curve in curves:
        kind = look(curve.look)
        if not curve.markers:
            kind["marker"] = "None"
        step = max(1, len(curve.x) // 12)
        if curve.low is None or curve.high is None:
            axes.plot(curve.x, curve.y, label=curve.label, markevery=step, **kind)
        elif curve.band:
            axes.plot(curve.x, curve.y, label=curve.label, markevery=step, **kind)
            axes.fill_between(curve.x, curve.low, curve.high, color=kind["color"], alpha=0.15, linewidth=0)
        else:
            below = [max(0.0, y - low) for y, low in zip(curve.y, curve.low, strict=True)]
            above = [max(0.0, high - y) for y, high in zip(curve.y, curve.high, strict=True)]
            axes.errorbar(curve.x, curve.y, yerr=[below, above], label=curve.label, elinewidth=0.9, **kind)


def name_axes(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def legend_below(figure: Figure, axes: Axes, columns: int = 2) -> None:
    """Draw one legend for the whole figure, of what these axes show, below all of them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


@dataclass(frozen=True, slots=True)
class Panel:
    """One set of axes with curves; `log` names the logarithmic axes.

    `level` and `mark` are a horizontal and a vertical line with a label and a line style. With `ceiling` the line
    y = x is drawn over these x: no more is told by a shuffle than by the report itself. `ticks` are all there are on
    the x axis; `y` is the label of these axes where panels differ in it.
    """

    title: str
    x: str
    curves: Sequence[Curve]
    log: str = "xy"
    level: tuple[float, str, str] | None = None
    mark: tuple[float, str, str] | None = None
    ceiling: Sequence[float] = ()
    y_limits: tuple[float, float] | None = None
    ticks: Sequence[int] = ()
    y: str = ""


def panels(
    size_in: tuple[float, float], shown: Sequence[Panel], *, y: str = "", title: str = "", columns: int = 2,
    share: str = "y",
) -> Picture:  # fmt: skip
    """Return a picture of panels side by side with one legend; `share` names the axes that they have in common."""
    return Picture("", *size_in, partial(_draw_panels, tuple(shown), y, title, columns, share))


def _draw_panels(shown: Sequence[Panel], y: str, title: str, columns: int, share: str, figure: Figure) -> None:
    grid: Any = figure.subplots(1, len(shown), sharex="x" in share, sharey="y" in share, squeeze=False)
    for axes, panel in zip(grid[0], shown, strict=True):
        draw_curves(axes, panel.curves)
        if panel.ceiling:
            axes.plot(panel.ceiling, panel.ceiling, color="0.5", linewidth=0.8, label=r"$\varepsilon = \varepsilon_0$")
        for draw, line in ((axes.axhline, panel.level), (axes.axvline, panel.mark)):
            if line is not None:
                draw(line[0], color="0.5", linewidth=0.8, linestyle=line[2], label=line[1])
        for way in panel.log:
            axes.set(**{f"{way}scale": "log"})
        if panel.y_limits is not None:
            axes.set_ylim(*panel.y_limits)
        if panel.ticks:
            axes.set_xticks(panel.ticks, [f"{tick:,}" for tick in panel.ticks])
            axes.minorticks_off()
        name_axes(axes, panel.title, panel.x, panel.y)
    if title:
        figure.suptitle(title, fontsize=10)
    if y:
        grid[0][0].set_ylabel(y)
    legend_below(figure, grid[0][0], columns)
