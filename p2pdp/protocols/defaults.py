"""The capabilities that launcher, planner and auditor need of a protocol, with defaults that work for linear ones.

A protocol's `analysis()` returns an `Analysis`, or an object of a subclass that overrides what the protocol knows
better. This is the heavy half of the contract (`contract.py` has the light one): a node never imports it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from p2pdp.assembly import linear
from p2pdp.assembly.outcome import Number, Outcome, Path, counted_in, numbers_frame, numbers_in
from p2pdp.assembly.pools import Scored
from p2pdp.assembly.sums import baselines_of
from p2pdp.attacks.linear import read_linear, readings
from p2pdp.attacks.truths import Truths, only_contribution
from p2pdp.auditor.context import Account, AccountResult, Ahead, AuditContext, refused
from p2pdp.auditor.exact import exact_account
from p2pdp.auditor.local import local_a_priori, local_account
from p2pdp.core.claims import Claim, Method, Observer, Refusal
from p2pdp.core.errors import Refused, UsageError
from p2pdp.core.ids import Peer
from p2pdp.ledger.records import Contents
from p2pdp.mechanisms.clipping import Bounds, sensitivity
from p2pdp.protocols.contract import Estimate
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.absent import Absent
from p2pdp.replay.evidence import Evidence, Recorded
from p2pdp.replay.foreseen import foresee
from p2pdp.sim.trials import Trials
from p2pdp.topology.graphs import Graph, make_graph

if TYPE_CHECKING:
    from p2pdp.auditor.a_priori import Tradeoff

AS_PLANNED: Final = "a forecast, which is no bound: it holds if every message arrives in the order sent"
HOW_OFTEN: Final = "the plan does not say how often a user contributes its value at most"
UNPROTECTED: Final = "the machine protects contributions less than its plan says, or makes more of them"
_SAME: Final = 1.0 + 1e-9

Rows = Callable[[Peer], Any]
Read = tuple[tuple[Peer, ...], Any, list[tuple[int, int]]]
Baselines = dict[str, dict[str, Any]]
Sigmas = dict[str, float | None]


@dataclass(frozen=True)
class Learning:
    """The comparison of a learned model with its baselines; `sigmas` holds for the given paths, or in advance."""

    sigmas: Callable[[RunPlan, Sequence[Path] | None, float | None, float], Sigmas]
    baselines: Callable[[RunPlan, Sigmas], Baselines]
    scored: Callable[[RunPlan, Outcome, Rows, Number, Sigmas, int], Scored]
    step: str  # what steps are called in words
    steps: Callable[[RunPlan], int]


class Fact(NamedTuple):
    """One number of a plan that is particular to a protocol, with its name in JSON and its words in a terminal."""

    name: str
    value: float
    words: str


class Analysis:
    """The default analysis of a protocol. Methods take the run's plan and their subject; none keeps any state."""

    headline_observer = Observer.NODE
    """The observer whose claims come first in a plan."""

    def gather(self, run: RunPlan, recorded: Recorded, found: Outcome) -> None:
        """Add what the ledgers show besides the published result to an outcome."""
        linear.gather(run, recorded, found)

    def estimate(self, run: RunPlan, found: Outcome) -> Estimate:
        """Return the estimate of the spec's task, with its standard error."""
        if found.alone:
            return run.protocol.estimate_alone(run.plan, found.published, found.survivors)
        estimate = run.protocol.estimate(run.plan, found.published, counted_in(run, found))
        if found.deviation is None:
            return estimate
        return Estimate(estimate.value, [found.deviation] * run.plan.shape[0] if run.plan.shape else found.deviation)

    def truth(self, run: RunPlan, found: Outcome, rows: Rows) -> Number:
        """Return the result of the same contributions without noise and randomization."""
        return linear.truth_of(run, found, rows)

    def error(self, run: RunPlan, found: Outcome, estimate: Number, truth: Number) -> Number:
        """Return the difference between the estimate and the truth."""
        return linear.error_of(run, found, estimate, truth)

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

    learning: Learning | None = None
    """The comparison of models with local, central and no privacy; None if nothing is learned."""

    def forecast(self, run: RunPlan, delta: float) -> list[Claim | Refusal]:
        """Return claims about a run in which nothing is late or lost; `plan` shows them beside lasting ones."""
        try:
            transcript = foresee(run).transcript
        except Refused as refused:
            return [Refusal(self.headline_observer, Method.EXACT, str(refused))]
        found = exact_account(AuditContext(run, {}, transcript, (), delta, run.spec.privacy.colluders))
        claims = [replace(one, bound=False, assumptions=(AS_PLANNED, *one.assumptions)) for one in found.claims]
        return [*claims, *found.refusals]

    def message_noise(self, run: RunPlan, delta: float) -> list[Tradeoff] | None:
        """Return benefits and costs of noise on messages; None if there is no such noise."""
        return None

    def warnings(self, run: RunPlan) -> list[str]:
        """Return warnings for planners of such a run."""
        return []

    def outlook(self, run: RunPlan, delta: float) -> list[Fact]:
        """Return what a planner should know of such a run besides claims and costs."""
        return []

    def typical(self, run: RunPlan) -> Outcome:
        """Return a result in which all users contributed equally often."""
        if run.completes_per_user:
            return Outcome(counted={user: {0: 1} for user in range(run.n)})
        total = run.plan.length
        return Outcome(None, {user: {0: total // run.n + (user < total % run.n)} for user in range(run.n)})

    def expected(self, run: RunPlan, typical: Outcome) -> Estimate:
        """Return the estimate's standard error before a run; its value does not count."""
        try:
            linear.add_forms(run, foresee(run).transcript, typical)
        except Refused:
            return Estimate(None, None)
        return Estimate(None, self.estimate(run, typical).standard_error)

    def moves(self, run: RunPlan) -> float:
        """Return the number of messages that users send each other; where chance decides, its expectation."""
        return float(run.exchanges)

    def bytes_sent(self, run: RunPlan, moves: float) -> tuple[float, int]:
        """Return the bytes of the users' messages to each other, and those of a result."""
        numbers = numbers_in(run.plan)
        return moves * numbers_frame(numbers, run.plan.number_bytes), numbers_frame(numbers)

    def target_observers(self, run: RunPlan) -> tuple[Observer, ...]:
        """Return the observers against which `plan --target-epsilon` searches noise."""
        return (Observer.NODE,)

    facts_follow_noise = True
    """If true, signed facts of the graph may depend on the noise; otherwise a search computes them once."""

    def reach(self, run: RunPlan) -> float:
        """Estimate how far a contribution moves, in data units; amounts of noise are compared by it."""
        clip = run.spec.data.clip
        return 1.0 if clip is None else sensitivity(Bounds(*clip), run.dimensions)

    def contributions_each(self, run: RunPlan) -> int:
        """Estimate the number of contributions of a user, if all make equally many."""
        return 1 if run.completes_per_user else math.ceil(run.plan.length / run.n)

    def lasting(self, claims: Sequence[Claim]) -> list[Claim]:
        """Return the a priori claims that hold whoever is late or excluded; budgets may rest on them."""
        return [claim for claim in claims if claim.method == Method.LOCAL]

    def without_graph(self, claims: Sequence[Claim]) -> list[Claim]:
        """Return the a priori claims that do not rest on bootstrap's word about the graph alone."""
        return [claim for claim in claims if claim.method == Method.LOCAL]

    def fast(self, trials: Trials) -> Iterator[Outcome] | None:
        """Return the outcome of each trial, sampled from its distribution; None if only a simulated world runs it."""
        return None

    tells_pairs = True
    """If true, an audit has a number for each pair of users, in memory too."""

    def looks_in_blocks(self, run: RunPlan) -> bool:
        """Return whether an audit of many users need not hold all of that in memory (`auditor/pairs.py`)."""
        return False

    worker_bytes = 64 * 1024**2
    """Memory that each process that shares an audit has of its own, at most."""

    def ahead(self, evidence: Evidence) -> Ahead | None:
        """Return the rows that an audit may begin before it has read the ledgers, let alone verified them."""
        return None

    fast_in_advance = False
    """If true, the first outcome of the fast path is compared at the epsilon of the plan; otherwise at none."""

    def read(self, run: RunPlan, observer: Peer, contents: Contents) -> list[Read]:
        """Return the sums that an observer can decode from its own view: their users, the total, and the places."""
        return readings(read_linear(run, observer, contents, foresee(with_graph(run))))

    curator_reads = False
    """If true, `read` decodes the curator's view too; otherwise `guess` makes the best of it."""

    def guess(self, run: RunPlan, curator: Contents, evidence: Evidence, graph: Callable[[], Graph]) -> list[Any]:
        """Return the curator's guesses of each user, as documents of `attack`; `graph` makes the public graph."""
        raise UsageError(f"--observer curator: of {run.protocol.name} it gets only what is published; name a user")

    def truths(self, run: RunPlan, user: Peer, inputs: Any, contents: Contents, private: bytes) -> Truths:
        """Return a user's real contributions, by which attacks are scored."""
        return only_contribution(inputs.contribution(0) / run.plan.unit, contents, private)

    def decoded(self, run: RunPlan) -> Callable[[Any], Any] | None:
        """Return a function that shows values of a view that are no numbers; None if all are numbers."""
        return None

    what_ran = ""
    """A sentence or two about the run for readers who know none of the papers."""
    what_ran_of_records = ""
    """The same about runs that protect records, where it is something else."""
    counts_contributions = False
    """If true, a histogram counts contributions, several per user, instead of users."""

    def absent(self, run: RunPlan, views: dict[Peer, Contents]) -> Absent:
        """Return the reconstruction of users whose ledgers are incomplete."""
        return Absent(run, views)

    def accounts(self) -> Sequence[Account]:
        """Return the accounts of an audit in the order in which claims are shown: headlines first, ceilings last."""
        return (exact_account, self.ceiling)

    first_account: Account | None = None
    """The account of these, if any, for which all processes compute so much that the others are done meanwhile."""

    def ceiling(self, context: AuditContext) -> AccountResult:
        """Return the claims that hold whatever others do: contributions seen one by one, each under its noise."""
        return local_account(context)

    def formulas(self, context: AuditContext, findings: Sequence[AccountResult]) -> AccountResult:
        """Return the formulas that papers publish for such a run, to be shown beside the claims."""
        return AccountResult()

    def a_priori(self, run: RunPlan, delta: float, colluders: Sequence[Peer], *, one_value: bool) -> AccountResult:
        """Return claims about a run that has not taken place, over all random choices.

        `one_value` says that every user has one value only. Claims with `bound` hold for every run of the plan.
        """
        most = run.plan.enforced_max
        if most is None and not run.completes_per_user:
            return refused((Observer.NETWORK,), Method.LOCAL, HOW_OFTEN)
        found = local_a_priori(run, delta, 1 if most is None else most)
        try:
            seen = self.ceiling(AuditContext(run, {}, foresee(run).transcript, (), delta, ()))
        except Refused as why_not:
            # Values that could not be inspected rest on a limit that nodes enforce, or give no bound.
            return found if most is not None else refused((Observer.NETWORK,), Method.LOCAL, str(why_not))
        if _largest(seen) > _SAME * _largest(found):
            return refused((Observer.NETWORK,), Method.LOCAL, UNPROTECTED)
        return found


def _largest(found: AccountResult) -> float:
    return max((claim.epsilon_max or 0.0 for claim in found.claims), default=0.0)


def with_graph(run: RunPlan) -> RunPlan:
    """Return the plan with its graph, made from the spec if need be."""
    if run.graph is not None:
        return run
    if run.spec.graph.kind == "file":
        raise Refused("[graph] path: the attack needs the graph; its file is not where the spec says, or is not public")
    return replace(run, graph=make_graph(run.spec.graph, run.n, run.spec.run.seed or 0))
