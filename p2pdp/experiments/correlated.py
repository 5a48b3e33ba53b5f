"""Learning by gossip with noise correlated over time, in the setting of [BCFGLT26], on houses and on digits.

Rows are dealt at random to users and their batches; each step takes the next batch, clips the gradient of each row to
length 1, adds noise, and users average with their neighbours by equal weights. Columns are standardized by means and
deviations of all rows together, as in the paper, which costs privacy that nobody counts.

`mu` is the paper's: of one row against none, by whoever sees all messages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.core.errors import NotReady, UsageError
from p2pdp.experiments.contract import Setting
from p2pdp.experiments.factorized import (
    best_gram,
    encoder_of,
    gossip_gram,
    neighbour_means,
    prefix_gram,
    sensitivity,
)
from p2pdp.experiments.inputs import egos, numbers_of
from p2pdp.experiments.nets import Classifier, Dealt, Net, Regressor, dealt
from p2pdp.topology.graphs import Graph, graph_of_edges

SEED: Final = 421
FLORENTINE: Final = "Florentine families"
EGO: Final = "Facebook ego 414"
_EGO: Final = 414
INDEPENDENT: Final = "DP-D-SGD"
LOCAL_BEST: Final = "D-MF"
MAFALDA: Final = "MAFALDA-SGD"
CURATOR: Final = "trusted curator"
NOTHING: Final = "no noise"
METHODS: Final = (INDEPENDENT, LOCAL_BEST, MAFALDA, CURATOR, NOTHING)
CORRELATED: Final = METHODS[:3]
_NOISE_AHEAD: Final = 1 << 24  # numbers


@dataclass(frozen=True, slots=True)
class Size:
    """Each row takes part `times` times, in every `period`-th step."""

    times: int = 20
    period: int = 16
    trials: int = 5
    mus: tuple[float, ...] = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
    rates: tuple[float, ...] = (0.1,)

    @property
    def steps(self) -> int:
        return self.times * self.period

    @property
    def facts(self) -> dict[str, Any]:
        return {**asdict(self), "mus": list(self.mus), "rates": list(self.rates), "seed": SEED}


@cache
def florentine() -> Graph:
    """Return who married whom among fifteen families of Florence, as the paper has it from networkx."""
    import networkx as nx

    drawn = nx.convert_node_labels_to_integers(nx.florentine_families_graph())
    return graph_of_edges(drawn.number_of_nodes(), np.array(sorted(drawn.edges), dtype=np.int64))


def graph_of(setting: Setting, name: str) -> Graph:
    if name == FLORENTINE:
        return florentine()
    edges = egos(setting)[_EGO]
    return graph_of_edges(edges.n, edges.edges)


def encoded(graph: Graph, method: str, size: Size) -> Floats:
    """Return the Gram matrix of a method's encoder, for all users the same."""
    if method == INDEPENDENT:
        return np.eye(size.steps)
    gram = prefix_gram(size.steps) if method == LOCAL_BEST else gossip_gram(neighbour_means(graph), size.steps)
    return best_gram(gram, size.period)


def houses(setting: Setting) -> tuple[Floats, Floats]:
    """Return scikit-learn's columns of the houses, standardized, and prices in 100,000 dollars."""
    raw = numbers_of(setting, "houses")
    lon, lat, age, rooms, bedrooms, people, homes, income, price = raw.T
    columns = np.column_stack([income, age, rooms / homes, bedrooms / homes, people, people / homes, lat, lon])
    return (columns - columns.mean(axis=0)) / columns.std(axis=0), price / 1e5


def digits(_setting: Setting) -> tuple[Floats, Floats]:
    """Return the 8 x 8 digits that scikit-learn ships, from 0 to 1."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise NotReady("digits: scikit-learn is not installed here; pip install scikit-learn installs it") from None
    found = load_digits()
    return np.asarray(found.data / 16.0), np.asarray(found.target, dtype=np.float64)


@dataclass(frozen=True)
class Task:
    """A model to learn and data for it; `better` picks the best of several measures."""

    name: str
    read: Callable[[Setting], tuple[Floats, Floats]]
    net: Net
    measure: str
    better: Callable[..., Any]


HOUSES: Final = Task("houses", houses, Regressor(8), "test loss", min)
DIGITS: Final = Task("digits", digits, Classifier(64, 10), "test accuracy", max)


def learned(setting: Setting, task: Task, graph_name: str, method: str, size: Size) -> dict[str, Any]:
    """Return for each mu what the users' models come to, the mean over trials and its standard error."""
    graph = graph_of(setting, graph_name)
    features, targets = task.read(setting)
    weights = neighbour_means(graph)
    gram = encoded(graph, method, size) if method in CORRELATED else np.eye(size.steps)
    decoder = np.linalg.inv(encoder_of(gram)) if method in (LOCAL_BEST, MAFALDA) else None
    spread = sensitivity(gram, size.period)
    if method in (CURATOR, NOTHING):
        weights = np.full((graph.n, graph.n), 1.0 / graph.n)
    results: dict[str, Any] = {"sensitivity": spread, "rows": 0, "found": []}
    for mu in size.mus if method != NOTHING else (np.inf,):
        scale = 0.0 if method == NOTHING else spread / mu / (np.sqrt(graph.n) if method == CURATOR else 1.0)
        best = None
        for rate in size.rates:
            measured = []
            for trial in range(size.trials):
                random = np.random.Generator(np.random.Philox(key=[SEED, trial]))
                rows = dealt(features, targets, graph.n, size.period, random)
                results["rows"] = int(rows.counts.max())
                start = task.net.start(random)
                models = _descended(task.net, rows, start, weights, size, rate, scale, decoder, random)
                measured.append(task.net.measure(models, rows.test_features, rows.test_targets))
            made = {"mu": float(mu) if np.isfinite(mu) else "inf", "rate": rate, **_mean_of(measured)}
            if best is None or task.better(made["mean"], best["mean"]) == made["mean"]:
                best = made
        results["found"].append(best)
    return results


def _mean_of(values: list[float]) -> dict[str, float]:
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
    return {"mean": float(np.mean(values)), "error": error}


def _descended(
    net: Net,
    rows: Dealt,
    start: Floats,
    weights: Floats,
    size: Size,
    rate: float,
    scale: float,
    decoder: Any,
    random: np.random.Generator,
) -> Floats:
    """Return the users' models after all steps, sixteen of them at most; `scale` is of the noise on a sum of rows."""
    users = len(weights)
    if users * size.steps * net.size > 64 * _NOISE_AHEAD:
        raise UsageError("so many users, steps and numbers need more memory than this experiment takes")
    noise = None
    if scale:
        noise = random.standard_normal((users, size.steps, net.size), dtype=np.float32)
        for user in range(users if decoder is not None else 0):
            noise[user] = decoder @ noise[user]
    models = np.tile(start, (users, 1))
    for step in range(size.steps):
        batch = step % size.period
        counts = rows.counts[:, batch]
        sums = net.clipped(models, rows.features[:, batch], rows.targets[:, batch], counts)
        if noise is not None:
            sums = sums + scale * noise[:, step]
        models = weights @ (models - rate * sums / np.maximum(counts, 1)[:, None])
    return models[np.unique(np.linspace(0, users - 1, min(users, 16)).astype(np.int64))]
