"""Published theorems beside the claims about a walk that took place.

They are what `plan` shows: they hold, if at all, over all paths that the walk may take, and take each draw to be what
the plan says. So here none of them bounds anything, and `violated_pairs` counts the ordered pairs of users between
whom the realised path told more than the formula says. That is known where the exact leak is: for Gaussian sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from p2pdp.audit.ground import Finding, Ground
from p2pdp.core.claims import Claim, Refusal
from p2pdp.privacy.gaussian_curve import epsilons_of
from p2pdp.protocols.walk.analysis.hidden_path import neighbours_of
from p2pdp.protocols.walk.analysis.published import published
from p2pdp.protocols.walk.sgd import SgdPlan
from p2pdp.protocols.walk.walking import WalkPlan
from p2pdp.topology.graphs import Graph

_PLANNED: Final = "noise is taken to be as planned, and the path to be any: this says nothing certain of this run"
_COUNTED: Final = "violated pairs are those to whom the realised path, taken as known, told more"
_ROUNDING: Final = 1.0 + 1e-9


def walk_formulas(ground: Ground, findings: Sequence[Finding]) -> Finding:
    """`findings` are those of the accounts; nothing is worked out twice."""
    run = ground.run
    if not isinstance(run.plan, WalkPlan):
        return Finding()
    said = published(replace(run, graph=_graph(ground)), ground.delta)
    claims = [_beside(one, ground, findings) for one in said if isinstance(one, Claim)]
    return Finding(claims=claims, refusals=[one for one in said if isinstance(one, Refusal)])


def _beside(claim: Claim, ground: Ground, findings: Sequence[Finding]) -> Claim:
    mu = (
        None if isinstance(ground.run.plan, SgdPlan) else next((one.mu for one in findings if one.mu is not None), None)
    )
    assumptions: tuple[str, ...] = (*claim.assumptions, _PLANNED)
    violated = None
    if mu is not None and claim.epsilon_max is not None:
        pairs = ~np.isnan(mu)
        violated = int(np.sum(epsilons_of(claim.delta, mu)[pairs] > claim.epsilon_max * _ROUNDING))
        assumptions = (*assumptions, _COUNTED)
    return replace(claim, bound=False, violated_pairs=violated, assumptions=(*assumptions, *ground.assumptions))


def _graph(ground: Ground) -> Graph | None:
    """From the ledgers of all users, for formulas that ask for it."""
    run = ground.run
    if run.plan.order != "graph" or run.graph is not None or any(user not in ground.views for user in range(run.n)):
        return run.graph
    return Graph(run.n, tuple(neighbours_of(ground, user) for user in range(run.n)))
