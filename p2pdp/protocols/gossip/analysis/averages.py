"""The analysis of gossip that averages values: `gossip.average` and `gossip.randomized`.

If the recorded draws are not those of the plan, or noise of pairs was taken back, the linear account applies, since the
account of gossip relies on the plan's draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from p2pdp.assembly.outcome import Number, Outcome
from p2pdp.attacks.truths import ONLY_PLACE, Truths, only_contribution
from p2pdp.auditor.a_priori import Tradeoff
from p2pdp.auditor.context import Account, AccountResult, Ahead, AuditContext, unlike_plan
from p2pdp.auditor.exact import Rounded, exact_account
from p2pdp.auditor.pairs import HELD_MAX
from p2pdp.core.claims import Claim, Method, Observer, Refusal
from p2pdp.core.ids import Peer
from p2pdp.ledger.records import Contents
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.defaults import Analysis, Read, Rows
from p2pdp.protocols.gossip.analysis import outcome as averages
from p2pdp.protocols.gossip.analysis.a_priori import (
    gossip_a_priori,
    hidden_graph_account,
    hides_graph,
    refusals_in_advance,
)
from p2pdp.protocols.gossip.analysis.account import gossip_account
from p2pdp.protocols.gossip.analysis.decoding import read_gossip
from p2pdp.protocols.gossip.analysis.fast import fast_averages, standard_error_of
from p2pdp.protocols.gossip.analysis.forecast import forecast_claim, tradeoff_of
from p2pdp.protocols.gossip.analysis.masked import masked_a_priori
from p2pdp.protocols.gossip.analysis.rounding import rounding_of
from p2pdp.protocols.gossip.analysis.views import graph_of, masks_hold, spans_ahead
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Evidence, Recorded
from p2pdp.sim.trials import Trials

EXACT_MAX: Final = 2048


class GossipAnalysis(Analysis):
    what_ran = "Each user added noise to its value and then averaged with its neighbours, again and again."

    def looks_in_blocks(self, run: RunPlan) -> bool:
        """Return whether neither noise of pairs nor an account of hidden graphs has a number for each pair anyway."""
        return run.plan.pair_noise is None and not (run.plan.in_rounds and hides_graph(run))

    def gather(self, run: RunPlan, recorded: Recorded, found: Outcome) -> None:
        averages.gather(run, recorded, found)
        averages.count_rows(run, found)

    def estimate(self, run: RunPlan, found: Outcome) -> Estimate:
        """Return the mean of what was published, over the rows of those who were not excluded."""
        return super().estimate(run, replace(found, published=averages.of_those_left(run, found)))

    def truth(self, run: RunPlan, found: Outcome, rows: Rows) -> Number:
        return averages.truth_of(run, found, rows)

    def error(self, run: RunPlan, found: Outcome, estimate: Number, truth: Number) -> Number:
        return averages.error_of(run, found, estimate, truth)

    def fast(self, trials: Trials) -> Iterator[Outcome] | None:
        return fast_averages(trials)

    def moves(self, run: RunPlan) -> float:
        """Return the number of exchanges; in rounds each pair that met agrees in the end that no edge is left out."""
        if not run.plan.in_rounds:
            return float(run.exchanges)
        assert run.graph is not None
        coin, rounds = run.plan.coin, run.plan.rounds
        ever = 1.0 if coin is None else 1.0 - (1.0 - coin) ** rounds
        return float(run.exchanges) + ever * run.graph.edge_count

    def forecast(self, run: RunPlan, delta: float) -> list[Claim | Refusal]:
        return [forecast_claim(run, delta)] if run.plan.in_rounds else []

    def message_noise(self, run: RunPlan, delta: float) -> list[Tradeoff] | None:
        return tradeoff_of(run, delta) if run.plan.in_rounds else None

    def expected(self, run: RunPlan, typical: Outcome) -> Estimate:
        """Return the error of a user's own result, or of what is published.

        It is exact, of pairs and changing graphs over some draws of who meets whom; among more than `EXACT_MAX` users
        gossip is taken to have come to the mean of all values.
        """
        plan, scale = run.plan, averages.per_row(run, typical)
        if run.by_record and scale is None:
            return Estimate(None, None)
        error = standard_error_of(run) if run.n <= EXACT_MAX and run.graph is not None else None
        if error is None:
            variance = 2.0 if plan.noise.name == "laplace" else 1.0
            error = math.ldexp(math.sqrt(variance / run.n) * plan.noise.scale, plan.grid_exponent)
        error *= scale or 1.0
        return Estimate(None, [error] * plan.shape[0] if plan.shape else error)

    def read(self, run: RunPlan, observer: Peer, contents: Contents) -> list[Read]:
        return read_gossip(run, observer, contents)

    def truths(self, run: RunPlan, user: Peer, inputs: Any, contents: Contents, private: bytes) -> Truths:
        return {(0, user): only_contribution(inputs.contribution(0) / run.plan.unit, contents, private)[ONLY_PLACE]}

    def ahead(self, evidence: Evidence) -> Ahead | None:
        """Return what users learn on a fixed graph if every message arrives; it takes nothing but the graph."""
        return None if evidence.run.n > HELD_MAX else spans_ahead(evidence)

    def accounts(self) -> Sequence[Account]:
        return (linear_account, gossip_account, hidden_graph_account, self.ceiling)

    def a_priori(self, run: RunPlan, delta: float, colluders: Sequence[Peer], *, one_value: bool) -> AccountResult:
        found = gossip_a_priori(run, delta, colluders)
        masked = masked_a_priori(run, delta, colluders, self.contributions_each(run))
        if masked:
            found.claims += masked
            return found
        observers = (Observer.NODE, Observer.COALITION) if colluders else (Observer.NODE,)
        found.refusals += refusals_in_advance(observers, Method.EXACT)
        return found


class PairAnalysis(GossipAnalysis):
    what_ran = "Each user added noise to its value; then pairs of neighbours, drawn at random, averaged."


def linear_account(context: AuditContext) -> AccountResult:
    if context.transcript.published is None or (unlike_plan(context) is None and masks_hold(context)):
        return AccountResult()

    def rounding() -> Rounded:
        found = rounding_of(context, graph_of(context))
        return found.nu, found.assumptions

    return exact_account(context, rounding)
