"""The analysis of pairwise sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from p2pdp.assembly import linear, sums
from p2pdp.assembly.outcome import ENVELOPE_BYTES, Number, Outcome, counted_in, numbers_frame, numbers_in
from p2pdp.attacks.truths import ONLY_PLACE, Truths, only_contribution
from p2pdp.auditor.context import AccountResult
from p2pdp.core.claims import Claim, Observer, Refusal
from p2pdp.core.ids import CURATOR, Peer
from p2pdp.ledger.records import Contents
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.defaults import Analysis, Fact, Read, Rows
from p2pdp.protocols.pairwise.analysis.a_priori import lasting, pairwise_a_priori
from p2pdp.protocols.pairwise.analysis.absent import AbsentFromSum
from p2pdp.protocols.pairwise.analysis.decoding import read_by_curator
from p2pdp.protocols.pairwise.analysis.fast import fast_sums
from p2pdp.protocols.pairwise.analysis.outlook import outlook_of, warnings_of
from p2pdp.protocols.pairwise.sharing import KEY_BYTES, PART_BYTES
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Recorded
from p2pdp.sim.trials import Trials
from p2pdp.wire.padding import frame_size

_NUMBER_BYTES: Final = 9  # of a user's number, packed


class PairwiseAnalysis(Analysis):
    what_ran = (
        "Each user added noise to its value, and masks that cancel against those of its neighbours; the curator "
        "learned the sum over those who were left."
    )
    headline_observer = Observer.CURATOR
    fast_in_advance = True
    curator_reads = True

    def looks_in_blocks(self, run: RunPlan) -> bool:
        return True

    def gather(self, run: RunPlan, recorded: Recorded, found: Outcome) -> None:
        linear.gather(run, recorded, found)
        found.survivors = sorted(found.counted) if found.over else None

    def estimate(self, run: RunPlan, found: Outcome) -> Estimate:
        if found.deviation is None and found.survivors is not None:
            return run.protocol.estimate_alone(run.plan, found.published, found.survivors)
        return super().estimate(run, found)

    def truth(self, run: RunPlan, found: Outcome, rows: Rows) -> Number:
        return sums.truth_of(run, found, rows)

    def forecast(self, run: RunPlan, delta: float) -> list[Claim | Refusal]:
        return []  # what is claimed in advance is all of it

    def a_priori(self, run: RunPlan, delta: float, colluders: Sequence[Peer], *, one_value: bool) -> AccountResult:
        return pairwise_a_priori(run, delta, colluders)

    def absent(self, run: RunPlan, views: dict[Peer, Contents]) -> AbsentFromSum:
        return AbsentFromSum(run, views)

    def lasting(self, claims: Sequence[Claim]) -> list[Claim]:
        return lasting(claims, graph=True)

    def without_graph(self, claims: Sequence[Claim]) -> list[Claim]:
        return lasting(claims, graph=False)

    def target_observers(self, run: RunPlan) -> tuple[Observer, ...]:
        """Return the curator, with its colluders where the spec has some."""
        return (Observer.POOLED,) if run.plan.colluders_max else (Observer.CURATOR,)

    def outlook(self, run: RunPlan, delta: float) -> list[Fact]:
        return outlook_of(run, delta)

    def warnings(self, run: RunPlan) -> list[str]:
        return warnings_of(run)

    def fast(self, trials: Trials) -> Iterator[Outcome]:
        return fast_sums(trials)

    def read(self, run: RunPlan, observer: Peer, contents: Contents) -> list[Read]:
        if observer == CURATOR:
            return read_by_curator(run.plan, contents)
        return [
            (users, total, [(0, user) for user in users]) for users, total, _ in super().read(run, observer, contents)
        ]

    def truths(self, run: RunPlan, user: Peer, inputs: Any, contents: Contents, private: bytes) -> Truths:
        return {(0, user): only_contribution(inputs.contribution(0), contents, private)[ONLY_PLACE]}

    def expected(self, run: RunPlan, typical: Outcome) -> Estimate:
        none = np.zeros(run.plan.shape, dtype=np.int64) if run.plan.shape else 0
        return Estimate(None, run.protocol.estimate(run.plan, none, counted_in(run, typical)).standard_error)

    def bytes_sent(self, run: RunPlan, moves: float) -> tuple[float, int]:
        assert run.graph is not None
        result = numbers_frame(numbers_in(run.plan))
        sent = moves * frame_size(ENVELOPE_BYTES + PART_BYTES)
        for user in range(run.n):
            around = run.graph.degree(user)
            sent += frame_size(ENVELOPE_BYTES + _NUMBER_BYTES * (numbers_in(run.plan) + around))
            if run.plan.settles:
                sent += frame_size(ENVELOPE_BYTES + KEY_BYTES + (PART_BYTES + _NUMBER_BYTES) * around)
        return sent, result
