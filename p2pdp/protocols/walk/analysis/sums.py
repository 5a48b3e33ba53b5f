"""What is known of walks that add up: `walk.sum` and `walk.histogram`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from p2pdp.assembly import sums
from p2pdp.assembly.found import Number, Outcome
from p2pdp.audit.beforehand_published import published
from p2pdp.audit.blanket import blanket_account
from p2pdp.audit.exact_account import exact_account
from p2pdp.audit.ground import Finding, Ground
from p2pdp.audit.hidden_path import hidden_path_account
from p2pdp.audit.local import local_account
from p2pdp.audit.walk_formulas import walk_formulas
from p2pdp.core.ids import Peer
from p2pdp.ledger.records import Contents
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.defaults import Account, Analysis, Rows
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.analysis.a_priori import a_priori_of_ring, a_priori_of_walk
from p2pdp.replay.scheduled import is_scheduled


class WalkAnalysis(Analysis):
    def gather(self, run: RunPlan, views: Mapping[Peer, Contents], found: Outcome) -> None:
        sums.gather(run, views, found)

    def estimate(self, run: RunPlan, found: Outcome) -> Estimate:
        return sums.estimate_of(run, found)

    def truth(self, run: RunPlan, found: Outcome, rows: Rows) -> Number:
        return sums.truth_of(run, found, rows)

    def accounts(self) -> Sequence[Account]:
        return (exact_account, hidden_path_account, blanket_account, local_account)

    def formulas(self, ground: Ground, findings: Sequence[Finding]) -> Finding:
        return walk_formulas(ground, findings)

    def a_priori(self, run: RunPlan, delta: float, colluders: Sequence[Peer], *, one_value: bool) -> Finding:
        if is_scheduled(run):
            account = blanket_account if run.plan.noise.name == "randomized_response" else exact_account
            found = a_priori_of_ring(run, delta, colluders, account)
        else:
            found = a_priori_of_walk(run, delta, colluders, one_value=one_value)
        found.add(published(run, delta))
        return found
