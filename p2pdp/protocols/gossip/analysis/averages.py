"""The analysis of gossip that averages values: `gossip.average` and `gossip.randomized`.

If the recorded draws are not those of the plan, the linear account applies, since the account of gossip relies on
the plan's draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from p2pdp.assembly.outcome import Number, Outcome
from p2pdp.auditor.a_priori import Tradeoff
from p2pdp.auditor.context import AccountResult, AuditContext, unlike_plan
from p2pdp.auditor.exact import Rounded, exact_account
from p2pdp.core.claims import Claim, Method, Observer, Refusal
from p2pdp.core.ids import Peer
from p2pdp.ledger.records import Contents
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.defaults import Account, Analysis, Read, Rows
from p2pdp.protocols.gossip.analysis import outcome as averages
from p2pdp.protocols.gossip.analysis.a_priori import gossip_a_priori, hidden_graph_account, refusals_in_advance
from p2pdp.protocols.gossip.analysis.account import gossip_account
from p2pdp.protocols.gossip.analysis.decoding import read_gossip
from p2pdp.protocols.gossip.analysis.fast import fast_averages, standard_error_of
from p2pdp.protocols.gossip.analysis.forecast import forecast_claim, tradeoff_of
from p2pdp.protocols.gossip.analysis.rounding import rounding_of
from p2pdp.protocols.gossip.analysis.views import graph_of
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Recorded
from p2pdp.sim.trials import Trials

EXACT_MAX: Final = 2048


class GossipAnalysis(Analysis):
    what_ran = "Each user added noise to its value and then averaged with its neighbours, again and again."

    def gather(self, run: RunPlan, recorded: Recorded, found: Outcome) -> None:
        averages.gather(run, recorded, found)

    def truth(self, run: RunPlan, found: Outcome, rows: Rows) -> Number:
        return averages.truth_of(run, found, rows)

    def error(self, run: RunPlan, found: Outcome, estimate: Number, truth: Number) -> Number:
        return averages.error_of(run, found, estimate, truth)

    def fast(self, trials: Trials) -> Iterator[Outcome]:
        return fast_averages(trials)

    def forecast(self, run: RunPlan, delta: float) -> list[Claim | Refusal]:
        return [forecast_claim(run, delta)] if run.plan.in_rounds else []

    def message_noise(self, run: RunPlan, delta: float) -> list[Tradeoff] | None:
        return tradeoff_of(run, delta) if run.plan.in_rounds else None

    def expected(self, run: RunPlan, typical: Outcome) -> Estimate:
        """Return the error of a user's own result, or of what is published.

        It is exact, of pairs and changing graphs for one draw of who meets whom; among more than `EXACT_MAX` users
        gossip is taken to have come to the mean of all values.
        """
        plan = run.plan
        error = standard_error_of(run) if run.n <= EXACT_MAX and run.graph is not None else None
        if error is None:
            variance = 2.0 if plan.noise.name == "laplace" else 1.0
            error = math.ldexp(math.sqrt(variance / run.n) * plan.noise.scale, plan.grid_exponent)
        return Estimate(None, [error] * plan.shape[0] if plan.shape else error)

    def lasting(self, claims: Sequence[Claim]) -> list[Claim]:
        return list(claims)

    def without_graph(self, claims: Sequence[Claim]) -> list[Claim]:
        return list(claims)

    def read(self, run: RunPlan, observer: Peer, contents: Contents) -> list[Read]:
        return read_gossip(run, observer, contents)

    def accounts(self) -> Sequence[Account]:
        return (linear_account, gossip_account, hidden_graph_account, self.ceiling)

    def a_priori(self, run: RunPlan, delta: float, colluders: Sequence[Peer], *, one_value: bool) -> AccountResult:
        found = gossip_a_priori(run, delta, colluders)
        observers = (Observer.NODE, Observer.COALITION) if colluders else (Observer.NODE,)
        found.refusals += refusals_in_advance(observers, Method.EXACT)
        return found


class PairAnalysis(GossipAnalysis):
    what_ran = "Each user added noise to its value; then pairs of neighbours, drawn at random, averaged."


def linear_account(context: AuditContext) -> AccountResult:
    if unlike_plan(context) is None or context.transcript.published is None:
        return AccountResult()

    def rounding() -> Rounded:
        found = rounding_of(context, graph_of(context))
        return found.nu, found.assumptions

    return exact_account(context, rounding)
