"""What is known of models learned by walks: `walk.sgd`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from p2pdp.assembly import descents
from p2pdp.assembly.found import Number, Outcome
from p2pdp.audit.beforehand_published import published
from p2pdp.audit.beforehand_sgd import walk_of_descent
from p2pdp.audit.exact_account import exact_account
from p2pdp.audit.ground import NOBODY_OUT, Finding
from p2pdp.audit.iteration import iteration_account
from p2pdp.audit.local import local_account
from p2pdp.core.ids import Peer
from p2pdp.ledger.records import Contents
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.defaults import Account, Analysis, Rows
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.analysis.a_priori import a_priori_of_ring
from p2pdp.protocols.walk.analysis.sums import WalkAnalysis
from p2pdp.replay.scheduled import is_scheduled


class WalkDescentAnalysis(WalkAnalysis):
    def gather(self, run: RunPlan, views: Mapping[Peer, Contents], found: Outcome) -> None:
        descents.gather(run, views, found)

    def estimate(self, run: RunPlan, found: Outcome) -> Estimate:
        return Analysis.estimate(self, run, found)

    def truth(self, run: RunPlan, found: Outcome, rows: Rows) -> Number:
        return descents.truth_of(run, found, rows)

    def accounts(self) -> Sequence[Account]:
        return (exact_account, iteration_account, local_account)

    def a_priori(self, run: RunPlan, delta: float, colluders: Sequence[Peer], *, one_value: bool) -> Finding:
        if is_scheduled(run):
            found = a_priori_of_ring(run, delta, colluders, iteration_account)
        else:
            found = walk_of_descent(run, delta, colluders, NOBODY_OUT)
        found.add(published(run, delta))
        return found
