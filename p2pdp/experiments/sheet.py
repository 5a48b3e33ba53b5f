"""The sheet that a picture is drawn on: one of two widths, plain ticks, words that fit, and files for print and screen.

Draw functions know nothing of widths. In a single column panels stand below each other instead of side by side, titles
and labels are wrapped, and legends have as many columns as fit. The same numbers give the same bytes: no file holds a
date or the name of a program. Title and description are in the PNG's and the PDF's metadata, and in the SVG where
screen readers look for them.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from typing import TYPE_CHECKING, Any, Final
from xml.sax.saxutils import escape

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogFormatterSciNotation, LogLocator, NullFormatter

from p2pdp.experiments.style import SETTINGS, SINGLE_SETTINGS

if TYPE_CHECKING:
    from p2pdp.experiments.contract import Picture, Width

WIDTHS_IN: Final[dict[Width, float]] = {"single": 3.5, "double": 7.2}
_TITLE_IN: Final = 0.45
_LEGEND_ROW_IN: Final = 0.17
_PANEL_IN: Final = 1.5, 2.3  # height of a panel in a single column, least and most
_LETTER: Final = 0.55  # width of a letter over its height, in the mean
_HANDLE_LETTERS: Final = 8  # what a legend's line and gaps take
_TICKS_LEAST: Final = 3
_SINGLE_POINTS: Final = 8.5  # of the title
_SMALL_POINTS: Final = 5.5  # of words among the data
_PLAIN: Final = 1e-3, 1e5  # numbers between are written out
_SUBS: Final[tuple[tuple[float, ...], ...]] = (
    (1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0), tuple(1.0 + 0.5 * k for k in range(18)),
)  # fmt: skip


class Sheet(Figure):
    """A figure of one of the two widths."""

    def __init__(self, picture: Picture, width: Width) -> None:
        super().__init__(figsize=(WIDTHS_IN[width], picture.height_in))
        self._single = width == "single"
        FigureCanvasAgg(self)

    def subplots(self, nrows: int = 1, ncols: int = 1, **terms: Any) -> Any:
        """Return axes in the asked shape; in a single column they stand in as few columns as rows were asked for."""
        if not self._single:
            return super().subplots(nrows, ncols, **terms)
        wide = ncols > nrows
        across, down = (nrows, ncols) if wide else (ncols, nrows)
        least, most = _PANEL_IN
        panel = min(most, max(least, (self.get_figheight() - 2.0 * _TITLE_IN) / nrows * (0.75 if wide else 1.0)))
        self.set_size_inches(WIDTHS_IN["single"], down * panel + _TITLE_IN)
        if not wide:
            return super().subplots(nrows, ncols, **terms)
        terms.pop("width_ratios", None)
        squeeze = terms.pop("squeeze", True)
        found: Any = super().subplots(down, across, squeeze=False, **terms)
        self._lift_labels = found if "sharey" in terms else None
        return found[:, 0] if squeeze and nrows == 1 else found.T

    def legend(self, *terms: Any, ncols: int = 1, **more: Any) -> Any:
        """Draw a legend in as many columns as fit, up to those asked for."""
        if self._single:
            handles: Any = list(terms[0] if terms else more["handles"])
            labels = list(terms[1]) if len(terms) > 1 else [one.get_label() for one in handles]
            longest = max(_letters(label) for label in labels) + _HANDLE_LETTERS
            fit = int(_letters_in(WIDTHS_IN["single"], mpl.rcParams["legend.fontsize"]) // longest)
            ncols = max(1, min(ncols, fit))
            self.set_figheight(self.get_figheight() + (-(-len(labels) // ncols) + 1) * _LEGEND_ROW_IN)
        return super().legend(*terms, ncols=ncols, **more)

    def fit(self) -> None:
        """Make ticks plain, and wrap titles and labels to the place that they have."""
        lifted = getattr(self, "_lift_labels", None)
        if lifted is not None:
            for axes in lifted.flat:
                axes.set_ylabel(axes.get_ylabel() or lifted.flat[0].get_ylabel())
        title: Any = self._suptitle  # type: ignore[attr-defined]
        if title is not None:
            title.set_fontsize(_SINGLE_POINTS if self._single else title.get_fontsize())
            _wrap(title, self.get_figwidth() - 0.2)
        for axes in self.axes:
            for axis in (axes.xaxis, axes.yaxis):
                if axis.get_scale() == "log" and not isinstance(axis.get_major_locator(), FixedLocator):
                    _plain_ticks(axis)
            place: Any = axes.get_subplotspec()
            if place is None:
                continue
            grid = place.get_gridspec()
            ratios = grid.get_width_ratios() or [1.0] * grid.ncols
            across = self.get_figwidth() * sum(ratios[place.colspan.start : place.colspan.stop]) / sum(ratios)
            _wrap(axes.title, across - (0.7 if grid.ncols == 1 else 0.3))
            for text in axes.texts if self._single else ():
                text.set_fontsize(_SMALL_POINTS)
            _wrap(axes.xaxis.label, across - 0.5)
            _wrap(axes.yaxis.label, max(1.2, (self.get_figheight() - 1.0) / grid.nrows))
            own = axes.get_legend()
            if self._single and own is not None:
                own.set_loc("upper center")
                self.set_figheight(self.get_figheight() + (len(own.get_texts()) + 1) * _LEGEND_ROW_IN)


def _letters(text: str) -> int:
    """Return about how many letters wide a text is, without the marks of formulas."""
    return len(re.sub(r"[${}_^]", "", re.sub(r"\\[a-z]+", "x", text)))


def _letters_in(inches: float, points: Any) -> float:
    return inches * 72.0 / (_LETTER * float(points))


def _wrap(text: Any, inches: float) -> None:
    """Break a text into lines of that length at spaces outside formulas."""
    most = int(_letters_in(inches, text.get_fontsize()))
    lines = []
    for line in text.get_text().split("\n"):
        whole = re.sub(r"\$[^$]*\$", lambda found: found[0].replace(" ", "\0"), line)
        extra = len(whole) - _letters(whole)
        lines += textwrap.wrap(whole, most + extra, break_long_words=False, break_on_hyphens=False) or [""]
    text.set_text("\n".join(lines).replace("\0", " "))


def _plain_ticks(axis: Any) -> None:
    """Give a logarithmic axis a few ticks, with numbers written out where they are neither tiny nor huge."""
    low, high = sorted(axis.get_view_interval())
    places = {subs: LogLocator(subs=subs, numticks=30).tick_values(low, high) for subs in _SUBS}
    shown = {subs: [tick for tick in ticks if low <= tick <= high] for subs, ticks in places.items()}
    subs = next((subs for subs, ticks in shown.items() if len(ticks) >= _TICKS_LEAST), _SUBS[-1])
    axis.set_major_locator(LogLocator(subs=subs, numticks=8 if len(subs) == 1 else 30))
    if len(subs) > 1 or all(_PLAIN[0] <= tick <= _PLAIN[1] for tick in shown[subs]):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    else:
        axis.set_major_formatter(LogFormatterSciNotation())
    if len(subs) == 1 and math.log10(high / low) > 5.0:
        axis.set_minor_locator(LogLocator(subs=(1.0,), numticks=30))
    else:
        axis.set_minor_locator(LogLocator(subs=tuple(np.arange(2.0, 10.0)), numticks=30))
    axis.set_minor_formatter(NullFormatter())


def settings_for(width: Width) -> Any:
    """Return matplotlib's settings for pictures of that width."""
    return dict(SETTINGS) | (SINGLE_SETTINGS if width == "single" else {})


def rendered(
    picture: Picture, *, note: str = "", title: str = "", alt: str = "", width: Width = "double"
) -> dict[str, bytes]:
    """Return the picture as `png`, `svg` and `pdf`, each drawn anew, so that none depends on another.

    `note` stands in the picture itself; `alt` says in words what is to be seen.
    """
    nothing = {
        "png": {"Software": None, "Title": title, "Description": alt},
        "svg": {"Date": None, "Creator": None, "Title": title},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None, "Title": title, "Subject": alt},
    }
    found = {}
    for kind, metadata in nothing.items():
        with mpl.rc_context(settings_for(width)):
            sheet = Sheet(picture, width)
            picture.draw(sheet)
            if note:
                sheet.supylabel(note, fontsize=7, style="italic")
            sheet.fit()
            data = io.BytesIO()
            sheet.savefig(data, format=kind, metadata=metadata)
            found[kind] = data.getvalue()
    found["svg"] = _described(found["svg"], alt)
    return found


def _described(svg: bytes, alt: str) -> bytes:
    """Add the description after the title that matplotlib wrote, as screen readers expect it."""
    root = re.search(rb"<svg [^>]*>", svg)
    assert root is not None
    start = root[0].removesuffix(b">") + b' role="img">'
    return svg.replace(root[0], start, 1).replace(b"</title>", f"</title>\n <desc>{escape(alt)}</desc>".encode(), 1)
