"""Graphs and tables that experiments read: from the folder the user names, or small generated ones in their place.

Stand-ins are there for `--quick` without a folder only. They have something of the shape of the real thing, a few
users with very many friends, or two classes that a linear model nearly separates, and nothing else: numbers made
of them are compared with nothing, and documents and pictures say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.core.errors import UsageError
from p2pdp.experiments.contract import Experiment, Setting
from p2pdp.files import paper_data
from p2pdp.files.paper_data import EGOS, GRAPHS, TABLES
from p2pdp.topology.graphs import EdgeList

_SEED: Final = 20_220_110
_GRAPH_NODES: Final = 240
_EGO_NODES: Final = {0: 40, 107: 56, 348: 32}
_TABLE_ROWS: Final = 400
_FEATURES: Final = {"houses": 8, "spambase": 57, "cardio": 11}


@dataclass(frozen=True, slots=True)
class Labelled:
    """A table to learn from: one row of features an example, and its class, 1 or -1."""

    features: Floats
    labels: Floats


def check_data(experiments: Sequence[Experiment], setting: Setting) -> None:
    """Refuse missing data before anything is begun."""
    if setting.data is not None:
        paper_data.check_folder(setting.data)
    for experiment in experiments:
        for file in experiment.needs:
            if setting.data is not None:
                paper_data.place_in(setting.data, file)
            elif not setting.quick:
                raise UsageError(f"{experiment.name}: needs {file}; name its folder by --data, or take --quick")


def digests(experiment: Experiment, setting: Setting) -> dict[str, str]:
    """Return the sha256 of each data file, or the words for a stand-in."""
    folder = setting.data
    return {
        file: "stand-in" if folder is None else paper_data.content_digest(folder, file) for file in experiment.needs
    }


def graph_file(name: str) -> str:
    """Return the file to name in `needs` for a graph."""
    return GRAPHS[name].file


def table_file(name: str) -> str:
    return TABLES[name].file


def graph(setting: Setting, name: str) -> EdgeList:
    """Return the largest component of one of the papers' graphs: facebook, twitch, deezer, enron, ego_facebook."""
    if setting.data is not None:
        return paper_data.read_graph(setting.data, name)
    return _social(_GRAPH_NODES, 5, list(GRAPHS).index(name))


def egos(setting: Setting) -> dict[int, EdgeList]:
    """Return the ten Facebook ego networks by number; as a stand-in three."""
    if setting.data is not None:
        return paper_data.read_egos(setting.data)
    return {ego: _social(n, 4, 100 + ego) for ego, n in _EGO_NODES.items()}


def table(setting: Setting, name: str) -> Labelled:
    """Return features as in the file, and classes: houses, spambase or cardio.

    houses: whether longitude is below its mean, from the other eight columns (guide/papers.md says why this, and
    not the price, must be what the paper learned). spambase: spam. cardio: ill, from all columns but the number.
    """
    if setting.data is None:
        return _two_classes(_TABLE_ROWS, _FEATURES[name], list(_FEATURES).index(name))
    numbers = paper_data.read_numbers(setting.data, name)
    if name == "houses":
        longitude = numbers[:, 0]
        return Labelled(numbers[:, 1:], np.where(longitude < longitude.mean(), 1.0, -1.0))
    first = 1 if name == "cardio" else 0
    return Labelled(numbers[:, first:-1], np.where(numbers[:, -1] == 1.0, 1.0, -1.0))


def prices(setting: Setting) -> Labelled:
    """Return houses with another class: whether the price is above its mean, from the other eight columns."""
    if setting.data is None:
        return _two_classes(_TABLE_ROWS, _FEATURES["houses"], len(_FEATURES))
    numbers = paper_data.read_numbers(setting.data, "houses")
    price = numbers[:, -1]
    return Labelled(numbers[:, :-1], np.where(price > price.mean(), 1.0, -1.0))


def numbers_of(setting: Setting, name: str) -> Floats:
    """Return all columns of a table as in the file; of a stand-in the last follows from the others, all positive."""
    if setting.data is not None:
        return paper_data.read_numbers(setting.data, name)
    made = _two_classes(_TABLE_ROWS, _FEATURES[name], len(_FEATURES) + 1)
    return np.column_stack([np.exp(0.3 * made.features), 1e5 * (2.0 + made.labels)])


def _social(n: int, links: int, number: int) -> EdgeList:
    """Make a graph in which each node comes with a few links, mostly to nodes that have many."""
    import networkx as nx

    drawn = nx.barabasi_albert_graph(n, links, seed=_SEED + number)
    edges: list[tuple[int, int]] = sorted((min(u, v), max(u, v)) for u, v in drawn.edges)
    return EdgeList(tuple(map(str, range(n))), np.array(edges, dtype=np.int64), 1)


def _two_classes(rows: int, columns: int, number: int) -> Labelled:
    random: Any = np.random.Generator(np.random.Philox(key=_SEED + number))
    features = random.standard_normal((rows, columns))
    direction = random.standard_normal(columns)
    side = features @ direction + 0.3 * np.linalg.norm(direction) * random.standard_normal(rows)
    return Labelled(features, np.where(side > 0.0, 1.0, -1.0))


EGO_FILE: Final = EGOS
