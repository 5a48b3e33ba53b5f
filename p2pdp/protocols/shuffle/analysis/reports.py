"""The analysis of network shuffling: `shuffle.all` and `shuffle.single`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from p2pdp.assembly.outcome import Number, Outcome, numbers_frame, numbers_in
from p2pdp.auditor.context import NOBODY_OUT, Account, AccountResult, AuditContext
from p2pdp.core.claims import Claim, Observer, Refusal
from p2pdp.core.errors import Refused
from p2pdp.core.ids import Peer
from p2pdp.ledger.records import Contents
from p2pdp.mechanisms.reporting.estimates import expected
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.defaults import Analysis, Read, Rows
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.shuffle.analysis import outcome as relayed
from p2pdp.protocols.shuffle.analysis.a_priori import local_account_of_reports, shuffle_a_priori
from p2pdp.protocols.shuffle.analysis.account import shuffle_account
from p2pdp.protocols.shuffle.analysis.attack import SEALED, guesses_by_curator
from p2pdp.protocols.shuffle.analysis.fast import fast_shuffles
from p2pdp.protocols.shuffle.analysis.outcome import report_frame_bytes
from p2pdp.replay.evidence import Evidence, Recorded
from p2pdp.sim.trials import Trials
from p2pdp.topology.graphs import Graph


class ShuffleAnalysis(Analysis):
    what_ran = "Each user randomized its report; the reports wandered from user to user before a curator got them."
    headline_observer = Observer.CURATOR
    facts_follow_noise = False
    tells_pairs = False

    fast_in_advance = True

    def target_observers(self, run: RunPlan) -> tuple[Observer, ...]:
        return Observer.NODE, Observer.CURATOR

    def gather(self, run: RunPlan, recorded: Recorded, found: Outcome) -> None:
        relayed.gather(run, recorded, found)

    def truth(self, run: RunPlan, found: Outcome, rows: Rows) -> Number:
        return relayed.truth_of(run, found, rows)

    def forecast(self, run: RunPlan, delta: float) -> list[Claim | Refusal]:
        return []

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

    def fast(self, trials: Trials) -> Iterator[Outcome]:
        return fast_shuffles(trials)

    def expected(self, run: RunPlan, typical: Outcome) -> Estimate:
        plan = run.plan
        if run.by_record and plan.rows is None:
            return Estimate(None, None)
        forecast = expected(plan.randomizer, plan.reports, plan.dummies if plan.single else None)
        published = np.concatenate([[plan.reports], forecast.value, forecast.standard_error])
        return run.protocol.estimate(plan, published, plan.reports)

    def bytes_sent(self, run: RunPlan, moves: float) -> tuple[float, int]:
        assert run.graph is not None
        marks, small = run.plan.marks(run.graph.edge_count), numbers_frame(0)
        sent = marks * small + (moves - marks + run.plan.reports) * report_frame_bytes(run.plan) + run.n * small
        return sent, numbers_frame(1 + 2 * numbers_in(run.plan))

    def ceiling(self, context: AuditContext) -> AccountResult:
        return local_account_of_reports(context)

    def read(self, run: RunPlan, observer: Peer, contents: Contents) -> list[Read]:
        raise Refused(SEALED)

    def guess(self, run: RunPlan, curator: Contents, evidence: Evidence, graph: Callable[[], Graph]) -> list[Any]:
        return guesses_by_curator(run, curator, evidence, graph)

    def decoded(self, run: RunPlan) -> Callable[[Any], Any]:
        decode: Callable[[Any], Any] = run.plan.randomizer.decoded
        return decode

    def accounts(self) -> Sequence[Account]:
        return (shuffle_account, self.ceiling)

    def a_priori(self, run: RunPlan, delta: float, colluders: Sequence[Peer], *, one_value: bool) -> AccountResult:
        return shuffle_a_priori(run, delta, colluders, NOBODY_OUT)


class SingleAnalysis(ShuffleAnalysis):
    what_ran = (
        "Each user randomized its report; the reports wandered from user to user, and each user "
        "handed one of those it held to a curator."
    )
