"""What is known of gossip that averages values: `gossip.average` and `gossip.randomized`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from p2pdp.assembly import averages
from p2pdp.assembly.found import Number, Outcome
from p2pdp.audit.beforehand_gossip import gossip_beforehand, refusals_in_advance
from p2pdp.audit.exact_account import EXACT, exact_account
from p2pdp.audit.gossip_account import gossip_account
from p2pdp.audit.gossip_hidden_graph import hidden_graph_account
from p2pdp.audit.ground import Finding
from p2pdp.audit.local import local_account
from p2pdp.core.ids import Peer
from p2pdp.ledger.records import Contents
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.defaults import Account, Analysis, Rows
from p2pdp.protocols.run_plan import RunPlan


class GossipAnalysis(Analysis):
    def gather(self, run: RunPlan, views: Mapping[Peer, Contents], found: Outcome) -> None:
        averages.gather(run, views, found)

    def estimate(self, run: RunPlan, found: Outcome) -> Estimate:
        return averages.estimate_of(run, found)

    def truth(self, run: RunPlan, found: Outcome, rows: Rows) -> Number:
        return averages.truth_of(run, found, rows)

    def error(self, run: RunPlan, found: Outcome, estimate: Number, truth: Number) -> Number:
        return averages.error_of(run, found, estimate, truth)

    def accounts(self) -> Sequence[Account]:
        return (exact_account, gossip_account, hidden_graph_account, local_account)

    def a_priori(self, run: RunPlan, delta: float, colluders: Sequence[Peer], *, one_value: bool) -> Finding:
        found = gossip_beforehand(run, delta, colluders)
        observers = ("node", "coalition") if colluders else ("node",)
        found.refusals += refusals_in_advance(observers, EXACT)
        return found
