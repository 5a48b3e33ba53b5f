"""The analysis of models learned by gossip: `gossip.sgd`.

`gossip_sigmas_of` compares a run with local and central privacy at the same epsilon. Local: everybody sees every noised
gradient, and each step takes the mean of them all. Central: a trusted curator takes the same steps, adds noise to the
mean gradient, and all of its models may be seen. Both are accounted for as the run's own headline is, by composition
over the gradients. Sigma is None if no amount is known to be enough.

`descent_forecast` computes leaks in the model of gradients that are fixed in advance. It is a forecast and no bound,
for two reasons: gradients depend on what is sent, and every message has to arrive in time. For a graph that changes,
the meetings of each round are drawn once; those of a run will be others. The headline in advance is the local ceiling
(`a_priori.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from p2pdp.assembly.outcome import Number, Outcome
from p2pdp.assembly.pools import CENTRAL, LOCAL
from p2pdp.attacks.truths import ONLY_PLACE, Truths, only_contribution, rows_drawn
from p2pdp.auditor.claims import gaussian_claim
from p2pdp.auditor.context import PUBLIC_ROUTE, Account, sensitivity_of
from p2pdp.auditor.sampled import sigma_within
from p2pdp.core.claims import Claim, Observer, Refusal
from p2pdp.core.ids import Peer
from p2pdp.ledger.records import Contents
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.linear.descent import told, worst
from p2pdp.privacy.linear.view import ROUNDED_UP
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.defaults import Learning, Rows, Sigmas
from p2pdp.protocols.gossip.analysis import outcome_descent as gossip_descents
from p2pdp.protocols.gossip.analysis.averages import GossipAnalysis, linear_account
from p2pdp.protocols.gossip.analysis.descent_account import FIXED_BEFOREHAND, MODEL, SAMPLED, gossip_descent_account
from p2pdp.protocols.gossip.analysis.descent_views import course_of, work_of
from p2pdp.protocols.gossip.analysis.fast import fast_gossip_descents
from p2pdp.protocols.gossip.analysis.forecast import FORECAST
from p2pdp.protocols.gossip.analysis.masked import masked_account
from p2pdp.protocols.gossip.analysis.outcome_descent import gossip_baselines_of, gossip_scored, noise_upper
from p2pdp.protocols.gossip.analysis.pair_noise import ends_of
from p2pdp.protocols.gossip.sgd import STEP, GossipSgdPlan
from p2pdp.protocols.learning import warnings_of
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Evidence, Recorded
from p2pdp.sim.trials import Trials
from p2pdp.topology.weights import drawn_pairs, meeting_weights, sparse_weights


def _sigmas(run: RunPlan, _paths: object, epsilon: float | None, delta: float) -> Sigmas:
    return gossip_sigmas_of(run, epsilon, delta)  # by composition over the gradients: there is no path


class GossipDescentAnalysis(GossipAnalysis):
    what_ran = "Users trained a model together: each adds noise to its gradients and averages with its neighbours."
    fast_in_advance = True
    learning = Learning(_sigmas, gossip_baselines_of, gossip_scored, STEP, lambda run: int(run.plan.gradients))

    def looks_in_blocks(self, run: RunPlan) -> bool:
        return False

    def ahead(self, evidence: Evidence) -> None:
        """Begin nothing: what neighbours learn of gradients is not computed user by user."""

    def gather(self, run: RunPlan, recorded: Recorded, found: Outcome) -> None:
        gossip_descents.gather(run, recorded, found)

    def estimate(self, run: RunPlan, found: Outcome) -> Estimate:
        return gossip_descents.estimate_of(run, found)

    def truth(self, run: RunPlan, found: Outcome, rows: Rows) -> Number:
        return gossip_descents.truth_of(run, found, rows)

    def fast(self, trials: Trials) -> Iterator[Outcome] | None:
        if trials.run.plan.descent.samples:
            return None
        return fast_gossip_descents(trials)

    def forecast(self, run: RunPlan, delta: float) -> list[Claim | Refusal]:
        return [descent_forecast(run, delta)]

    def message_noise(self, run: RunPlan, delta: float) -> None:
        return None

    def reach(self, run: RunPlan) -> float:
        return 2.0 * float(run.plan.descent.clip)

    def warnings(self, run: RunPlan) -> list[str]:
        return warnings_of(run.plan.descent, run.plan.rate)

    def contributions_each(self, run: RunPlan) -> int:
        return int(run.plan.gradients)

    def expected(self, run: RunPlan, typical: Outcome) -> Estimate:
        end = noise_upper(run)
        return Estimate(None, None if end is None else [end] * run.plan.shape[0])

    def truths(self, run: RunPlan, user: Peer, inputs: Any, contents: Contents, private: bytes) -> Truths:
        rows = next(iter(rows_drawn(contents, private)), None)
        first = inputs.gradient(inputs.zero(), 0, rows) / run.plan.step
        return {(0, user): only_contribution(first, contents, private)[ONLY_PLACE]}

    def accounts(self) -> Sequence[Account]:
        return (linear_account, self.ceiling, masked_account, gossip_descent_account)


def gossip_sigmas_of(run: RunPlan, epsilon: float | None, delta: float) -> dict[str, float | None]:
    """Return sigma in data units: of each number of a user's gradient, and of each number of the mean gradient."""
    plan: GossipSgdPlan = run.plan
    if epsilon is None or not 0.0 < epsilon < math.inf or plan.noise.name == "none":
        return {LOCAL: None, CENTRAL: None}
    if plan.descent.samples:
        sampled = sigma_within(run, plan.gradients, epsilon, delta)
        return {LOCAL: sampled, CENTRAL: None if sampled is None else sampled / run.n}
    unit = math.ldexp(sensitivity_of(run), plan.grid_exponent) / gaussian.mu_of_curve(epsilon, delta)
    local = math.sqrt(plan.gradients) * unit
    return {LOCAL: local, CENTRAL: local / run.n}


_DRAWN: Final = "who meets whom in each round was drawn once for this forecast"
_SOME: Final = "{} of the {} users were looked at as observers"
_WORK_MAX: Final = 1e10  # multiplications, a few seconds


def descent_forecast(run: RunPlan, delta: float) -> Claim | Refusal:
    plan: GossipSgdPlan = run.plan
    afforded = int(_WORK_MAX / work_of(run.n, plan.gradients, plan.block, noised=plan.message_noise is not None))
    reason = _why_not(run, afforded)
    if reason is not None:
        return Refusal(Observer.NODE, MODEL, reason)
    course = course_of(plan, _matrices(run), plan.descent.regularization, ends_of(run))
    observers = np.unique(np.linspace(0, run.n - 1, min(run.n, afforded)).astype(np.int64)).tolist()
    leak = np.full((run.n, len(observers)), np.nan)
    for column, observer in enumerate(observers):
        leak[:, column] = worst(told(course, [observer]).grams)
        leak[observer, column] = np.nan
    mu = sensitivity_of(run) / plan.noise.scale * np.sqrt(leak) * ROUNDED_UP
    assumptions = [PUBLIC_ROUTE, FORECAST, FIXED_BEFOREHAND]
    assumptions += [_DRAWN] * (plan.coin is not None)
    assumptions += [_SOME.format(len(observers), run.n)] * (len(observers) < run.n)
    return gaussian_claim(run.protected, Observer.NODE, MODEL, delta, mu, observers, assumptions, bound=False)


def _why_not(run: RunPlan, afforded: int) -> str | None:
    plan: GossipSgdPlan = run.plan
    if run.n == 1:
        return "there is nobody to learn about the only user"
    if run.plan.descent.samples:
        return SAMPLED
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
