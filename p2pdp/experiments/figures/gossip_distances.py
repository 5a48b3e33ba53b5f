"""Leaks of gossip by distance in the graph.

[CEBM22, Figure 1a]: what gossip tells of a user by the distance to it, on four graphs of 2,048 users.

The paper's curves add up equation (6); beside them the exact leak, rounded up. On the hypercube, the paper's
exponential graph, all users at one distance are alike, and the far side is as exposed as the near side: the user
opposite is told all. Observers are evenly spread over the users, all of them on the hypercube. Random graphs are
averaged as in the paper.

[CEBM22, Figure 3]: leaks on exponential graphs (hypercubes) of 2^m users, by the distance.

By equation (6), and exactly. All observers are alike, so one is looked at. Equation (6) falls with n at every distance
beyond the first, as the paper says; the exact leak at distance k is m / C(m, k), and 1 opposite, on every hypercube.
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
    Line,
    Made,
    Picture,
    Piece,
    Setting,
    Table,
    holds,
)
from p2pdp.experiments.gossip_leaks import (
    NO_BOUND,
    by_distance,
    evenly,
    gossip_on,
    printed_leaks,
    proved_ranks,
    sized,
    spans,
)
from p2pdp.experiments.style import COLOURS, LINES, MARKERS, Curve, Panel, name_axes, panels
from p2pdp.topology.graphs import make_graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS: Final = {
    "hypercube": "exponential (hypercube)",
    "erdos_renyi": "Erdős–Rényi, q = 2 ln n / n",
    "grid": "grid",
    "geometric": "random geometric",
}
USERS: Final = 2048
USERS_QUICK: Final = 128
_DRAWS: Final = 5  # of Erdős–Rényi graphs
_OBSERVERS: Final = {"hypercube": 2048, "erdos_renyi": 256, "grid": 128, "geometric": 64}
_PARTS: Final = {"hypercube": 2, "erdos_renyi": 1, "grid": 2, "geometric": 2}
_CERTIFIED: Final = 2
_LEAST: Final = 1e-9  # what is drawn for less


def _leaks(n: int, kind: str, seed: int, observers: list[int]) -> dict[str, JSON]:
    on = gossip_on(make_graph(GraphPart(kind), n, seed))
    found = spans(on, observers)
    exact = np.stack([span.leaks for span in found], axis=1)
    first = observers[:_CERTIFIED]
    return {
        "rounds": on.rounds,
        "gap": on.gap,
        "observers": len(observers),
        "ranks": [min(span.rank for span in found), max(span.rank for span in found)],
        "rank_sum": sum(span.rank for span in found),
        "leak_sum": float(sum(np.delete(span.leaks, v).sum() for span, v in zip(found, observers, strict=True))),
        "kept": min(span.kept for span in found),
        "dropped": max(span.dropped for span in found),
        "checked": [span.rank for span in found[: len(first)]],
        "proved": proved_ranks(on, first, found[: len(first)]),
        **by_distance(on, observers, exact, printed_leaks(on, observers)),
    }


def _pieces_1a(setting: Setting) -> list[Piece]:
    n = USERS_QUICK if setting.quick else USERS
    pieces = []
    for kind in KINDS:
        chosen = evenly(n, min(_OBSERVERS[kind], 32) if setting.quick else _OBSERVERS[kind])
        for seed in range(_DRAWS if kind == "erdos_renyi" else 1):
            parts = 1 if setting.quick else _PARTS[kind]
            for part in range(parts):
                some = chosen[part::parts]
                facts = {"n": n, "kind": kind, "seed": seed, "observers": len(some), "part": part}
                pieces.append(Piece(f"{kind}-{seed}-{part}", partial(_leaks, n, kind, seed, some), facts))
    return pieces


def joined(parts: list[Answers]) -> dict[str, JSON]:
    """Join several pieces of one kind; a distance that only some of them have counts as far as it is there."""
    distances = sorted({k for part in parts for k in part["distances"]})
    found: dict[str, JSON] = {"distances": distances}
    at = [{k: place for place, k in enumerate(part["distances"])} for part in parts]
    pairs = [[part["pairs"][at_[k]] if k in at_ else 0 for k in distances] for part, at_ in zip(parts, at, strict=True)]
    found["pairs"] = np.sum(pairs, axis=0).tolist()
    for name in ("exact", "printed"):
        for end, of in (("least", min), ("most", max)):
            found[f"{name}_{end}"] = [
                of(part[f"{name}_{end}"][at_[k]] for part, at_ in zip(parts, at, strict=True) if k in at_)
                for k in distances
            ]
        sums = [
            sum(
                p[place] * part[f"{name}_mean"][at_[k]]
                for part, at_, p in zip(parts, at, pairs, strict=True)
                if k in at_
            )
            for place, k in enumerate(distances)
        ]
        found[f"{name}_mean"] = np.divide(sums, found["pairs"]).tolist()
    for key in ("observers", "rank_sum", "leak_sum", "exceeded"):
        found[key] = sum(part[key] for part in parts)
    for key in ("checked", "proved"):
        found[key] = [rank for part in parts for rank in part[key]]
    found["rounds"] = parts[0]["rounds"]
    return found


def _make_1a(setting: Setting, answers: Answers) -> Made:
    n = USERS_QUICK if setting.quick else USERS
    kinds: dict[str, Answers] = {
        kind: joined([answers[key] for key in answers if key.startswith(f"{kind}-")]) for kind in KINDS
    }
    lines = _hypercube_lines(n, kinds["hypercube"])
    for kind, found in kinds.items():
        lines += _lines_1a(kind, found)
    columns = ("graph", "distance", "pairs", "exact least", "exact mean", "exact most", "eq. (6) least",
               "eq. (6) mean", "eq. (6) most")  # fmt: skip
    keys = [f"{name}_{end}" for name in ("exact", "printed") for end in ("least", "mean", "most")]
    rows = [
        [kind, *numbers]
        for kind, found in kinds.items()
        for numbers in zip(found["distances"], found["pairs"], *(found[key] for key in keys), strict=True)
    ]
    return Made(
        (Table("", columns, rows),),
        tuple(sized(setting, lines)),
        (Picture("", 7.2, 5.4, partial(_draw_1a, kinds=kinds, n=n)),),
    )


def _hypercube_lines(n: int, found: Answers) -> list[Line]:
    m = n.bit_length() - 1
    known = [m / math.comb(m, k) if k < m else 1.0 for k in found["distances"]]
    off = float(np.abs(np.subtract(found["exact_mean"], known)).max())
    spread = max(b - a for a, b in zip(found["exact_least"], found["exact_most"], strict=True))
    return [
        holds(
            "hypercube: users at one distance leak alike, up to",
            spread,
            "the shortest path completely defines the privacy loss",
            true=spread < 1e-6,
            why="section 5 and H.2; exact leaks of all observers",
        ),
        holds(
            f"hypercube: leak at distance {m} over that at distance 1",
            found["exact_mean"][-1] / found["exact_mean"][0],
            "privacy is significantly amplified as the distance increases",
            true=found["exact_mean"][-1] < 0.1 * found["exact_mean"][0],
            why=f"the far side is as exposed as the near side; equation (6) puts {found['printed_mean'][-1]:.2g} there",
        ),
        Line(
            "hypercube: largest difference to m / C(m, k), and 1 at distance m",
            off,
            "0, by the closed form",
            "agrees" if off < 1e-6 else "differs",
            "the closed form, checked by exact arithmetic elsewhere",
        ),
    ]


def _lines_1a(kind: str, found: Answers) -> list[Line]:
    pairs = sum(found["pairs"])
    mean, by_rank = found["leak_sum"] / pairs, (found["rank_sum"] - found["observers"]) / pairs
    least = min(a / b for a, b in zip(found["proved"], found["checked"], strict=True))
    falls = bool(np.all(np.diff(found["exact_mean"]) <= 1e-6))
    return [
        holds(
            f"{kind}: exact leak exceeds equation (6) in so many of {pairs:,} pairs",
            found["exceeded"],
            "Theorem 1: a tight computation of the privacy loss between every pair",
            true=found["exceeded"] == 0,
            why=f"{found['observers']} observers, {found['rounds']} rounds; messages share their noise",
        ),
        holds(
            f"{kind}: mean exact leak at distances 1, 2 and {found['distances'][-1]}",
            f"{found['exact_mean'][0]:.3g}, {found['exact_mean'][1]:.3g}, {found['exact_mean'][-1]:.3g}",
            "amplification as the distance increases",
            true=falls and found["exact_mean"][-1] < 0.1,
            why="holds where it falls with every step, to a tenth of local privacy at least",
        ),
        Line(
            f"{kind}: mean leak less (rank - 1) / (n - 1)",
            mean - by_rank,
            "0, as projectors have it",
            "agrees" if abs(mean - by_rank) < 1e-6 else "differs",
            f"the mean leak is {mean:.4g} of local privacy",
        ),
        Line(
            f"{kind}: ranks of {len(found['checked'])} views modulo a prime over those by floats, at least",
            least,
            "1, where floats are right",
            "agrees" if least == 1.0 else "differs",
            "where it is below 1, floats take rounding for rows and exact leaks are upper ends by as much in the mean",
        ),
    ]


def _draw_1a(figure: Figure, kinds: dict[str, Answers], n: int) -> None:
    panes = figure.subplots(2, 2, sharey=True)
    for axes, (kind, found) in zip(panes.flat, kinds.items(), strict=True):
        draw_by_distance(axes, found)
        name_axes(axes, f"{KINDS[kind]}: {found['rounds']} rounds", "distance in the graph", "")
    for axes in panes[:, 0]:
        axes.set_ylabel("leak (1: local privacy)")
    lowest = min(min(found[f"{name}_least"]) for found in kinds.values() for name in ("exact", "printed"))
    panes[0, 0].set_ylim(max(lowest, _LEAST) / 2.0, 100.0)
    figure.suptitle(f"What gossip among {n:,} users tells about a user at a distance", fontsize=10)
    figure.legend(*panes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)


def draw_by_distance(axes: Axes, found: Answers) -> None:
    """Draw mean leaks with bars from the least to the largest; what is below the axis stands at its lower end."""
    labels = {"exact": "exact (mean, least to most)", "printed": "equation (6), no bound for pairs"}
    for at, (name, label) in enumerate(labels.items()):
        mean, least, most = (np.maximum(found[f"{name}_{end}"], _LEAST) for end in ("mean", "least", "most"))
        shifted = np.array(found["distances"]) + 0.15 * (at - 0.5)
        axes.errorbar(
            shifted, mean, yerr=np.maximum([mean - least, most - mean], 0.0), label=label, color=COLOURS[2 * at],
            marker=MARKERS[2 * at], linestyle=LINES[2 * at], elinewidth=0.7, markevery=max(1, len(mean) // 16),
            errorevery=max(1, len(mean) // 24),
        )  # fmt: skip
    axes.axhline(1.0, color="0.5", linewidth=0.8, linestyle=":", label="local privacy")
    axes.set_yscale("log")
    axes.locator_params(axis="x", integer=True)


FIGURE_1A: Final = Experiment(
    "004-fig1a",
    "Leak by distance on four synthetic graphs",
    _pieces_1a,
    _make_1a,
    caption=Caption(
        shows="Four panels, one for each graph, of what gossip tells about a user, logarithmic, against its "
        "distance; 1 is local privacy. Points are means, bars reach from the least to the most.",
        compares="Equation (6) of the paper, and the exact leak.",
        see="Equation (6) falls with the distance on every graph. The exact leak stays near 1 on the grid and"
        " the geometric graph, and on the hypercube it rises again to 1 for the user opposite.",
        paper="Privacy is significantly amplified as the distance increases (section 5).",
        no_bound=NO_BOUND,
    ),
    seeds=tuple(range(_DRAWS)),
)

_POWERS: Final = (5, 6, 7, 8, 9, 10, 11, 12)
_POWERS_QUICK: Final = (4, 5, 6, 7)
_DRAWN: Final = 4


def _leaks_3(power: int) -> dict[str, JSON]:
    on = gossip_on(make_graph(GraphPart("hypercube"), 2**power, 0))
    (span,) = spans(on, [0])
    return {"rounds": on.rounds, **by_distance(on, [0], span.leaks[:, None], printed_leaks(on, [0]))}


def _powers(setting: Setting) -> tuple[int, ...]:
    return _POWERS_QUICK if setting.quick else _POWERS


def _pieces_3(setting: Setting) -> list[Piece]:
    return [Piece(f"m-{power:02d}", partial(_leaks_3, power), {"m": power}) for power in _powers(setting)]


def _make_3(setting: Setting, answers: Answers) -> Made:
    powers = _powers(setting)
    found = {power: answers[f"m-{power:02d}"] for power in powers}
    printed_2 = [found[power]["printed_mean"][1] for power in powers]
    exact_2 = [found[power]["exact_mean"][1] for power in powers]
    opposite = [found[power]["exact_mean"][-1] for power in powers]
    off = max(
        abs(leak - power / math.comb(power, k))
        for power in powers
        for k, leak in zip(found[power]["distances"], found[power]["exact_mean"], strict=True)
        if k < power
    )
    lines = [
        holds(
            f"equation (6) at distance 2, m = {powers[0]} and {powers[-1]}",
            f"{printed_2[0]:.3g} and {printed_2[-1]:.3g}",
            "privacy guarantees improve with n",
            true=bool(np.all(np.diff(printed_2) < 0.0)),
            why="H.1; falls with every step of m",
        ),
        holds(
            f"exact leak at distance 2, m = {powers[0]} and {powers[-1]}",
            f"{exact_2[0]:.3g} and {exact_2[-1]:.3g}",
            "privacy guarantees improve with n",
            true=bool(np.all(np.diff(exact_2) < 0.0)),
            why=f"2 / (m - 1); the largest difference to m / C(m, k) at any distance is {off:.1e}",
        ),
        holds(
            "exact leak of the opposite user, least of all m",
            min(opposite),
            "the farther, the less is told",
            true=max(opposite) < 1.0,
            why="all is told, whatever n",
        ),
    ]
    rows = [
        [power, found[power]["rounds"], k, printed, exact]
        for power in powers
        for k, printed, exact in zip(
            found[power]["distances"], found[power]["printed_mean"], found[power]["exact_mean"], strict=True
        )
    ]
    table = Table("", ("m", "rounds", "distance", "equation (6)", "exact"), rows)
    drawn = sorted(found)[:: max(1, len(found) // _DRAWN)] if len(found) > _DRAWN else sorted(found)
    titles = {"printed_mean": "equation (6), no bound for pairs", "exact_mean": "exact: the far side is exposed too"}
    shown = []
    for name, title in titles.items():
        curves = [
            Curve(f"n = {2**power:,}", found[power]["distances"], found[power][name], look=at)
            for at, power in enumerate(drawn)
        ]
        shown.append(Panel(title, "distance in the graph", curves, log="y", level=(1.0, "local privacy", ":")))
    title = "Gossip on hypercubes of n users"
    picture = panels((7.2, 3.7), shown, y="leak (1: local privacy)", title=title, columns=5, share="xy")
    return Made((table,), tuple(sized(setting, lines)), (picture,))


FIGURE_3: Final = Experiment(
    "004-fig3",
    "Leaks on hypercubes of growing size",
    _pieces_3,
    _make_3,
    caption=Caption(
        shows="Two panels of the leak, logarithmic, against the distance on hypercubes, with a curve for each "
        "number of users; 1 is local privacy.",
        compares="Left equation (6), right the exact leak.",
        see="Left every curve falls to the end. Right every curve falls to the middle and rises again to 1: "
        "about the user opposite everything is told.",
        paper="Privacy improves with the number of users and with the distance (H.1).",
        no_bound=NO_BOUND,
    ),
)
