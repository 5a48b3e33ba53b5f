"""Forecasts of synchronous gossip: its leaks if every message of every round arrives in time, which is no promise.

Weights and schedule are known before the run, and with them the exact leak of each pair, as an audit will find it
if nothing is late. A late user changes what is seen, and may so disclose more of a single user: hence these
figures are claims that do not bound anything (`a_priori.py` has those that do). Noise on messages enters by
a bound (`privacy/linear/krylov.py`); the audit's result is slightly below it. On large graphs some users are taken as
observers, evenly spread over their numbers.

`tradeoff_of` shows benefit and cost of noise on messages, for `plan`: for a few ratios of `message_sigma` to sigma,
which share of local differential privacy the worst and the average pair would lose if nothing were late, the worst of
those who are no neighbours, and the standard error of a user's own result. Neighbours always learn most, for a user's
first message is its noised value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from p2pdp.auditor.a_priori import Tradeoff
from p2pdp.auditor.claims import gaussian_claim
from p2pdp.auditor.context import COMPUTATIONAL, PUBLIC_ROUTE, sensitivity_of
from p2pdp.core.arrays import Floats
from p2pdp.core.claims import Claim, Method, Observer, Refusal
from p2pdp.core.ids import Peer
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.linear.descent import without
from p2pdp.privacy.linear.krylov import fixed_span, noised_leaks
from p2pdp.privacy.linear.layers import slack_of
from p2pdp.privacy.linear.view import ROUNDED_UP
from p2pdp.protocols.gossip.analysis.fast import fixed_rounds
from p2pdp.protocols.gossip.analysis.pair_noise import ends_of, laplacian_of, ratio_of
from p2pdp.protocols.gossip.analysis.rounding import foreseen
from p2pdp.protocols.gossip.plan import GossipPlan
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.topology.weights import sparse_weights

FORECAST: Final = "a forecast, which is no bound: it holds if every message of every round arrives in time"
_BOUND: Final = "noise that others put on messages among themselves is taken to be known"
_WORK_MAX: Final = 6e9  # multiplications, a few seconds


@dataclass(frozen=True)
class Forecast:
    """Leaks of each user (row) for each observer (column), one matrix per ratio of message noise to own noise."""

    observers: list[Peer]
    leaks: list[Floats]


def forecast(run: RunPlan, ratios: Sequence[float]) -> Forecast | str:
    """Return a forecast, or the reason why there is none. A user's leak to itself is NaN."""
    reason = _why_not(run)
    if reason is not None:
        return reason
    observers = _observers(run)
    if not observers:
        return f"to look ahead at {run.plan.rounds} rounds of {run.n} users takes too long"
    assert run.graph is not None
    plan: GossipPlan = run.plan
    weights = sparse_weights(run.graph, plan.weights)
    leaks = [np.full((run.n, len(observers)), np.nan) for _ in ratios]
    noised = [ratio for ratio in ratios if ratio > 0.0]
    shared = ratio_of(plan) * laplacian_of(run.n, ends_of(run)) if plan.pair_noise is not None else None
    for column, observer in enumerate(observers):
        found = {}
        heard = run.graph.neighbours[observer]
        spread = None if shared is None else np.eye(run.n) + without(shared, [observer])
        if len(noised) < len(ratios):
            span = fixed_span(weights, run.graph.neighbours, [observer], plan.rounds, spread)
            found[0.0] = np.where(span.leaks > 0.0, np.minimum(1.0, span.leaks + slack_of(span)), 0.0)
        if noised:
            rows = noised_leaks(weights, heard, observer, plan.rounds, plan.gamma, noised, spread)
            found |= dict(zip(noised, rows, strict=True))
        for matrix, ratio in zip(leaks, ratios, strict=True):
            matrix[:, column] = found[ratio]
            matrix[observer, column] = np.nan
    return Forecast(observers, leaks)


def forecast_claim(run: RunPlan, delta: float) -> Claim | Refusal:
    """Return the claim about what one other user learns of each, if nothing is late."""
    ratio = 0.0 if run.plan.message_noise is None else run.plan.message_noise.scale / (run.plan.noise.scale or math.inf)
    found = forecast(run, [ratio])
    if isinstance(found, str):
        return Refusal(Observer.NODE, Method.EXACT, found)
    (leak,) = found.leaks
    assert run.graph is not None
    local = sensitivity_of(run) / run.plan.noise.scale * ROUNDED_UP
    mu = foreseen(run, run.graph).added_to(local * np.sqrt(leak), local)
    assumptions = [PUBLIC_ROUTE, FORECAST]
    if run.plan.pair_noise is not None:
        assumptions.append(COMPUTATIONAL)
    if ratio:
        assumptions.append(_BOUND)
    if len(found.observers) < run.n:
        assumptions.append(f"{len(found.observers)} of the {run.n} users were looked at as observers")
    return gaussian_claim(
        run.protected, Observer.NODE, Method.EXACT, delta, mu, found.observers, assumptions, bound=False
    )


def _why_not(run: RunPlan) -> str | None:
    plan: Any = run.plan
    if not plan.in_rounds:
        return "which pairs meet is drawn when the run begins"
    if plan.block:
        return "users contribute again and again, and each time what came before decides what"
    if plan.coin is not None or run.graph is None:
        return "the graph of each round is drawn when it begins"
    if run.n == 1:
        return "there is nobody to learn about the only user"
    if plan.noise.name != "gaussian":
        return f"{plan.noise.name} noise has no exact Gaussian leak"
    if plan.publish != "none":
        return "what published results tell is accounted for after the run"
    return None


def _observers(run: RunPlan) -> list[Peer]:
    """Return all users, or as many as there is time for; none if there is not even time for one."""
    heard, size = run.plan.rounds * run.plan.degree_max, run.n
    most = min(size, heard)
    work = size * most * (most + (heard if heard >= size else 0))
    count = min(size, int(_WORK_MAX / work))
    return np.unique(np.linspace(0, size - 1, count).astype(np.int64)).tolist() if count else []


RATIOS: Final = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)


def tradeoff_of(run: RunPlan, delta: float) -> list[Tradeoff] | None:
    """Return trade-offs of increasing noise, including that of the spec; None if nothing can be forecast."""
    plan = run.plan
    if run.graph is None or plan.noise.name != "gaussian":
        return None
    ratios = set(RATIOS)
    if plan.message_noise is not None:
        ratios.add(plan.message_noise.scale / plan.noise.scale)
    found = forecast(run, sorted(ratios))
    if isinstance(found, str):
        return None
    chosen = np.zeros((run.n, len(found.observers)))
    chosen[found.observers, np.arange(len(found.observers))] = 1.0
    _, own, fresh = fixed_rounds(run).shares(chosen)
    far = np.ones(chosen.shape, dtype=bool)
    for column, observer in enumerate(found.observers):
        far[[observer, *run.graph.neighbours[observer]], column] = False
    sigma, mu = plan.noise.scale * plan.step, sensitivity_of(run) / plan.noise.scale
    return [
        Tradeoff(
            ratio=ratio,
            message_sigma=ratio * sigma,
            leak_max=float(np.nanmax(leak)),
            leak_far_max=float(leak[far].max()) if far.any() else None,
            leak_mean=float(np.nanmean(leak)),
            epsilon_max=gaussian.epsilon_of(delta, mu * math.sqrt(float(np.nanmax(leak)))),
            epsilon_mean=gaussian.epsilon_of(delta, mu * math.sqrt(float(np.nanmean(leak)))),
            standard_error=sigma * math.sqrt((own + ratio**2 * fresh) / len(found.observers)),
        )
        for ratio, leak in zip(sorted(ratios), found.leaks, strict=True)
    ]
