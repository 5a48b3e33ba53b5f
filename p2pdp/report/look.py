"""One look for the pictures of papers, sweeps and results: settings of matplotlib, colours, markers and lines."""

from __future__ import annotations

from typing import Any, Final

SETTINGS: Final[Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so it is everywhere the same
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.0,
    "legend.fontsize": 8.0,
    "legend.frameon": False,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.88",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "errorbar.capsize": 2.0,
    "svg.hashsalt": "p2pdp",
    "svg.fonttype": "path",
    "savefig.dpi": 200,
    "figure.constrained_layout.use": True,
}
# The first four, the most used, from dark to light in grey; all apart for people who see colours differently.
COLOURS: Final = ("#000000", "#0b4f8a", "#c23b2e", "#2fa37a", "#7b5cb8", "#d99a2b", "#7cc0e8", "#8c8c8c")
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES: Final[tuple[Any, ...]] = (
    "-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (7, 2)), (0, (1, 1)), (0, (3, 1, 1, 1)),
)  # fmt: skip
