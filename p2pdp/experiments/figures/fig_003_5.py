"""[LTT22, Figure 5]: epsilon against rounds on k-regular graphs, where every law of a report is known exactly.

Theorem 5.4 takes rho^2 S, rho the largest over the smallest chance of a place that can be reached; the start with the
largest epsilon is shown. Beside it the sound claim, by how much the walks of any two users overlap, pair by pair. The
paper prints neither n, k, epsilon_0 nor delta of this figure.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from p2pdp.accounting.shuffle.overlap import overlapped_worst
from p2pdp.core.spec import GraphPart
from p2pdp.experiments.contract import JSON, Answers, Experiment, Made, Picture, Piece, Setting, Table, holds, unknown
from p2pdp.experiments.shuffle_claims import DELTA, printed_all
from p2pdp.experiments.style import Curve, draw_curves, legend_below, name_axes
from p2pdp.topology.graphs import make_graph
from p2pdp.topology.walk_matrix import walk_matrix
from p2pdp.topology.walk_overlap import overlaps_of_laws

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SEED: Final = 5
_EPSILON_0: Final = 0.5
_DEGREES: Final = (4, 6, 8, 16)
_USERS: Final = 1000
_USERS_QUICK: Final = 120
_LAST: Final = 60
_LAST_QUICK: Final = 30
_SOUND_AT: Final = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60)
_NEAR: Final = 1.05


def _walk(n: int, degree: int, last: int) -> dict[str, JSON]:
    walk = walk_matrix(make_graph(GraphPart("regular", degree=degree), n, _SEED))
    laws = np.eye(n)
    printed, single, sound = [], [], {}
    for t in range(1, last + 1):
        laws = walk.backward @ laws
        spread = np.einsum("ij,ij->j", laws, laws)
        ratio = laws.max(axis=0) / np.where(laws > 0.0, laws, np.inf).min(axis=0)
        start = int(np.argmax(ratio**2 * spread))
        printed.append(printed_all(_EPSILON_0, n, float(spread[start]), float(ratio[start])))
        single.append(printed_all(_EPSILON_0, n, float(spread[0]), float(ratio[0])))
        if t in _SOUND_AT:
            sound[str(t)] = overlapped_worst(_EPSILON_0, overlaps_of_laws(np.ascontiguousarray(laws.T), t), DELTA)[1]
    return {"printed": printed, "one_start": single, "sound": sound, "at_rest": printed_all(_EPSILON_0, n, 1.0 / n)}


def _size(setting: Setting) -> tuple[int, int]:
    return (_USERS_QUICK, _LAST_QUICK) if setting.quick else (_USERS, _LAST)


def _pieces(setting: Setting) -> list[Piece]:
    n, last = _size(setting)
    facts = {"n": n, "last": last, "seed": _SEED, "epsilon_0": _EPSILON_0, "delta": DELTA}
    return [Piece(f"k-{k}", partial(_walk, n, k, last), {"k": k, **facts}) for k in _DEGREES]


def _converged(found: Answers) -> int | None:
    """The first round from which on the theorem's epsilon stays near its limit."""
    far = [t for t, epsilon in enumerate(found["printed"], 1) if epsilon > _NEAR * found["at_rest"]]
    first = (far[-1] if far else 0) + 1
    return first if first <= len(found["printed"]) else None


def _make(setting: Setting, answers: Answers) -> Made:
    n, last = _size(setting)
    found = {k: answers[f"k-{k}"] for k in _DEGREES}
    times = {k: _converged(found[k]) or last + 1 for k in _DEGREES}
    rises = [k for k in _DEGREES if np.any(np.diff(found[k]["one_start"]) > 0.0)]
    lines = [
        holds(
            "rounds until Theorem 5.4 is near its limit, for k = " + ", ".join(map(str, _DEGREES)),
            ", ".join(str(times[k]) if times[k] <= last else f"over {last}" for k in _DEGREES),
            "the larger k, the faster",
            true=all(times[a] >= times[b] for a, b in pairwise(_DEGREES)),
            why="caption; near means within 5 %",
        ),
        holds(
            "epsilon of one start rises in some round, for k =",
            ", ".join(map(str, rises)) or "none",
            "non-monotonic in early times",
            true=bool(rises),
            why="section 5.4; it is the factor rho that rises, the sum of P^2 falls in every round",
        ),
        *(
            unknown(
                f"k = {k}: sound epsilon after {max(map(int, found[k]['sound']))} rounds, n = {n}",
                list(found[k]["sound"].values())[-1],
                f"Theorem 5.4 tends to {found[k]['at_rest']:.3g}; the paper prints no numbers of this figure",
            )
            for k in _DEGREES
        ),
    ]
    rows: list[list[float | str]] = [
        [k, t, found[k]["printed"][t - 1], found[k]["one_start"][t - 1], found[k]["sound"].get(str(t), "")]
        for k in _DEGREES
        for t in range(1, last + 1)
    ]
    columns = ("k", "rounds", "epsilon by Theorem 5.4, worst start", "of user 0", "epsilon sound")
    picture = Picture("", 7.2, 3.7, partial(_draw, found=found, n=n))
    return Made((Table("", columns, rows),), tuple(lines), (picture,))


def _draw(figure: Figure, found: dict[int, Answers], n: int) -> None:
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    rounds = range(1, len(found[_DEGREES[0]]["printed"]) + 1)
    draw_curves(left, [Curve(f"k = {k}", list(rounds), found[k]["printed"], look=at) for at, k in enumerate(_DEGREES)])
    draw_curves(
        right,
        [
            Curve(f"k = {k}", [int(t) for t in found[k]["sound"]], list(found[k]["sound"].values()), look=at)
            for at, k in enumerate(_DEGREES)
        ],
    )
    for axes in (left, right):
        axes.axhline(_EPSILON_0, color="0.5", linewidth=0.8, label=r"$\varepsilon_0$ of one report")
        axes.set(xscale="log", yscale="log")
    figure.suptitle(f"Network shuffling on k-regular graphs of {n:,} users", fontsize=10)
    y = r"$\varepsilon$ towards the curator"
    name_axes(left, "Theorem 5.4 as printed (no bound)", "rounds t", y)
    name_axes(right, "sound: overlap of walks, pair by pair", "rounds t", "")
    legend_below(figure, left, 5)


EXPERIMENT: Final = Experiment(
    "003-fig5",
    "Network Shuffling, figure 5",
    "Privacy against rounds on regular graphs",
    _pieces,
    _make,
    seeds=(_SEED,),
)
