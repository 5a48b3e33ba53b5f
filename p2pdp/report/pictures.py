"""Pictures of results, plans, audits and sweeps on axes of matplotlib, in the look of the papers' pictures.

They show estimates with their standard errors, bounds, and how errors compare; never truths or values of single users.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from p2pdp.core.claims import Claim
from p2pdp.report.look import COLOURS, LINES, MARKERS
from p2pdp.report.page.curves import NAMES
from p2pdp.report.page.words import number, observer
from p2pdp.report.sweep import LINES_MAX, Row, shown, summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_bars(axes: Axes, names: Sequence[str], sizes: Sequence[float], label: str) -> None:
    """Draw a bar for each name, the first on top, with its number beside it; infinite ones reach the edge, hatched."""
    finite = [size for size in sizes if size < math.inf]
    edge = 1.25 * max(finite, default=1.0) or 1.0
    for place, size in enumerate(sizes):
        endless = size == math.inf
        width, colour = (edge, "white") if endless else (size, COLOURS[1 if place == 0 else 7])
        axes.barh(place, width, 0.6, color=colour, hatch="//" if endless else None, edgecolor=COLOURS[0])
        axes.annotate(f" {number(float(size))}", (width, place), va="center", fontsize=8)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(0.0, 1.2 * edge)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(label)


def draw_claims(axes: Axes, claims: Iterable[Claim], title: str) -> None:
    """Draw the smallest bound for each observer and what it is assumed to know."""
    best: dict[str, float] = {}
    for claim in claims:
        if claim.bound and claim.epsilon_max is not None:
            name = f"{observer(claim)}\n({claim.conditioning})"
            best[name] = min(claim.epsilon_max, best.get(name, math.inf))
    draw_bars(axes, [*best], [*best.values()], "epsilon")
    axes.set_title(title)


def draw_pairs(axes: Axes, epsilon: Any, title: str) -> None:
    """Draw epsilon of every pair [user, observer], infinite ones in red; a pair without a number stays white."""
    from matplotlib.colors import ListedColormap
    from matplotlib.ticker import MaxNLocator

    numbers = np.asarray(epsilon, dtype=float)
    drawn = axes.imshow(np.ma.masked_invalid(numbers), cmap="YlGnBu", interpolation="nearest")
    endless = np.isposinf(numbers)
    if endless.any():
        axes.imshow(np.ma.masked_where(~endless, endless), cmap=ListedColormap([COLOURS[2]]), interpolation="nearest")
        title = f"{title} (red: infinite)"
    if np.isfinite(numbers).any():
        axes.figure.colorbar(drawn, ax=axes, label="epsilon")
    for axis, name in ((axes.xaxis, "observer"), (axes.yaxis, "user")):
        axis.set_major_locator(MaxNLocator(integer=True))
        axis.set_label_text(name)
    axes.grid(visible=False)
    axes.set_title(title)


def draw_estimate(axes: Axes, estimate: Any, error: Any, title: str) -> None:
    """Draw an estimate of one or several numbers, with its standard error."""
    numbers = np.atleast_1d(np.asarray(estimate, dtype=float))
    spread = None if error is None else np.broadcast_to(np.asarray(error, dtype=float), numbers.shape)
    axes.errorbar(np.arange(len(numbers)), numbers, yerr=spread, fmt=MARKERS[0], color=COLOURS[1], capsize=3)
    axes.set_xticks(range(len(numbers)) if len(numbers) <= 12 else [])
    axes.margins(x=0.2)
    axes.set_xlabel("number of the estimate")
    axes.set_ylabel("estimate ± standard error")
    axes.set_title(title)


def draw_sweep(axes: Axes, grid: Sequence[str], rows: Sequence[Row], title: str) -> None:
    """Draw the error, or in plans the standard error, over the first key of the grid, a line for each of the second."""
    keys = [*grid[:2]] or ["seed"]
    points = summary(keys, rows)
    name = "error" if any(point.error is not None for point in points) else "standard_error"
    lines: dict[str, list[tuple[Any, float]]] = {}
    for point in points:
        value = getattr(point, name)
        if value is not None:
            lines.setdefault(" ".join(map(shown, point.values[1:])), []).append((point.values[0], value))
    for place, (label, line) in enumerate([*lines.items()][:LINES_MAX]):
        look: Mapping[str, Any] = {
            "color": COLOURS[place], "marker": MARKERS[place], "linestyle": LINES[place]
        }  # fmt: skip
        numeric = all(isinstance(x, int | float) for x, _ in line)
        axes.plot([x if numeric else shown(x) for x, _ in line], [y for _, y in line], label=label, **look)
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel(keys[0])
    axes.set_ylabel("root mean square error" if name == "error" else "standard error")
    axes.set_title(title)
    if len(lines) > 1:
        axes.legend(title=keys[1])


def draw_learning(axes: Axes, curves: Mapping[str, Any], title: str) -> None:
    """Draw the score of models over steps, or the loss where there is no score; over trials with its standard error."""
    from matplotlib.ticker import MaxNLocator

    kind = "loss" if curves["score_name"] is None else "score"
    for place, (name, line) in enumerate(curves["of"].items()):
        over = line.get("over_trials", {}).get(kind)
        middle = np.array(line[kind] if over is None else over["mean"], dtype=float)
        axes.plot(curves["at"], middle, label=NAMES.get(name, name), color=COLOURS[place], linestyle=LINES[place])
        if over is not None:
            error = np.array(over["standard_error"], dtype=float)
            axes.fill_between(
                curves["at"], middle - error, middle + error, color=COLOURS[place], alpha=0.2, linewidth=0
            )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel(curves["step"])
    axes.set_ylabel(f"{curves['score_name'] or 'loss'} on {curves['rows']} public rows")
    axes.set_title(title)
    axes.legend()
