"""The analysis of walks that add up: `walk.sum` and `walk.histogram`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from p2pdp.assembly import sums
from p2pdp.assembly.outcome import Number, Outcome
from p2pdp.attacks.truths import Truths
from p2pdp.auditor.context import Account, AccountResult, AuditContext
from p2pdp.auditor.exact import exact_account
from p2pdp.core.claims import Claim, Refusal
from p2pdp.core.ids import Peer
from p2pdp.ledger.records import Contents
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.defaults import Analysis, Read, Rows
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.analysis.a_priori import a_priori_of_ring, a_priori_of_walk
from p2pdp.protocols.walk.analysis.absent import AbsentFromWalk, is_scheduled
from p2pdp.protocols.walk.analysis.blanket import blanket_account
from p2pdp.protocols.walk.analysis.decoding import contributions_of_visits, read_walk
from p2pdp.protocols.walk.analysis.fast import fast_walks
from p2pdp.protocols.walk.analysis.hidden_path import hidden_path_account
from p2pdp.protocols.walk.analysis.published import published, walk_formulas
from p2pdp.replay.evidence import Recorded
from p2pdp.sim.trials import Trials


def _typical_total(run: RunPlan, total: int) -> Any:
    plan = run.plan
    if not plan.shape:
        return 0
    if run.spec.task.kind != "histogram" or run.by_record:
        return np.zeros(plan.shape[0], dtype=np.int64)
    tally, categories = total + 2 * plan.dummies * plan.tokens, plan.shape[0]
    return np.array([tally // categories + (place < tally % categories) for place in range(categories)])


class WalkAnalysis(Analysis):
    what_ran = (
        "A token went from user to user. Each user who held it added its own number and passed the token on; "
        "noise was added on the way as the spec says."
    )
    worker_bytes = 400 * 1024**2  # with spectra of the gaps of hidden paths

    def gather(self, run: RunPlan, recorded: Recorded, found: Outcome) -> None:
        sums.gather(recorded, found)

    def truth(self, run: RunPlan, found: Outcome, rows: Rows) -> Number:
        return sums.truth_of(run, found, rows)

    def forecast(self, run: RunPlan, delta: float) -> list[Claim | Refusal]:
        return []

    def fast(self, trials: Trials) -> Iterator[Outcome] | None:
        return fast_walks(trials)

    def typical(self, run: RunPlan) -> Outcome:
        found = super().typical(run)
        found.published = _typical_total(run, run.plan.length)
        return found

    def expected(self, run: RunPlan, typical: Outcome) -> Estimate:
        return self.estimate(run, typical)

    def moves(self, run: RunPlan) -> float:
        """Return how often tokens are sent on a mean; one that stays with its holder does not count."""
        plan = run.plan
        leaves = 1.0 - 1.0 / run.n if plan.order == "complete" or run.n == 1 else 1.0
        begins = leaves if plan.order != "ring" and plan.tokens > 1 else 0.0
        return float(plan.tokens * ((plan.steps - 1) * leaves + begins))

    def bytes_sent(self, run: RunPlan, moves: float) -> tuple[float, int]:
        return super().bytes_sent(run, moves + run.plan.tokens)  # totals are as long as tokens

    def lasting(self, claims: Sequence[Claim]) -> list[Claim]:
        return list(claims)

    def without_graph(self, claims: Sequence[Claim]) -> list[Claim]:
        return list(claims)

    def read(self, run: RunPlan, observer: Peer, contents: Contents) -> list[Read]:
        return read_walk(run, observer, contents)

    def truths(self, run: RunPlan, user: Peer, inputs: Any, contents: Contents, private: bytes) -> Truths:
        return contributions_of_visits(user, inputs, contents)

    def absent(self, run: RunPlan, views: dict[Peer, Contents]) -> AbsentFromWalk:
        return AbsentFromWalk(run, views)

    first_account = staticmethod(hidden_path_account)

    def accounts(self) -> Sequence[Account]:
        return (exact_account, hidden_path_account, blanket_account, self.ceiling)

    def formulas(self, context: AuditContext, findings: Sequence[AccountResult]) -> AccountResult:
        return walk_formulas(context, findings)

    def a_priori(self, run: RunPlan, delta: float, colluders: Sequence[Peer], *, one_value: bool) -> AccountResult:
        if is_scheduled(run):
            account = blanket_account if run.plan.noise.name == "randomized_response" else exact_account
            found = a_priori_of_ring(run, delta, colluders, account)
        else:
            found = a_priori_of_walk(run, delta, colluders, one_value=one_value)
        found.add(published(run, delta))
        return found


class HistogramAnalysis(WalkAnalysis):
    what_ran = (
        "A token with one counter for each category went from user to user. Each user who held it "
        "added one to a counter: mostly that of its true category, sometimes, by chance, any other."
    )
    what_ran_of_records = (
        "A token with one counter for each category went from user to user. Each user who held it added the counts of "
        "all its rows; noise was added on the way as the spec says."
    )
    counts_contributions = True
