"""What it cost to estimate how columns are standardized, added to every claim of a run that takes such estimates.

A spec whose `[data] standardize` holds means and deviations says at which epsilon and delta somebody made them from
the users' data before. That was another mechanism on the same data, so by basic composition epsilons and deltas
add up: the run itself is accounted for at what is left of delta, and the claims are at all of it. They are no
longer those of one Gaussian, so they have no mu.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from p2pdp.core.claims import Claim
from p2pdp.core.errors import UsageError
from p2pdp.core.spec import Spec


class Cost(NamedTuple):
    epsilon: float
    delta: float


def cost_of(spec: Spec) -> Cost | None:
    """None where everything that data are standardized by is public."""
    told = spec.data.standardize
    return None if told is None or "epsilon" not in told else Cost(told["epsilon"], told["delta"])


def left_of(delta: float, cost: Cost | None) -> float:
    """The delta at which the run itself is accounted for."""
    if cost is None:
        return delta
    if cost.delta >= delta:
        raise UsageError(f"[data] standardize: its delta {cost.delta:g} leaves nothing of the {delta:g} of the claims")
    return delta - cost.delta


def added(claim: Claim, cost: Cost | None) -> Claim:
    if cost is None:
        return claim
    text = (
        f"the estimates by which columns are standardized cost epsilon {cost.epsilon:g} at delta {cost.delta:g}, "
        "which is added"
    )
    return replace(
        claim,
        delta=claim.delta + cost.delta,
        epsilon_max=None if claim.epsilon_max is None else claim.epsilon_max + cost.epsilon,
        epsilon_mean=None if claim.epsilon_mean is None else claim.epsilon_mean + cost.epsilon,
        mu_max=None,
        mu_mean=None,
        assumptions=(*claim.assumptions, text),
    )
