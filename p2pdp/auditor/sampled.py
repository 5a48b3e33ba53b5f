"""Contributions over rows that a node drew itself, with the same chance for each: what they tell of one row.

A contribution is recorded with its noise and with the draw of its rows (`mechanisms/rows.py`), whose chance is public.
Both relations are claimed: a row that is replaced, which all other claims are about, and a row that is compared with
one that contributes nothing (zero-out), as most of the literature on learning has it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from p2pdp.auditor.context import sensitivity_of
from p2pdp.core.claims import Protected, Relation
from p2pdp.core.draws import ROWS, Mechanism
from p2pdp.privacy.linear.view import ROUNDED_UP
from p2pdp.privacy.subsampled import Steps, epsilon_of, ratio_within
from p2pdp.protocols.run_plan import RunPlan

HIDDEN_ROWS: Final = (
    "each row enters a step with the chance that is recorded, drawn by its node: nobody sees which rows are in a step "
    "or how many, and how long a step takes tells nothing of that"
)
_UP: Final = 1.0 + 2.0**-38  # the chance of a draw is a multiple of 2^-64 and no less than what is recorded


def samples(recorded: Iterable[Sequence[Mechanism]]) -> bool:
    """Return whether rows were drawn for some contribution."""
    return any(mechanism.name == ROWS for one in recorded for mechanism in one)


def share_of(recorded: Sequence[Mechanism]) -> float:
    """Return the chance with which a row entered a contribution."""
    shares = [mechanism.scale for mechanism in recorded if mechanism.name == ROWS]
    return min(1.0, min(shares) * _UP) if shares else 1.0


def ratio_of(run: RunPlan, deviation: float) -> float:
    """Return how far a row's part reaches, in deviations of noise; infinite without any."""
    part = run.plan.part
    reach = sensitivity_of(run) if part is None else part
    return reach / deviation * ROUNDED_UP if deviation > 0.0 else math.inf


def steps_of(run: RunPlan, own: Sequence[Sequence[Mechanism]]) -> list[Steps]:
    """Return the contributions of one user as steps, each under its own Gaussian noise."""
    found: Counter[tuple[float, float]] = Counter()
    for recorded in own:
        variance = sum(mechanism.scale**2 for mechanism in recorded if mechanism.name == "gaussian")
        found[share_of(recorded), math.sqrt(variance)] += 1
    return [Steps(share, ratio_of(run, deviation), times) for (share, deviation), times in found.items()]


def sigma_within(run: RunPlan, times: int, epsilon: float, delta: float) -> float | None:
    """Return a standard deviation, in data units, at which so many of the plan's contributions stay within epsilon.

    None where no amount is known.
    """
    share = share_of(run.plan.protection)
    ratio = ratio_within(share, times, run.protected.relation, epsilon, delta)
    return math.ldexp(ratio_of(run, 1.0), run.plan.grid_exponent) / ratio if ratio > 0.0 else None


def relations(run: RunPlan) -> list[Protected]:
    """Return what is claimed of such a run, what all other claims are about first."""
    first = run.protected
    return [first, replace(first, relation=Relation.ZERO_OUT)]


def epsilons(parts: Sequence[Sequence[Steps]], relation: Relation, delta: float) -> list[float]:
    """Return the epsilon of each user."""
    return [epsilon_of(own, relation, delta) for own in parts]
