"""A run's bounds for both units side by side: all that one user holds, and one record of it.

A user's whole data are all of its rows replaced together: they move a sum as many times as far as one row does, and of
reports that are answered at random each costs its own. Where neither is so, nothing bounds what a user's data lose.
Where the unit of a run is a user, its bounds are those of each row too, and there is nothing to show beside them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from p2pdp.auditor.a_priori import covers
from p2pdp.auditor.headline import Bound
from p2pdp.core.claims import Claim, Method, Observer
from p2pdp.mechanisms import gaussian
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.report.documents import plain

_PURE = ("laplace", "randomized_response", "privunit")


@dataclass(frozen=True, slots=True)
class BothUnits:
    """The epsilon of one observer for each unit; `user` is None where it is not known how many rows users have."""

    observer: Observer
    user: float | None
    record: float

    def to_json(self) -> dict[str, Any]:
        return {"observer": str(self.observer), "user": plain(self.user), "record": plain(self.record)}


def side_by_side(run: RunPlan, bounds: Sequence[Bound], claims: Sequence[Claim]) -> list[BothUnits]:
    """Return the bounds of each observer of a run whose unit is a record, as `bounds_of` gave them, for both units."""
    if run.rows is None:
        return [BothUnits(bound.observer, None, bound.epsilon) for bound in bounds]
    rows = max(run.rows)
    return [BothUnits(one.observer, _of_user(run, claims, one.observer, rows), one.epsilon) for one in bounds]


def _of_user(run: RunPlan, claims: Sequence[Claim], observer: Observer, rows: int) -> float:
    fitting = (claim for claim in claims if claim.bound and covers(claim, observer))
    return min((_together(run, claim, rows) for claim in fitting), default=math.inf)


def _together(run: RunPlan, claim: Claim, rows: int) -> float:
    """Return what a claim about one row says of so many rows of one user."""
    if claim.mu_max is not None:
        return gaussian.epsilon_of(claim.delta, claim.mu_max * rows)
    if claim.method == Method.LOCAL and run.plan.noise.name in _PURE and claim.epsilon_max is not None:
        return claim.epsilon_max * rows
    return math.inf
