"""The published theorems as claims beside our own: in advance (`published`), and about a run (`walk_formulas`).

A theorem asks for epsilon and delta of one contribution and for parts of delta that it adds itself. For noise of a
given sigma these can be chosen: here delta is split evenly among the terms that the theorem adds up, and epsilon of one
contribution is that of its exact Gaussian curve. If delta adds up to more than was asked for, the claim has that.

After a run the same claims are shown. They hold, if at all, over all paths that the walk may take, and assume each draw
to be as planned. So then none of them bounds anything, and `violated_pairs` counts the ordered pairs of users whose
leak on the realised path exceeds the formula. That is known where the exact leak is: for Gaussian sums.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from p2pdp.auditor.claims import claim_of
from p2pdp.auditor.context import AccountResult, AuditContext, sensitivity_of
from p2pdp.core.claims import Claim, Conditioning, Observer, Protected, Refusal
from p2pdp.core.errors import Refused, UsageError
from p2pdp.mechanisms import gaussian, randomized_response
from p2pdp.privacy.contract import account
from p2pdp.privacy.gaussian_curve import count_above
from p2pdp.privacy.renyi import renyi_epsilons
from p2pdp.privacy.theorems.walk_any_graph import ASSUMPTIONS as ANY_GRAPH
from p2pdp.privacy.theorems.walk_any_graph import SOURCE as _ANY_SOURCE
from p2pdp.privacy.theorems.walk_any_graph import per_order
from p2pdp.privacy.visits import printed_visits
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.analysis.hidden_path import neighbours_of
from p2pdp.topology.graphs import Graph

_METHOD: Final = "published:{}"
_USERS_MAX: Final = 1000  # up to which eigenvalues of the weights take a second


def published(run: RunPlan, delta: float) -> list[Claim | Refusal]:
    plan = run.plan
    if plan.learns and plan.descent.samples:
        return []  # formulas of papers are about all of a user's rows
    if plan.learns:
        return _descent(run, delta)
    if run.n == 1 or plan.noise.name not in ("gaussian", "randomized_response") or plan.order == "graph":
        return []
    if plan.noise.name == "randomized_response":
        return [_ring_histogram(run, delta)] if plan.order == "ring" else []
    if plan.order == "ring":
        return [_ring_sum(run, delta)]
    return [_complete(run, delta, "complete_sum"), _complete(run, delta, "complete_sum_v1")]


def _ring_sum(run: RunPlan, delta: float) -> Claim | Refusal:
    plan = run.plan
    laps = plan.steps // run.n
    if plan.share is not None or plan.tokens > 1:
        return _refused("ring_sum", "Theorem 1 is about one token, and whole draws at every n - 1 steps")
    delta_0 = delta / 2.0 / laps
    inputs = {
        "epsilon": gaussian.epsilon_of(delta_0, sensitivity_of(run) / plan.noise.scale),
        "delta": delta_0,
        "laps": laps,
        "delta_prime": delta / 2.0,
        "closing": "yes" if plan.closing else "no",
    }
    return _claim(run.protected, "ring_sum", inputs, delta)


def _ring_histogram(run: RunPlan, delta: float) -> Claim | Refusal:
    plan = run.plan
    laps = plan.steps // run.n
    if plan.tokens > 1:
        return _refused("ring_histogram", "Theorem 2 is about one token")
    delta_lap = delta / 2.0 / laps
    epsilon_0 = randomized_response.epsilon_of(plan.noise.scale, plan.noise.categories)
    inputs = {
        "epsilon": 12.0 * epsilon_0 * math.sqrt(-math.log(delta_lap) / run.n),
        "delta": delta_lap,
        "n": run.n,
        "categories": plan.noise.categories,
        "laps": laps,
        "delta_prime": delta / 2.0,
    }
    return _claim(run.protected, "ring_histogram", inputs, delta)


def _complete(run: RunPlan, delta: float, name: str) -> Claim | Refusal:
    plan = run.plan
    if plan.tokens > 1:
        return _refused(name, "Theorem 3 is about one token")
    delta_hat, hops = delta / 3.0, plan.steps
    shares = hops / run.n if name == "complete_sum_v1" else printed_visits(hops, run.n, delta_hat) + hops / run.n
    delta_0 = delta / 3.0 / shares
    inputs = {
        "epsilon": gaussian.epsilon_of(delta_0, sensitivity_of(run) / plan.noise.scale),
        "delta": delta_0,
        "n": run.n,
        "hops": hops,
        "delta_prime": delta / 3.0,
        "delta_hat": delta_hat,
    }
    return _claim(run.protected, name, inputs, delta)


def _descent(run: RunPlan, delta: float) -> list[Claim | Refusal]:
    """Return the claim of the paper's account, which misses repeated visits and is no bound."""
    plan = run.plan
    if run.n == 1 or plan.order == "ring" or plan.noise.name == "none":
        return []
    if not plan.descent.guarantees.convex:
        name = "walk_any_graph" if plan.order == "graph" else "complete_sgd"
        return [_refused(name, "the account is about convex losses, and the objective does not promise to be convex")]
    if plan.order == "graph":
        return _any_graph(run, delta)
    if plan.tokens > 1:
        return [_refused("complete_sgd", "the account of Algorithm 4 is about one token")]
    ratio = sensitivity_of(run) / 2.0 / plan.noise.scale
    inputs = {"sigma": 1.0, "lipschitz": ratio, "n": run.n, "hops": plan.steps, "delta": delta}
    claim = _claim(run.protected, "complete_sgd", inputs, delta, "epsilon_published")
    return [claim if isinstance(claim, Refusal) else replace(claim, bound=False)]


def _any_graph(run: RunPlan, delta: float) -> list[Claim | Refusal]:
    """Claim a Rényi divergence of alpha times a number for each pair, converted at the best order."""
    plan = run.plan
    if run.graph is None or run.n > _USERS_MAX:
        return [_refused("walk_any_graph", f"it takes the graph, of up to {_USERS_MAX} users")]
    if plan.tokens > 1:
        return [_refused("walk_any_graph", "the account is about one token")]
    terms = {"n": run.n, "hops": plan.steps}
    losses = (sensitivity_of(run) / plan.noise.scale) ** 2 * per_order(run.graph, **terms)
    pairs = ~np.eye(run.n, dtype=bool)
    worst = np.unravel_index(int(np.argmax(np.where(pairs, losses, -1.0))), losses.shape)
    epsilons = renyi_epsilons(2.0 * losses[pairs], delta)
    largest = float(epsilons.max())
    assumed = (*ANY_GRAPH, "weights are those of metropolis")
    claim = _made(run.protected, "walk_any_graph", delta, largest, False, assumed, _ANY_SOURCE)
    mean, pair = min(largest, float(epsilons.mean())), (int(worst[0]), int(worst[1]))
    return [replace(claim, epsilon_mean=mean, worst_pair=pair)]


def _claim(
    protected: Protected, name: str, inputs: Mapping[str, float | str], delta: float, output: str = "epsilon"
) -> Claim | Refusal:
    try:
        answer = account(name, inputs)
    except (Refused, UsageError) as error:
        return _refused(name, str(error))
    epsilon, total = answer.outputs[output], max(delta, answer.outputs.get("delta", delta))
    return _made(protected, name, total, epsilon, answer.bound, answer.assumptions, answer.source)


def _made(
    protected: Protected,
    name: str,
    delta: float,
    epsilon: float,
    bound: bool,
    assumptions: Sequence[str],
    source: str,
) -> Claim:
    return claim_of(
        protected,
        Observer.NODE,
        _METHOD.format(name),
        Conditioning.A_PRIORI,
        delta,
        None,
        (*assumptions, source),
        epsilon=(epsilon, None),
        bound=bound,
    )


def _refused(name: str, reason: str) -> Refusal:
    return Refusal(Observer.NODE, _METHOD.format(name), reason)


_PLANNED: Final = "noise is taken to be as planned, and the path to be any: this says nothing certain of this run"
_COUNTED: Final = "violated pairs are those to whom the realised path, taken as known, told more"
_ROUNDING: Final = 1.0 + 1e-9


def walk_formulas(context: AuditContext, findings: Sequence[AccountResult]) -> AccountResult:
    """Return the formulas beside a run; `findings` are those of the accounts, so that nothing is computed twice."""
    run = context.run
    formulas = published(replace(run, graph=_graph(context)), context.delta)
    claims = [_beside(one, context, findings) for one in formulas if isinstance(one, Claim)]
    return AccountResult(claims=claims, refusals=[one for one in formulas if isinstance(one, Refusal)])


def _beside(claim: Claim, context: AuditContext, findings: Sequence[AccountResult]) -> Claim:
    mu = None if context.run.plan.learns else next((one.mu for one in findings if one.mu is not None), None)
    assumptions: tuple[str, ...] = (*claim.assumptions, _PLANNED)
    violated = None
    if mu is not None and claim.epsilon_max is not None:
        pairs = ~np.isnan(mu)
        violated = count_above(claim.delta, mu[pairs], claim.epsilon_max * _ROUNDING)
        assumptions = (*assumptions, _COUNTED)
    return replace(claim, bound=False, violated_pairs=violated, assumptions=(*assumptions, *context.assumptions))


def _graph(context: AuditContext) -> Graph | None:
    """Return the graph, if need be from the ledgers of all users, for formulas that ask for it."""
    run = context.run
    if run.plan.order != "graph" or run.graph is not None or any(user not in context.views for user in range(run.n)):
        return run.graph
    return Graph(run.n, tuple(neighbours_of(context, user) for user in range(run.n)))
