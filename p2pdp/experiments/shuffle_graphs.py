"""The social graphs of [LTT22], and what is computed of each for its figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from p2pdp.core.arrays import Ints
from p2pdp.experiments import inputs
from p2pdp.experiments.contract import Setting
from p2pdp.experiments.walk_spread import spread_bound
from p2pdp.files.edges import read_loops
from p2pdp.files.paper_data import place_in
from p2pdp.topology.graphs import Graph, graph_of_edges
from p2pdp.topology.walk_matrix import walk_matrix
from p2pdp.topology.walk_mixing import auto_rounds, mixing_of, mixing_rounds

SOCIAL: Final = ("facebook", "twitch", "deezer", "enron")
GOOGLE_PRINTED: Final = (855_802, 20.642)
"""Users and Gamma of the Google graph as Table 4 prints them: no data folder has it."""


def social_graph(setting: Setting, name: str) -> Graph:
    edges = inputs.graph(setting, name)
    return graph_of_edges(edges.n, edges.edges)


def looped_users(setting: Setting, name: str) -> Ints:
    """Users with a loop in the file; a stand-in has none."""
    if setting.data is None:
        return np.zeros(0, dtype=np.int64)
    return read_loops(place_in(setting.data, inputs.graph_file(name)), inputs.graph(setting, name))


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
