"""What learning by gossip will tell in the model of gradients that are fixed beforehand: a forecast, and no bound.

Twice over: gradients depend on what is sent, and it takes every message to arrive in time. Of a graph that changes the
meetings of each round are drawn once, for nobody knows them beforehand; those of a run will be others. The headline
in advance is the local ceiling (`a_priori.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from p2pdp.audit.claims import gaussian_claim
from p2pdp.audit.ground import PUBLIC_ROUTE, sensitivity_of
from p2pdp.core.claims import Claim, Observer, Refusal
from p2pdp.privacy.linear.descent import told, worst
from p2pdp.privacy.linear.view import ROUNDED_UP
from p2pdp.protocols.gossip.analysis.descent_account import FIXED_BEFOREHAND, MODEL
from p2pdp.protocols.gossip.analysis.descent_views import course_of, work_of
from p2pdp.protocols.gossip.analysis.forecast import FORECAST
from p2pdp.protocols.gossip.sgd import GossipSgdPlan
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.topology.weights import drawn_pairs, meeting_weights, sparse_weights

_DRAWN: Final = "who meets whom in each round was drawn once for this forecast"
_SOME: Final = "{} of the {} users were looked at as observers"
_WORK_MAX: Final = 1e10  # multiplications, a few seconds


def descent_forecast(run: RunPlan, delta: float) -> Claim | Refusal:
    plan: GossipSgdPlan = run.plan
    afforded = int(_WORK_MAX / work_of(run.n, plan.gradients, plan.block, noised=plan.message_noise is not None))
    reason = _why_not(run, afforded)
    if reason is not None:
        return Refusal(Observer.NODE, MODEL, reason)
    course = course_of(plan, _matrices(run), plan.descent.regularization)
    observers = np.unique(np.linspace(0, run.n - 1, min(run.n, afforded)).astype(np.int64)).tolist()
    leak = np.full((run.n, len(observers)), np.nan)
    for column, observer in enumerate(observers):
        leak[:, column] = worst(told(course, [observer]).grams)
        leak[observer, column] = np.nan
    mu = sensitivity_of(run) / plan.noise.scale * np.sqrt(leak) * ROUNDED_UP
    said = [PUBLIC_ROUTE, FORECAST, FIXED_BEFOREHAND]
    said += [_DRAWN] * (plan.coin is not None)
    said += [_SOME.format(len(observers), run.n)] * (len(observers) < run.n)
    return gaussian_claim(Observer.NODE, MODEL, delta, mu, observers, said, bound=False)


def _why_not(run: RunPlan, afforded: int) -> str | None:
    plan: GossipSgdPlan = run.plan
    if run.n == 1:
        return "there is nobody to learn about the only user"
    if plan.noise.name != "gaussian":
        return "without noise of a user's own there is nothing to work out"
    if plan.publish != "none":
        return "what published models tell is accounted for after the run"
    if plan.coin is None and run.graph is None:
        return "the graph is not at hand"
    if not afforded:
        return f"to look ahead at {plan.gradients} gradients of {run.n} users takes too long"
    return None


def _matrices(run: RunPlan) -> Sequence[Any]:
    plan: GossipSgdPlan = run.plan
    if plan.coin is None:
        assert run.graph is not None
        return [sparse_weights(run.graph, plan.weights)] * plan.rounds
    random = np.random.Generator(np.random.Philox(key=1))
    pairs = [drawn_pairs(plan.n, plan.coin, random) for _ in range(plan.rounds)]
    return [meeting_weights(plan.n, one, plan.weights, plan.degree_max) for one in pairs]
