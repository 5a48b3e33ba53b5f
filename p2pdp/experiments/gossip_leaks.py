"""Leaks of synchronous gossip on graphs that everybody knows: exact, and as [CEBM22, equation (6)] adds them up.

Both are in units of local privacy: 1 is what a user's own noised value tells. Weights are `metropolis`, as in the
authors' code, and runs are as long as Theorem 2 wants for sigma = Delta = 1, accelerated, which changes no leak. A user
hears its neighbours in each round. Exact leaks are those of `privacy/linear/krylov.py`, raised by what rounding may
have hidden: on graphs that mix slowly they are upper ends, which `proved_ranks` tells.

What each user of a Facebook ego graph learns of one user, for [CEBM22, Figures 1b and 5].

The user is drawn at random once for each graph, as in the paper, which names neither graph nor user. All others are
observers in turn; leaks are by equation (6), and exact. A graph is the largest component of an
ego's friends, without the ego.

How many edges lie between nodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.experiments import inputs
from p2pdp.experiments.contract import JSON, Answers, Line, Piece, Setting, Table, holds, unknown
from p2pdp.experiments.style import LEAK_COLOURS, LEAK_SHADES
from p2pdp.privacy.linear.krylov import Span, fixed_span
from p2pdp.privacy.linear.layers import View, fixed_layers, modular_ranks, raised
from p2pdp.privacy.linear.modular import PRIMES
from p2pdp.privacy.linear.published import theorem_1
from p2pdp.topology.gossip_rounds import rounds_needed
from p2pdp.topology.graphs import Graph, graph_of_edges
from p2pdp.topology.spectra import spectrum_ends
from p2pdp.topology.weights import METROPOLIS, sparse_weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Gossip:
    """A graph with its weights and the number of rounds that make results precise."""

    graph: Graph
    weights: Any
    gap: float
    rounds: int


def gossip_on(graph: Graph, weights: str = METROPOLIS) -> Gossip:
    matrix = sparse_weights(graph, weights)
    gap = spectrum_ends(matrix).gap
    return Gossip(graph, matrix, gap, rounds_needed(gap, graph.n, 1.0, 1.0, 1, accelerated=True))


def spans(on: Gossip, observers: Sequence[int]) -> list[Span]:
    """Return what each observer learns of all users."""
    neighbours = on.graph.neighbours
    found = [fixed_span(on.weights, neighbours, [observer], on.rounds) for observer in observers]
    return [raised(span, span.rank) for span in found]


def proved_ranks(on: Gossip, observers: Sequence[int], of: Sequence[Span]) -> list[int]:
    """Return the ranks of these views modulo a prime: never above the truth, and below it by bad luck only.

    Where they are below those of `of`, floats took rounding for rows, and the leaks there are too high.
    """
    views = [_view(on, observer) for observer in observers]
    return modular_ranks(fixed_layers(on.weights, on.rounds), views, max(span.rank for span in of), PRIMES[0])


def printed_leaks(on: Gossip, observers: Sequence[int]) -> Floats:
    """Return equation (6), of each user (row) for each observer (column); it may exceed 1."""
    return theorem_1(fixed_layers(on.weights, on.rounds), [_view(on, observer) for observer in observers])


def _view(on: Gossip, observer: int) -> View:
    return View(dict.fromkeys(range(on.rounds), on.graph.neighbours[observer]), [observer])


def by_distance(on: Gossip, observers: Sequence[int], exact: Floats, printed: Floats) -> dict[str, JSON]:
    """Return least, mean and largest leak at each distance, and the number of pairs; columns are observers."""
    away = np.array([distances_from(on.graph, observer) for observer in observers]).T
    groups = range(1, int(away.max()) + 1)
    found: dict[str, JSON] = {"distances": list(groups), "pairs": [int(np.sum(away == k)) for k in groups]}
    for name, leaks in (("exact", exact), ("printed", printed)):
        for end, of in (("least", np.min), ("mean", np.mean), ("most", np.max)):
            found[f"{name}_{end}"] = [float(of(leaks[away == k])) for k in groups]
    others = away > 0
    found["exceeded"] = int(np.sum(others & (exact > printed * (1.0 + ROUNDING) + ROUNDING)))
    return found


def sized(setting: Setting, lines: list[Line]) -> list[Line]:
    """Judge nothing in the quick form, whose graphs are smaller than the paper's."""
    if not setting.quick:
        return lines
    small = "a smaller graph than the paper's"
    return [line if line.paper is None else unknown(line.what, line.ours, f"{small}; {line.why}") for line in lines]


def evenly(n: int, count: int) -> list[int]:
    """Return `count` users, evenly spread over their numbers."""
    chosen: list[int] = np.unique(np.linspace(0, n - 1, min(n, count)).astype(np.int64)).tolist()
    return chosen


NO_BOUND: Final = (
    "Equation (6) takes messages to have independent noise. They share it, so for single pairs it is no bound; "
    "the exact leak of many pairs is above it."
)
"""Of equation (6), for captions."""
SEED: Final = 4
_AT_ONCE: Final = 260  # observers
_CHECKED: Final = 2
_SMALL: Final = 0.1


def ego_pieces(setting: Setting, egos: Sequence[int]) -> list[Piece]:
    """Return each graph's observers in parts, and where its users are drawn."""
    pieces = []
    for ego, edges in inputs.egos(setting).items():
        if ego not in egos:
            continue
        parts = -(-edges.n // _AT_ONCE)
        for part in range(parts):
            facts = {"ego": ego, "seed": SEED, "part": part, "parts": parts}
            pieces.append(Piece(f"ego-{ego}-{part}", partial(_leaks, setting, ego, part, parts), facts))
    return pieces


def _leaks(setting: Setting, ego: int, part: int, parts: int) -> dict[str, JSON]:
    edges = inputs.egos(setting)[ego]
    on = gossip_on(graph_of_edges(edges.n, edges.edges))
    user = int(np.random.Generator(np.random.Philox(key=[SEED, ego])).integers(edges.n))
    observers = list(range(part, edges.n, parts))
    found = spans(on, observers)
    first = observers[:_CHECKED]
    answer: dict[str, JSON] = {
        "n": edges.n,
        "rounds": on.rounds,
        "user": user,
        "observers": observers,
        "exact": [float(span.leaks[user]) for span in found],
        "printed": printed_leaks(on, observers)[user].tolist(),
        "checked": [span.rank for span in found[: len(first)]],
        "proved": proved_ranks(on, first, found[: len(first)]),
    }
    if part == 0:
        answer["distance"] = distances_from(on.graph, user)
        answer["edges"] = edges.edges.tolist()
        answer["places"] = _places(edges.n, edges.edges)
    return answer


def _places(n: int, edges: Any) -> list[list[float]]:
    import networkx as nx

    drawn = nx.Graph()
    drawn.add_nodes_from(range(n))
    drawn.add_edges_from(edges.tolist())
    places = nx.spring_layout(drawn, seed=SEED)
    return [[round(float(part), 4) for part in places[user]] for user in range(n)]


def joined(answers: Answers) -> dict[int, dict[str, Any]]:
    """Return the parts of each graph as one, with leaks indexed by observer."""
    found: dict[int, dict[str, Any]] = {}
    for key, part in answers.items():
        one = found.setdefault(int(key.split("-")[1]), {"checked": [], "proved": []})
        n = part["n"]
        one |= {name: part[name] for name in ("n", "rounds", "user", "distance", "edges", "places") if name in part}
        for name in ("exact", "printed"):
            one.setdefault(name, np.full(n, np.nan))[part["observers"]] = part[name]
        for name in ("checked", "proved"):
            one[name] += part[name]
    return found


def ego_lines(setting: Setting, found: Mapping[int, Mapping[str, Any]]) -> list[Line]:
    lines = []
    for ego, one in found.items():
        away = np.array(one["distance"])
        far = away > 1
        exact, printed = one["exact"][far], one["printed"][far]
        least = min(a / b for a, b in zip(one["proved"], one["checked"], strict=True))
        lines.append(
            holds(
                f"ego {ego}: share of those at distance 2 and more who learn less than {_SMALL} of local",
                float(np.mean(exact < _SMALL)),
                "leakage is limited outside the node's own community",
                true=float(np.mean(exact < _SMALL)) > 0.5,
                why=f"{float(np.mean(printed < _SMALL)):.3g} by equation (6), which is exceeded for "
                f"{int(np.sum(exact > printed * (1.0 + ROUNDING)))} of {len(exact)}; n = {one['n']}, {one['rounds']} "
                f"rounds; more than half passes; ranks modulo a prime are {least:.4g} of those by floats at least",
            )
        )
    if setting.data is None:
        return [unknown(line.what, line.ours, "of a stand-in, not of the paper's graph") for line in lines]
    return lines


def ego_table(found: Mapping[int, Mapping[str, Any]]) -> Table:
    rows = [
        [ego, observer, one["distance"][observer], float(one["printed"][observer]), float(one["exact"][observer])]
        for ego, one in found.items()
        for observer in range(one["n"])
        if observer != one["user"]
    ]
    return Table("", ("ego", "observer", "distance", "equation (6)", "exact"), rows)


def draw_ego(axes: Axes, one: Mapping[str, Any], name: str, size: float) -> Any:
    """Draw users shaded by what they learn of the crossed one; return what a colour bar needs."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LogNorm

    places = np.array(one["places"])
    ends, (x, y) = np.array(one["edges"]), places[one["user"]]
    lines = LineCollection(list(places[ends]), colors="0.85", linewidths=0.15, zorder=1, rasterized=True)
    axes.add_collection(lines)
    order = np.argsort(one[name])  # the most exposed on top
    others = order[order != one["user"]]
    values = np.clip(one[name][others], *LEAK_SHADES)
    drawn = axes.scatter(
        places[others, 0], places[others, 1], c=values, s=size, norm=LogNorm(*LEAK_SHADES), cmap=LEAK_COLOURS,
        linewidths=0.15, edgecolors="0.5", zorder=2, rasterized=True
    )  # fmt: skip
    axes.scatter(x, y, marker="X", s=50, color="white", edgecolors="black", linewidths=0.9, zorder=3)
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_visible(False)
    return drawn


UNREACHED = -1


def distances_from(graph: Graph, node: int) -> list[int]:
    """Return the distance to every node, by breadth-first search; `UNREACHED` where there is no path."""
    found = [UNREACHED] * graph.n
    found[node] = 0
    queue = deque([node])
    while queue:
        near = queue.popleft()
        for far in graph.neighbours[near]:
            if found[far] == UNREACHED:
                found[far] = found[near] + 1
                queue.append(far)
    return found
