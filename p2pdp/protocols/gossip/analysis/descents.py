"""What is known of models learned by gossip: `gossip.sgd`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from p2pdp.assembly.outcome import Number, Outcome
from p2pdp.attacks.truths import Truths, only_contribution
from p2pdp.core.claims import Claim, Refusal
from p2pdp.core.ids import Peer
from p2pdp.ledger.records import Contents
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.defaults import Account, Learning, Rows, Sigmas
from p2pdp.protocols.gossip.analysis import outcome_descent as gossip_descents
from p2pdp.protocols.gossip.analysis.averages import GossipAnalysis
from p2pdp.protocols.gossip.analysis.descent_account import gossip_descent_account
from p2pdp.protocols.gossip.analysis.descent_forecast import descent_forecast
from p2pdp.protocols.gossip.analysis.fast_descent import fast_gossip_descents
from p2pdp.protocols.gossip.analysis.levels import gossip_sigmas_of
from p2pdp.protocols.gossip.analysis.linear import linear_account
from p2pdp.protocols.gossip.analysis.outcome_descent import noise_end
from p2pdp.protocols.gossip.analysis.scores import gossip_baselines_of, gossip_scored
from p2pdp.protocols.learning import warnings_of
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Recorded
from p2pdp.sim.trials import Trials


def _sigmas(run: RunPlan, _paths: object, epsilon: float | None, delta: float) -> Sigmas:
    return gossip_sigmas_of(run, epsilon, delta)  # by composition over the gradients: there is no path


class GossipDescentAnalysis(GossipAnalysis):
    what_ran = "Users trained a model together: each adds noise to its gradients and averages with its neighbours."
    fast_in_advance = True
    learning = Learning(_sigmas, gossip_baselines_of, gossip_scored)

    def gather(self, run: RunPlan, recorded: Recorded, found: Outcome) -> None:
        gossip_descents.gather(run, recorded, found)

    def estimate(self, run: RunPlan, found: Outcome) -> Estimate:
        return gossip_descents.estimate_of(run, found)

    def truth(self, run: RunPlan, found: Outcome, rows: Rows) -> Number:
        return gossip_descents.truth_of(run, found, rows)

    def fast(self, trials: Trials) -> Iterator[Outcome]:
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
        end = noise_end(run)
        return Estimate(None, None if end is None else [end] * run.plan.shape[0])

    def truths(self, run: RunPlan, user: Peer, inputs: Any, contents: Contents, private: bytes) -> Truths:
        return only_contribution(inputs.gradient(inputs.zero(), 0) / run.plan.step, contents, private)

    def accounts(self) -> Sequence[Account]:
        return (linear_account, self.ceiling, gossip_descent_account)
