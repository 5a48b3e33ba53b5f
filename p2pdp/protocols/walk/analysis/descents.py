"""The analysis of models learned by walks: `walk.sgd`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from p2pdp.assembly.outcome import Number, Outcome
from p2pdp.attacks.truths import Truths
from p2pdp.auditor.context import NOBODY_OUT, Account, AccountResult, refused
from p2pdp.auditor.exact import exact_account
from p2pdp.auditor.local import local_a_priori
from p2pdp.core.claims import Method, Observer
from p2pdp.core.ids import Peer
from p2pdp.ledger.records import Contents
from p2pdp.protocols.defaults import Learning, Read, Rows
from p2pdp.protocols.learning import warnings_of
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.analysis import outcome_descent as descents
from p2pdp.protocols.walk.analysis.a_priori import a_priori_of_descent, a_priori_of_ring
from p2pdp.protocols.walk.analysis.absent import AbsentFromDescent, is_scheduled
from p2pdp.protocols.walk.analysis.decoding import gradients_of_visits, read_descent
from p2pdp.protocols.walk.analysis.fast import fast_trials_of_descents
from p2pdp.protocols.walk.analysis.iteration import SAMPLED, iteration_account
from p2pdp.protocols.walk.analysis.outcome_descent import baselines_of, scored, sigmas_of
from p2pdp.protocols.walk.analysis.published import published
from p2pdp.protocols.walk.analysis.sums import WalkAnalysis
from p2pdp.replay.evidence import Recorded
from p2pdp.sim.trials import Trials


class WalkDescentAnalysis(WalkAnalysis):
    what_ran = (
        "A token that carries a model went from user to user. Each user who held it improved the model a "
        "little with its own data and added noise before passing it on."
    )
    fast_in_advance = True
    learning = Learning(sigmas_of, baselines_of, scored, "steps of a token", lambda run: int(run.plan.steps))

    def gather(self, run: RunPlan, recorded: Recorded, found: Outcome) -> None:
        descents.gather(run, recorded, found)

    def truth(self, run: RunPlan, found: Outcome, rows: Rows) -> Number:
        return descents.truth_of(run, found, rows)

    def fast(self, trials: Trials) -> Iterator[Outcome] | None:
        if trials.run.plan.descent.samples:
            return None
        return fast_trials_of_descents(trials)

    def reach(self, run: RunPlan) -> float:
        return 2.0 * float(run.plan.descent.clip)

    def warnings(self, run: RunPlan) -> list[str]:
        return warnings_of(run.plan.descent, run.plan.rate)

    def read(self, run: RunPlan, observer: Peer, contents: Contents) -> list[Read]:
        return read_descent(run, observer, contents)

    def truths(self, run: RunPlan, user: Peer, inputs: Any, contents: Contents, private: bytes) -> Truths:
        return gradients_of_visits(run, user, inputs, contents, private)

    def absent(self, run: RunPlan, views: dict[Peer, Contents]) -> AbsentFromDescent:
        return AbsentFromDescent(run, views)

    def accounts(self) -> Sequence[Account]:
        return (exact_account, iteration_account, self.ceiling)

    def a_priori(self, run: RunPlan, delta: float, colluders: Sequence[Peer], *, one_value: bool) -> AccountResult:
        if is_scheduled(run) and run.plan.descent.samples:
            found = refused((Observer.NODE, Observer.CURATOR, Observer.PUBLIC)[run.n == 1 :], Method.ITERATION, SAMPLED)
            found.claims += local_a_priori(run, delta, run.plan.contributions_max).claims
        elif is_scheduled(run):
            found = a_priori_of_ring(run, delta, colluders, iteration_account)
        else:
            found = a_priori_of_descent(run, delta, colluders, NOBODY_OUT)
        found.add(published(run, delta))
        return found
