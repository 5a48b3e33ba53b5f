"""Noise that cancels between pairs [SBR22], on a graph some of whose users collude or are gone.

Those are placed at random, by the seed. The answer is exact for the first placement and no bound for others, unless the
graph is complete; `broken` tells in how many of 200 placements the others are not connected. With `pair_sigma` masks
are Gaussian, else uniform. Asked with `epsilon` instead of `sigma`, it finds the noise: for uniform masks the own noise
alone, and with `slack` both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from p2pdp.core.errors import UsageError
from p2pdp.core.ids import Peer
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.contract import DELTA, Accountant, Answer, number, whole
from p2pdp.privacy.pairwise import mask_leaks, own_sigma, pair_leaks, pair_noise
from p2pdp.privacy.theorems.walk_any_graph import DEGREE, GRAPH, SEED, graph_of
from p2pdp.topology.components import PLACEMENTS, Placements, component_sizes, is_complete, placements, taken_out
from p2pdp.topology.graphs import Graph

_ASSUMPTIONS: Final = (
    "computational: pair draws follow from secrets of the pair, which only its two users know",
    "the observer sees all masked values, and knows the pair draws of the users who are out",
    "sensitivity is 1, and noise is drawn from the continuous normal distribution",
)

_WORK_MAX: Final = 50_000_000  # cubes of users, over all placements whose leaks are compared
_MORE: Final = 1.0 + 1e-9


def _answer(inputs: Mapping[str, Any]) -> Answer:
    graph, delta, seed = graph_of(inputs), inputs["delta"], inputs["seed"]
    sigma, pair_sigma, slack, out = inputs["sigma"], inputs["pair_sigma"], inputs["slack"], inputs["out"]
    if (sigma is None) == (inputs["epsilon"] is None):
        raise UsageError("sigma: give either sigma or epsilon")
    if sigma is None and pair_sigma is not None:
        raise UsageError("pair_sigma: is found where epsilon is given; give slack instead")
    if sigma is not None and slack is not None:
        raise UsageError("slack: is there to find noise for epsilon; leave it out")
    if out >= graph.n:
        raise UsageError(f"out: of {graph.n} users one at least has to be left")
    random = placements(graph, out, seed)
    away = _away(graph, out, seed, 0)
    hidden = int(min(size for size in component_sizes(graph, away) if size))
    if sigma is None:
        mu = gaussian.mu_of_curve(inputs["epsilon"], delta)
        if slack is None:
            sigma = own_sigma(mu, hidden)
        else:
            found = pair_noise(graph, mu, slack, away)
            sigma, pair_sigma = found.sigma, found.pair_sigma
    leaks = pair_leaks(graph, sigma, pair_sigma, away) if pair_sigma else mask_leaks(graph, sigma, away)
    mu = math.sqrt(float(np.nanmax(leaks))) * (1.0 + 1e-15)
    outputs = {
        "epsilon": gaussian.epsilon_of(delta, mu),
        "mu": mu,
        "sigma": sigma,
        **({"pair_sigma": pair_sigma} if pair_sigma else {}),
        "hidden": hidden,
        "broken": random.broken,
        "error": math.sqrt(graph.n) * sigma,
        "error_curator": 1.0 / mu,
    }
    bound = out == 0 or is_complete(graph)
    stated = () if bound else (_placed(graph, (sigma, pair_sigma), float(np.nanmax(leaks)), random, (out, seed)),)
    return Answer(outputs, bound, (*_ASSUMPTIONS, *stated), "Sabater, Bellet and Ramon 2022; Bell and others 2020")


def _placed(
    graph: Graph, noise: tuple[float, float | None], leak: float, random: Placements, drawn: tuple[int, int]
) -> str:
    """Return which placement the answer is about, and in what share of others somebody is hidden less."""
    (sigma, pair_sigma), (out, seed) = noise, drawn
    if pair_sigma:
        tried = min(PLACEMENTS, _WORK_MAX // graph.n**3)
        found = [
            float(np.nanmax(pair_leaks(graph, sigma, pair_sigma, _away(graph, out, seed, number))))
            for number in range(tried)
        ]
    else:
        tried = len(random.smallest)
        found = [1.0 / (size * sigma**2) for size in random.smallest]
    worse = sum(one > leak * _MORE for one in found) / tried if tried else 0.0
    more = f"some user is told more in {worse:.1%} of {tried} placements, and " if tried else ""
    return (
        f"no bound: the {out} users who are out are those of one random placement (seed {seed}); {more}"
        f"those who are left are not connected in {random.broken:.1%} of {len(random.smallest)}"
    )


def _away(graph: Graph, out: int, seed: int, number: int) -> list[Peer]:
    return taken_out(range(graph.n), out, seed, number)


ACCOUNTANT: Final = Accountant(
    "noise that cancels between pairs, against whoever sees all values and knows some users' draws",
    (
        GRAPH,
        whole("n", "users", 2, 3000),
        DEGREE,
        whole("out", "users who collude, or are gone and had their pair draws revealed", 0, 2999, default=0),
        number("sigma", "standard deviation of each user's own noise, for sensitivity 1", 1e-6, 1e6, optional=True),
        number("pair_sigma", "standard deviation of Gaussian pair draws; without, masks are uniform", 1e-6, 1e9,
               optional=True),
        number("epsilon", "the epsilon that noise is to be found for, instead of sigma", 1e-6, 700.0, optional=True),
        number("slack", "of the own variance, so that Gaussian pair draws are enough", 1e-6, 1e6, optional=True),
        DELTA,
        SEED,
    ),
    _answer,
)  # fmt: skip
