"""What launcher, planner and auditor need of a protocol beside its machine, with defaults that work for linear ones.

A protocol's `analysis()` returns an `Analysis`, or an object of a subclass that overrides what the protocol knows
better. This is the heavy half of the contract (`contract.py` has the light one): a node never imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from p2pdp.assembly.found import Number, Outcome, difference
from p2pdp.assembly.sums import baselines_of
from p2pdp.audit.exact_account import exact_account
from p2pdp.audit.ground import Finding, Ground
from p2pdp.audit.local import local_account
from p2pdp.core.ids import Peer
from p2pdp.ledger.records import Contents
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.run_plan import RunPlan

Rows = Callable[[Peer], Any]
Account = Callable[[Ground], Finding]


class Analysis:
    """The defaults. Methods get the run's plan and what they are about; none of them keeps anything."""

    headline_observer = "node"
    """Whose claims come first in a plan."""

    def gather(self, run: RunPlan, views: Mapping[Peer, Contents], found: Outcome) -> None:
        """Add to an outcome what the ledgers say of it beside what was published."""

    def estimate(self, run: RunPlan, found: Outcome) -> Estimate:
        """Return the estimate of the spec's task, with its standard error."""
        return run.protocol.estimate(run.plan, found.published, found.contributions)

    def truth(self, run: RunPlan, found: Outcome, rows: Rows) -> Number:
        """Return what the same contributions would have given without noise and randomization."""
        raise NotImplementedError

    def error(self, run: RunPlan, found: Outcome, estimate: Number, truth: Number) -> Number:
        """Return how far the estimate is from the truth."""
        return difference(estimate, truth)

    def baselines(
        self,
        run: RunPlan,
        found: Outcome,
        estimate: Estimate,
        sensitivity: float | None,
        epsilon: float | None,
        delta: float,
    ) -> dict[str, dict[str, Number]]:
        """Return standard errors of the same task under local DP, and with a trusted curator, at the same privacy."""
        return baselines_of(run, found, estimate, sensitivity, epsilon, delta)

    def accounts(self) -> Sequence[Account]:
        """Return the accounts of an audit in the order in which claims are shown: headlines first, ceilings last."""
        return (exact_account, local_account)

    def formulas(self, ground: Ground, findings: Sequence[Finding]) -> Finding:
        """Return what papers publish for such a run, to be shown beside the claims."""
        return Finding()

    def a_priori(self, run: RunPlan, delta: float, colluders: Sequence[Peer], *, one_value: bool) -> Finding:
        """Return claims about a run that has not taken place, over all that chance decides.

        `one_value` says that every user has one value only. Claims with `bound` hold for every run of the plan.
        """
        raise NotImplementedError
