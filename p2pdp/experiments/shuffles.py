"""Epsilon of network shuffling as [LTT22] prints it and as it is proved here, and the social graphs of its figures.

The paper prints no delta. All its figures are made with 1e-6: Theorems 5.3 and 5.4 spend half of it on uneven loads
(delta_2), Theorems 5.5 and 5.6 and our own claim need no such part. Above epsilon_0 a claim says nothing, because
nobody learns more from a report than the report holds; [LTT22] draws its curves beyond that, and so do we.

How much a report's place is spread: S(t) = sum of P(i)^2 for one start, and how uneven a graph is at rest.

`gamma` is n times the sum of the squared stationary chances, as [LTT22] defines it; 1 on regular graphs. Table 4
there shows other numbers: `gamma_printed` gives those, to the last digit on the four graphs that could be checked. It
puts the row sums of the upper triangle of the adjacency matrix in the place of degrees, so that each edge counts at
its end with the lower number only. That the authors read half of a symmetric matrix is inferred from the agreement.

On a regular graph S(t) is the chance P^(2t)_jj to be back after 2t rounds, a sum of even powers of eigenvalues, so it
falls in every round. What oscillates early in figure 5 of the paper is the factor rho of Theorem 5.4, the largest over
the smallest chance of a place that can be reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.experiments import inputs
from p2pdp.experiments.contract import Setting
from p2pdp.files.paper_data import place_in
from p2pdp.files.tables import read_loops
from p2pdp.privacy.shuffle.krr import clones
from p2pdp.privacy.shuffle.published import epsilon_all, epsilon_single, load
from p2pdp.topology.graphs import Graph, graph_of_edges
from p2pdp.topology.report_walks.matrix import WalkMatrix, checked_rounds, walk_matrix
from p2pdp.topology.report_walks.mixing import ETA, auto_rounds, mixing_of, mixing_rounds

DELTA: Final = 1e-6
TOWARDS_CURATOR: Final = r"$\varepsilon$ towards the curator"
ONE_REPORT: Final = r"$\varepsilon_0$ of one report"
KAPPA_AUTO: Final = (1.0 - ETA) / (1.0 + ETA)
"""What walks of any two users overlap at least after the rounds that our own rule asks for."""


def printed_all(epsilon_0: float, n: int, sum_p2: float, rho: float = 1.0, *, corrected: bool = False) -> float:
    """Return Theorem 5.3, or 5.4 where rho is given; `corrected` adds the term that Lemma 5.1 misses."""
    return epsilon_all(epsilon_0, load(n, sum_p2, DELTA / 2.0, rho, corrected=corrected), DELTA / 2.0)


def printed_single(epsilon_0: float, sum_p2: float) -> float:
    """Return epsilon by Theorems 5.5 and 5.6."""
    return epsilon_single(epsilon_0, sum_p2, DELTA)


def sound(epsilon_0: float, n: int, kappa: float) -> float:
    """Return the sound epsilon of either protocol on any graph where walks of any two users overlap by kappa."""
    return clones(epsilon_0, n, DELTA, kappa)[1] if kappa > 0.0 else epsilon_0


SOCIAL: Final = ("facebook", "twitch", "deezer", "enron")
GOOGLE_PRINTED: Final = (855_802, 20.642)
"""Users and Gamma of the Google graph as Table 4 prints them: no data folder has it."""


def social_graph(setting: Setting, name: str) -> Graph:
    edges = inputs.graph(setting, name)
    return graph_of_edges(edges.n, edges.edges)


def looped_users(setting: Setting, name: str) -> Ints:
    """Return users with a loop in the file; a stand-in has none."""
    if setting.data is None:
        return np.zeros(0, dtype=np.int64)
    return read_loops(place_in(setting.data, inputs.graph_file(name)), inputs.graph(setting, name))


NO_BOUND: Final = (
    "Theorems 5.3 and 5.5 as printed are no bound: their proofs take the reports of all users to follow one law, "
    "which finitely many rounds do not give."
)
"""Of the printed theorems, for captions."""


@dataclass(frozen=True, slots=True)
class Rested:
    """A graph after the paper's mixing time: users, rounds, sum of P^2 by its equation (7), and what our rule asks."""

    n: int
    rounds: int
    sum_p2: float
    auto: int
    kappa: float


def rested(graph: Graph) -> Rested:
    mixing = mixing_of(graph)
    rounds, auto = mixing_rounds(mixing), auto_rounds(mixing)
    return Rested(
        graph.n, rounds, spread_bound(walk_matrix(graph), mixing.alpha, rounds)[1], auto, mixing.overlap(auto)
    )


def spread_bound(walk: WalkMatrix, alpha: float, rounds: int) -> tuple[float, float]:
    """Return the upper end for any start after these rounds, and the paper's equation (7) without d_max / d_min.

    ||r_j(t)|| is at most sqrt(d_max / d_j) (1 - alpha)^t, and S = ||pi||^2 + 2 <pi, r_j> + ||r_j||^2.
    """
    rest = float(walk.stationary @ walk.stationary)
    decay = (1.0 - alpha) ** checked_rounds(rounds)
    length = decay * float(np.sqrt(walk.weights.max() / walk.weights.min()))
    return min(1.0, (np.sqrt(rest) + length) ** 2), min(1.0, rest + decay**2)


def gamma(graph: Graph) -> float:
    """Return the number of users times the sum of the squared stationary chances."""
    degrees = np.array([graph.degree(node) for node in range(graph.n)], dtype=np.float64)
    return _gamma(degrees)


def gamma_printed(n: int, edges: Ints, loops: Ints | None = None) -> float:
    """Return Gamma as [LTT22, Table 4] must have been made: each edge counts at its lower-numbered end only.

    `edges` has a row for each edge; `loops` names the users with a loop, which counts once. Readers of edge lists drop
    loops, and the printed digits need them.
    """
    lower = np.bincount(np.minimum(edges[:, 0], edges[:, 1]), minlength=n)
    return _gamma((lower if loops is None else lower + np.bincount(loops, minlength=n)).astype(np.float64))


def _gamma(weights: Floats) -> float:
    total = float(weights.sum())
    return len(weights) * float(weights @ weights) / total**2 if total else 1.0
