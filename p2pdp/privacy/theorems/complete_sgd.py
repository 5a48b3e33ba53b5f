"""Gradient descent by a walk on the complete graph [ABR23, Algorithm 4].

`epsilon` is the least of three bounds: by iteration (`privacy.iteration`, and by the law of all parts between
visits, `privacy.iteration.walk`, for up to a million visits), and of all contributions seen with their own noise
(`epsilon_local`). `epsilon_published` is the account as published, which misses repeated visits and is no bound. All
but the second count `visits` contributions, the quantile of the binomial law at half of delta.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from p2pdp.mechanisms import gaussian
from p2pdp.privacy.contract import DELTA, Accountant, Answer, number, whole
from p2pdp.privacy.iteration.walk import Exposure, published_divergence, published_excess, walk_divergence
from p2pdp.privacy.iteration.walk import epsilon as epsilon_by_parts
from p2pdp.privacy.renyi import best_epsilon
from p2pdp.privacy.visits import most_visits

_PARTS_MAX: Final = 500_000  # steps for each user

ASSUMPTIONS: Final = (
    "the observer is one other user, who follows the protocol and does not collude, and may see the final model",
    "every step, the first included, is taken by a user drawn uniformly from all n",
    "the loss is convex, Lipschitz and smooth, and the step at most 2/smoothness",
    "noise is Gaussian with sigma per coordinate, added before the projection on a convex set",
    "lipschitz bounds every gradient without clipping",
)


def _answer(inputs: Mapping[str, Any]) -> Answer:
    n, ratio = inputs["n"], inputs["lipschitz"] / inputs["sigma"]
    delta = inputs["delta"] / 2.0
    visits = most_visits(inputs["hops"], n, delta)
    local = gaussian.epsilon_of(delta, 2.0 * ratio * math.sqrt(visits))
    iterated = best_epsilon(lambda excess: walk_divergence(excess, ratio, n, visits), delta)
    parts = math.inf
    if inputs["hops"] <= _PARTS_MAX * n:
        parts = epsilon_by_parts(2.0 * ratio, Exposure(n, inputs["hops"], starts=False), 1, inputs["delta"])
    published = best_epsilon(
        lambda excess: published_divergence(1.0, ratio, n, visits) * (1.0 + excess),
        delta, excess_most=published_excess(ratio),
    )  # fmt: skip
    outputs = {
        "epsilon": min(local, iterated, parts),
        "epsilon_published": published,
        "epsilon_local": local,
        "visits": visits,
    }
    return Answer(outputs, True, ASSUMPTIONS, "Feldman et al. 2018, Theorem 22; Cyffers and Bellet 2022, Algorithm 4")


ACCOUNTANT: Final = Accountant(
    "what a user learns about another from gradient descent by a walk on the complete graph",
    (
        number("sigma", "standard deviation of the noise of one step", 1e-6, 1e6),
        number("lipschitz", "bound on the norm of a gradient, L", 1e-6, 1e6),
        whole("n", "users", 2, 1_000_000_000),
        whole("hops", "steps in all, T", 1, 1_000_000_000_000),
        DELTA,
    ),
    _answer,
)
