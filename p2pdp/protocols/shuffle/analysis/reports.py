"""What is known of network shuffling: `shuffle.all` and `shuffle.single`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from p2pdp.assembly import relayed
from p2pdp.assembly.found import Number, Outcome
from p2pdp.audit.beforehand_shuffle import shuffle_beforehand
from p2pdp.audit.ground import NOBODY_OUT, Finding
from p2pdp.audit.local import local_account
from p2pdp.audit.shuffling import shuffle_account
from p2pdp.core.ids import Peer
from p2pdp.ledger.records import Contents
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.defaults import Account, Analysis, Rows
from p2pdp.protocols.run_plan import RunPlan


class ShuffleAnalysis(Analysis):
    headline_observer = "curator"

    def gather(self, run: RunPlan, views: Mapping[Peer, Contents], found: Outcome) -> None:
        relayed.gather(run, views, found)

    def truth(self, run: RunPlan, found: Outcome, rows: Rows) -> Number:
        return relayed.truth_of(run, found, rows)

    def baselines(
        self,
        run: RunPlan,
        found: Outcome,
        estimate: Estimate,
        sensitivity: float | None,
        epsilon: float | None,
        delta: float,
    ) -> dict[str, dict[str, Number]]:
        return relayed.baselines_of(run, found, estimate.value, epsilon, delta)

    def accounts(self) -> Sequence[Account]:
        return (shuffle_account, local_account)

    def a_priori(self, run: RunPlan, delta: float, colluders: Sequence[Peer], *, one_value: bool) -> Finding:
        return shuffle_beforehand(run, delta, colluders, NOBODY_OUT)
