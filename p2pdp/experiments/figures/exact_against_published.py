"""Exact leaks against printed formulas, for gossip [CEBM22] and network shuffling [LTT22].

Gossip: each pair of users on some graphs, the exact leak and equation (6) of Theorem 1. Shuffling of randomized
response over ten categories, walks at rest on a regular graph: what a perfect shuffle tells for some data, the blanket,
the clones, and the theorems as printed, Theorem 5.3 also with the term that it misses.
"""

from __future__ import annotations

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
    compared,
    holds,
)
from p2pdp.experiments.gossip_leaks import ROUNDING, Gossip, gossip_on, printed_leaks, spans
from p2pdp.experiments.shuffles import DELTA, printed_all, printed_single, sound
from p2pdp.experiments.style import COLOURS, MARKERS, Curve, draw_curves, name_axes
from p2pdp.privacy.shuffle.krr import krr_shuffle
from p2pdp.topology.graphs import make_graph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SEED: Final = 0
_CASES: Final = {  # kind, n, rounds (None: as many as the paper's rule asks for)
    "path": ("path", 3, 2),
    "ring": ("ring", 16, 8),
    "hypercube": ("hypercube", 64, None),
    "grid": ("grid", 64, None),
    "Erdős–Rényi": ("erdos_renyi", 64, None),
}
_EPSILONS: Final = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
_EPSILONS_QUICK: Final = (0.5, 1.0, 2.0)
_CATEGORIES: Final = 10
_USERS: Final = 10_000
_LEAST: Final = 1e-8


def _gossip(kind: str, n: int, rounds: int | None) -> dict[str, JSON]:
    on = gossip_on(make_graph(GraphPart(kind), n, _SEED))
    if rounds is not None:
        on = Gossip(on.graph, on.weights, on.gap, rounds)
    observers = list(range(n))
    exact = np.stack([span.leaks for span in spans(on, observers)], axis=1)
    printed = printed_leaks(on, observers)
    others = ~np.eye(n, dtype=bool)
    ends = {"exact_end": float(exact[0, n - 1]), "printed_end": float(printed[0, n - 1])}
    half = {"exact_half": float(exact[0, n // 2]), "printed_half": float(printed[0, n // 2])}
    return {"rounds": on.rounds, "exact": exact[others].tolist(), "printed": printed[others].tolist(), **ends, **half}


def _shuffle(epsilon_0: float) -> dict[str, JSON]:
    lower, upper = krr_shuffle(epsilon_0, _CATEGORIES, _USERS, DELTA)
    return {
        "lower": lower,
        "upper": upper,
        "clones": sound(epsilon_0, _USERS, 1.0),
        "all": printed_all(epsilon_0, _USERS, 1.0 / _USERS),
        "corrected": printed_all(epsilon_0, _USERS, 1.0 / _USERS, corrected=True),
        "single": printed_single(epsilon_0, 1.0 / _USERS),
    }


def _epsilons(setting: Setting) -> tuple[float, ...]:
    return _EPSILONS_QUICK if setting.quick else _EPSILONS


def _pieces(setting: Setting) -> list[Piece]:
    pieces = [
        Piece(f"gossip-{at}", partial(_gossip, *case), {"case": list(case), "seed": _SEED})
        for at, case in enumerate(_CASES.values())
    ]
    facts = {"n": _USERS, "categories": _CATEGORIES, "delta": DELTA}
    return pieces + [
        Piece(f"shuffle-{at}", partial(_shuffle, e), {"epsilon_0": e, **facts})
        for at, e in enumerate(_epsilons(setting))
    ]


def _make(setting: Setting, answers: Answers) -> Made:
    gossip = {name: answers[f"gossip-{at}"] for at, name in enumerate(_CASES)}
    epsilons = _epsilons(setting)
    shuffle = [answers[f"shuffle-{at}"] for at in range(len(epsilons))]
    lines: list[Line] = [
        compared(
            "path a-b-c, 2 rounds: what a learns of c",
            gossip["path"]["exact_end"],
            gossip["path"]["printed_end"],
            "equation (6); a hears y_b, then (y_a + y_b + y_c) / 3",
            absolute=1e-9,
        ),
        compared(
            "ring of 16, 8 rounds: what a user learns of the one opposite",
            gossip["ring"]["exact_half"],
            gossip["ring"]["printed_half"],
            "equation (6); everybody within as many steps as rounds is decoded",
            absolute=1e-9,
        ),
        *(_gossip_line(name, found) for name, found in gossip.items()),
        *_shuffle_lines(epsilons, shuffle),
    ]
    tables = (
        Table(
            "gossip",
            ("graph", "exact", "equation (6)"),
            [
                [name, a, b]
                for name, found in gossip.items()
                for a, b in zip(found["exact"], found["printed"], strict=True)
            ],
        ),
        Table(
            "shuffle",
            ("epsilon_0", *shuffle[0]),
            [[e, *found.values()] for e, found in zip(epsilons, shuffle, strict=True)],
        ),
    )
    picture = Picture("", 7.6, 4.0, partial(_draw, gossip=gossip, epsilons=epsilons, shuffle=shuffle))
    return Made(tables, tuple(lines), (picture,))


def _gossip_line(name: str, found: Answers) -> Line:
    exact, printed = np.array(found["exact"]), np.array(found["printed"])
    above = exact > printed * (1.0 + ROUNDING) + ROUNDING
    ratio = float((exact / np.maximum(printed, 1e-300)).max())
    return holds(
        f"gossip, {name}: pairs of {len(exact)} who are told more than equation (6)",
        int(above.sum()),
        "none",
        true=not above.any(),
        why=f"{found['rounds']} rounds; up to {ratio:.3g} times as much, and up to "
        f"{float((printed / np.maximum(exact, 1e-300)).max()):.3g} times as little",
    )


def _shuffle_lines(epsilons: tuple[float, ...], shuffle: list[Answers]) -> list[Line]:
    def least(name: str) -> float:
        return min(float(found[name] / found["lower"]) for found in shuffle)

    lines = [
        holds(
            f"shuffling, Theorem {theorem}: printed epsilon over what is told at least, least over epsilon_0",
            least(name),
            "a bound",
            true=least(name) >= 1.0,
            why="of walks at rest, which is what the theorem assumes; a ratio below 1 would break it",
        )
        for name, theorem in (("all", "5.3"), ("corrected", "5.3 corrected"), ("single", "5.5"))
    ]
    inside = all(found["lower"] <= found["upper"] <= found["clones"] * (1.0 + 1e-6) for found in shuffle)
    lines.append(
        Line(
            "shuffling: the sound ends over what is told at least, largest over epsilon_0",
            f"{max(f['upper'] / f['lower'] for f in shuffle):.4g} blanket, "
            f"{max(f['clones'] / f['lower'] for f in shuffle):.4g} clones",
            "1 at least",
            "agrees" if inside else "differs",
            f"lower <= blanket <= clones at epsilon_0 = {', '.join(map(str, epsilons))}",
        )
    )
    return lines


def _draw(figure: Figure, gossip: dict[str, Answers], epsilons: tuple[float, ...], shuffle: list[Answers]) -> None:
    left, right = figure.subplots(1, 2)
    for at, (name, found) in enumerate(gossip.items()):
        pairs = np.unique(np.round(np.log10(np.maximum([found["printed"], found["exact"]], _LEAST)), 3), axis=1)
        left.scatter(
            *(10.0**pairs), s=14, marker=MARKERS[at], color=COLOURS[at], alpha=0.7, linewidths=0,
            label=f"{name}, {_CASES[name][1]} users",
        )  # fmt: skip
    left.plot([_LEAST, 100.0], [_LEAST, 100.0], color="0.4", linewidth=0.8, linestyle=":")
    left.annotate("told more than printed", (1e-6, 0.3), fontsize=8)
    left.set(xscale="log", yscale="log", ylim=(0.1, 1.5))
    labels = {
        "all": "Theorem 5.3", "corrected": "Theorem 5.3, corrected", "single": "Theorem 5.5",
        "clones": "clones (sound)", "upper": "blanket (sound)", "lower": "told at least",
    }  # fmt: skip
    curves = [
        Curve(label, epsilons, [found[key] for found in shuffle], look=at)
        for at, (key, label) in enumerate(labels.items())
    ]
    draw_curves(right, curves)
    right.set_yscale("log")
    name_axes(left, "Gossip: every pair of users", "leak by equation (6)", "exact leak (1: local privacy)")
    title = f"Shuffling {_USERS:,} reports of {_CATEGORIES} categories"
    name_axes(right, title, r"$\varepsilon_0$ of one report", r"$\varepsilon$ towards the curator")
    for axes in (left, right):
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)


EXACT_AGAINST_PUBLISHED: Final = Experiment(
    "ours-exact-against-published",
    "Exact against published, for gossip and shuffling",
    _pieces,
    _make,
    caption=Caption(
        shows="Left dots for all pairs of users of some graphs, the exact leak against equation (6), both "
        "logarithmic; right epsilon towards the curator, logarithmic, against that of one report.",
        compares="Left exact against published for gossip; right, for shuffling, the printed theorems, two sound "
        "bounds, and what is told at least.",
        see="Left dots above the dotted diagonal are pairs that are told more than printed. Right the printed"
        " theorems lie far above what is told, and the sound bounds close to it.",
        paper="Theorem 1 of the Muffliato paper, and Theorems 5.3 and 5.5 of Network Shuffling.",
        no_bound="Equation (6) is no bound for pairs, and the theorems on shuffling are none for walks of finitely"
        " many rounds, even where their numbers are large.",
    ),
    seeds=(_SEED,),
)
