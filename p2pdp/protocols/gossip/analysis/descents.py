"""What is known of models learned by gossip: `gossip.sgd`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from p2pdp.assembly import gossip_descents
from p2pdp.assembly.found import Number, Outcome
from p2pdp.audit.exact_account import exact_account
from p2pdp.audit.gossip_descent_account import gossip_descent_account
from p2pdp.audit.local import local_account
from p2pdp.core.ids import Peer
from p2pdp.ledger.records import Contents
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.defaults import Account, Rows
from p2pdp.protocols.gossip.analysis.averages import GossipAnalysis
from p2pdp.protocols.run_plan import RunPlan


class GossipDescentAnalysis(GossipAnalysis):
    def gather(self, run: RunPlan, views: Mapping[Peer, Contents], found: Outcome) -> None:
        gossip_descents.gather(run, views, found)

    def estimate(self, run: RunPlan, found: Outcome) -> Estimate:
        return gossip_descents.estimate_of(run, found)

    def truth(self, run: RunPlan, found: Outcome, rows: Rows) -> Number:
        return gossip_descents.truth_of(run, found, rows)

    def accounts(self) -> Sequence[Account]:
        return (exact_account, local_account, gossip_descent_account)
