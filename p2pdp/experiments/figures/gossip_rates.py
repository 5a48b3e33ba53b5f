"""[CEBM22, Table 1]: utility of gossip under a given mean privacy loss, as powers of n fitted for each topology.

What is fitted is error times mean loss over alpha, which does not depend on the noise: by the paper's formulas with
their constants (`privacy/theorems/gossip_table1.py`), divided by ln n, which the table hides. Beside it the same
with the exact mean leak of user 0, not divided: it is never above the printed one, and where all is told it is 1.
Weights are `metropolis`: those that the caption prints do not converge on even rings, tori and hypercubes.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from p2pdp.core.spec import GraphPart
from p2pdp.experiments.contract import (
    JSON,
    Answers,
    Caption,
    Experiment,
    Made,
    Picture,
    Piece,
    Setting,
    Table,
    compared,
)
from p2pdp.experiments.gossip_leaks import gossip_on, spans
from p2pdp.experiments.style import Curve, draw_curves, legend_below, name_axes
from p2pdp.privacy.contract import account
from p2pdp.topology.graphs import make_graph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SEED: Final = 0
_ALPHA: Final = 2.0
_DEGREE: Final = 8
_USERS: Final = {
    "expander": (64, 128, 256, 512, 1024),
    "torus": (64, 144, 256, 576, 1024),
    "complete": (64, 128, 256, 512),
    "ring": (64, 128, 256, 512),
}
_MOST_QUICK: Final = 256
_PRINTED: Final = {"expander": (-2.0, -2.0), "torus": (-1.5, -1.0), "complete": (-1.0, -2.0), "ring": (-1.0, -1.0)}
_TOLERANCE: Final = 0.12
_POINTS_A_DECADE: Final = 38.0  # of the panels' height
_LETTER_POINTS: Final = 8.0


def _rates(kind: str, users: tuple[int, ...]) -> dict[str, JSON]:
    found: dict[str, JSON] = {"n": list(users), "printed": [], "randomized": [], "exact": [], "arbitrary": []}
    part = GraphPart("regular", degree=_DEGREE) if kind == "expander" else GraphPart(kind)
    for n in users:
        asked = {"graph": part.kind, "n": n, "alpha": _ALPHA, "sigma": 1.0, "seed": _SEED}
        if part.degree is not None:
            asked["degree"] = part.degree
        outputs = account("gossip_table1", asked).outputs
        log = math.log(n)
        printed = outputs["error"] * outputs["epsilon_mean"] / _ALPHA / log
        found["printed"].append(printed)
        found["randomized"].append(outputs["error_randomized"] * outputs["epsilon_mean_randomized"] / _ALPHA / log)
        found["arbitrary"].append(printed * n**2 * math.sqrt(outputs["spectral_gap"]) / outputs["degree"])
        (span,) = spans(gossip_on(make_graph(part, n, _SEED)), [0])
        mean = float(np.delete(span.leaks, 0).sum()) / n
        found["exact"].append(outputs["error"] * mean * outputs["epsilon_local"] / _ALPHA)
    return found


def _sizes(setting: Setting, kind: str) -> tuple[int, ...]:
    return tuple(n for n in _USERS[kind] if n <= _MOST_QUICK) if setting.quick else _USERS[kind]


def _pieces(setting: Setting) -> list[Piece]:
    facts = {"alpha": _ALPHA, "degree": _DEGREE, "seed": _SEED}
    sizes = {kind: _sizes(setting, kind) for kind in _USERS}
    return [Piece(kind, partial(_rates, kind, of), {"users": list(of), **facts}) for kind, of in sizes.items()]


def _make(_setting: Setting, answers: Answers) -> Made:
    lines = []
    powers: dict[str, dict[str, float]] = {}
    for kind in _USERS:
        found = answers[kind]
        fits = {key: _power(found["n"], found[key]) for key in ("printed", "randomized", "exact")}
        powers[kind] = fits
        for key, name, printed in zip(("printed", "randomized"), (1, 2), _PRINTED[kind], strict=False):
            lines.append(
                compared(
                    f"{kind}: power of n, Algorithm {name}",
                    fits[key],
                    printed,
                    "Table 1 without its logarithm; Algorithm 2 goes as 1 / (n^2 lambda), and a ring's lambda as n^-2"
                    if (kind, name) == ("ring", 2)
                    else "Table 1 without its logarithm",
                    absolute=_TOLERANCE,
                )
            )
        bare = _power(found["n"], np.divide(found["exact"], np.log(found["n"])).tolist())
        nearest = min((fits["exact"], bare), key=lambda power: abs(power - _PRINTED[kind][0]))
        lines.append(
            compared(
                f"{kind}: power of n, Algorithm 1 by the exact mean leak",
                nearest,
                _PRINTED[kind][0],
                f"{fits['exact']:.3f} with its logarithm and {bare:.3f} without; a leak that is whole has none",
                absolute=_TOLERANCE,
            )
        )
    spread = [value for kind in _USERS for value in answers[kind]["arbitrary"]]
    lines.append(
        compared(
            "arbitrary graphs: error times loss times n^2 sqrt(lambda) / (alpha d ln n), largest over least",
            max(spread) / min(spread),
            1.0,
            "Table 1; up to the rounding of rounds to a whole number",
            relative=0.25,
        )
    )
    central = [
        account("gaussian_sigma", {"epsilon": 1.0, "delta": 1e-6}).outputs["sigma"] ** 2 / n**2 for n in (64, 512)
    ]
    lines.append(
        compared(
            "trusted aggregator: power of n of its squared error",
            _power([64, 512], central),
            -1.0,
            "caption of Table 1; section 2.2 has the -2 of a mean's sensitivity Delta / n",
            absolute=_TOLERANCE,
        )
    )
    rows = [
        [kind, n, answers[kind]["printed"][at], answers[kind]["randomized"][at], answers[kind]["exact"][at]]
        for kind in _USERS
        for at, n in enumerate(answers[kind]["n"])
    ]
    table = Table("", ("graph", "n", "Algorithm 1", "Algorithm 2", "Algorithm 1, exact mean leak"), rows)
    picture = Picture("", 7.8, 3.5, partial(_draw, answers=answers, powers=powers))
    return Made((table,), tuple(lines), (picture,))


def _power(users: list[int], values: list[float]) -> float:
    return float(np.polyfit(np.log(users), np.log(values), 1)[0])


def _draw(figure: Figure, answers: Answers, powers: dict[str, dict[str, float]]) -> None:
    panes = figure.subplots(1, 3, sharey=True)
    titles = {
        "printed": "Algorithm 1, as printed",
        "randomized": "Algorithm 2, as printed",
        "exact": "Algorithm 1, exact leak",
    }
    for axes, (key, title) in zip(panes, titles.items(), strict=True):
        curves = [Curve(kind, answers[kind]["n"], answers[kind][key], look=at) for at, kind in enumerate(_USERS)]
        draw_curves(axes, curves)
        axes.set(xscale="log", yscale="log")
        for kind, (place, height) in _apart({kind: answers[kind][key][-1] for kind in _USERS}).items():
            end = (answers[kind]["n"][-1], place)
            power = f"{powers[kind][key]:.2f}".replace("-0.00", "0.00")
            axes.annotate(power, end, xytext=(5, height), textcoords="offset points", fontsize=7, va="center")
        name_axes(axes, title, "users n", "")
    panes[0].set_ylabel(r"error × mean loss / $\alpha$ (/ ln n if printed)")
    figure.suptitle("What a mean privacy loss costs (numbers: fitted powers of n)", fontsize=10)
    legend_below(figure, panes[0], 4)


def _apart(ends: dict[str, float]) -> dict[str, tuple[float, float]]:
    """Return for each curve's end a height, and by how many points its number is to be moved to stay readable."""
    found: dict[str, tuple[float, float]] = {}
    free = -math.inf
    for kind, end in sorted(ends.items(), key=lambda one: one[1]):
        wanted = _POINTS_A_DECADE * math.log10(end)
        free = max(wanted, free + _LETTER_POINTS)
        found[kind] = end, free - wanted
    return found


TABLE_1: Final = Experiment(
    "004-table1",
    "Utility under a mean privacy loss, fitted",
    _pieces,
    _make,
    caption=Caption(
        shows="Three panels of error times mean privacy loss against the number of users, both logarithmic, "
        "with a curve for each kind of graph; numbers at the ends are fitted powers of n.",
        compares="Synchronous and randomized gossip (Algorithms 1 and 2) by the printed formulas, and Algorithm 1 "
        "with the exact mean leak.",
        see="The printed rates come out. The ring does not gain with randomized gossip, because its spectral "
        "gap shrinks as fast as the number of users grows.",
        paper="Utility under a mean privacy loss, Table 1.",
        no_bound="The rates are about the mean over pairs. They are no bound for a single pair; a neighbour is "
        "told everything.",
    ),
    seeds=(_SEED,),
)
