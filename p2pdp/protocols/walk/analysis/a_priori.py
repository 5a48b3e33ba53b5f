"""A-priori claims about walks: sums and histograms on a ring or at random, and descent by a random walk.

On a ring the schedule is public and leaves nothing to chance, so the claims are those that an audit will make. On a
random walk they rest on the distribution of the number of visits to each user (`Visits`), which does not depend on
data; the claims of an audit, given what was seen or the route that was taken, may be larger or smaller.

For descent each claim holds a priori, over the law of the walk, for the user who is worst off; user 0 starts a single
token, and is counted with that. On the complete graph claims use amplification by iteration. On other graphs the law of
the parts between visits is not computed, nor for changing rates. There, and where steps may expand, only the local
ceiling is left. Hiding who takes a step does not help: the timing of messages shows how often a token moved, and
with two others, one of whom is known to begin, that reveals the whole path. Claims by iteration are not affected, for
they average over known paths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final

import numpy as np

from p2pdp.auditor.claims import Spread, claim_of
from p2pdp.auditor.context import NOBODY_OUT, PUBLIC_ROUTE, Account, AccountResult, AuditContext
from p2pdp.auditor.local import OWN_NOISE, local_account, pure_epsilon_of
from p2pdp.auditor.sampled import HIDDEN_ROWS, samples, steps_of
from p2pdp.core.claims import Claim, Conditioning, Method, Name, Observer, Refusal, Relation
from p2pdp.core.ids import Peer
from p2pdp.privacy.hidden_path.a_priori import STEPS_MAX as HIDDEN_STEPS_MAX
from p2pdp.privacy.hidden_path.a_priori import a_priori
from p2pdp.privacy.iteration.law import STEPS_MAX as LAW_STEPS_MAX
from p2pdp.privacy.iteration.law import Walked, exposure_law
from p2pdp.privacy.iteration.walk import Exposure, epsilon
from p2pdp.privacy.linear.view import ROUNDED_UP
from p2pdp.privacy.rounding import beside
from p2pdp.privacy.subsampled import epsilon_of
from p2pdp.privacy.visits import (
    STEPS_MAX,
    USERS_MAX,
    Law,
    binomial_visits,
    certain,
    gaussian_epsilon,
    graph_visits,
    pure_epsilon,
    sum_of,
)
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.analysis.absent import scheduled_transcript
from p2pdp.protocols.walk.analysis.hidden_path import ONE_VALUE, OWN_VIEW
from p2pdp.protocols.walk.analysis.iteration import foreseen, ratio_of, terms, why_not
from p2pdp.protocols.walk.sgd import SgdPlan
from p2pdp.replay.transcript import Transcript

SCHEDULE: Final = "the schedule is public and fixed beforehand"
_LAPLACE_SEEN: Final = "laplace noise has no exact Gaussian leak"


def a_priori_of_ring(run: RunPlan, delta: float, colluders: Sequence[Peer], account: Account) -> AccountResult:
    """Return the claims that an audit by this account will make, and the local ceiling."""
    context = AuditContext(run, {}, scheduled_transcript(run), (), delta, colluders)
    parts = [account(context), local_account(context)]
    claims = [_in_advance(claim) for part in parts for claim in part.claims]
    refusals = [refusal for part in parts for refusal in part.refusals]
    return replace(parts[0], claims=claims, refusals=refusals)


def _in_advance(claim: Claim) -> Claim:
    rest = [text for text in claim.assumptions if text != PUBLIC_ROUTE]
    return replace(claim, conditioning=Conditioning.A_PRIORI, assumptions=(SCHEDULE, NOBODY_OUT, *rest))


def a_priori_of_walk(run: RunPlan, delta: float, colluders: Sequence[Peer], *, one_value: bool) -> AccountResult:
    """Return claims by the law of a random walk's visits."""
    context = AuditContext(run, {}, Transcript(), (), delta, colluders)
    walks = Walks(context, Visits(run, delta), NOBODY_OUT)
    found = AccountResult()
    if run.plan.noise.name in ("gaussian", "none"):
        if run.n > 1:
            found.add([walks.node(one_value=one_value)])
        found.claims += [walks.curator(), walks.public()]
    else:
        reason = _LAPLACE_SEEN
        if run.plan.noise.name == "randomized_response":
            reason = "what sums of reports tell is accounted for given a route, and not in advance"
        found.refusals += [
            Refusal(observer, Method.EXACT, reason) for observer in (Observer.NODE, Observer.CURATOR, Observer.PUBLIC)
        ]
    if colluders:
        reason = "who pools views knows more of the path than is accounted for in advance: the local ceiling stands"
        found.refusals += [Refusal(one, Method.EXACT, reason) for one in (Observer.COALITION, Observer.POOLED)]
    found.claims.append(walks.network())
    return found


@dataclass(frozen=True)
class Visits:
    """The distribution of a random walk's visits to each user; `basis` is the assumption that it rests on."""

    run: RunPlan
    delta: float

    @cached_property
    def basis(self) -> str:
        if self.run.plan.order == "complete":
            return "the next holder is uniform over all users"
        if self._at_worst:
            return "every step of the walk may be at the same user: its visits are not computed for a walk of this size"
        return "the next holder is uniform over the neighbours of the one before, on this graph"

    @cached_property
    def all_tokens(self) -> list[Law]:
        """Return the law of visits for each user, in all tokens together."""
        return self._laws(self.run.plan.tokens)

    @cached_property
    def one_token(self) -> list[Law]:
        """Return the law of visits for each user, in each of the tokens."""
        return self._laws(1)

    @property
    def _at_worst(self) -> bool:
        run = self.run
        return run.plan.order != "complete" and (run.graph is None or run.n > USERS_MAX or run.plan.steps > STEPS_MAX)

    def _laws(self, counted: int) -> list[Law]:
        run, plan = self.run, self.run.plan
        if self._at_worst:
            return [certain(counted * plan.steps)] * run.n
        if plan.order == "graph":
            assert run.graph is not None
            return graph_visits(run.graph.neighbours, plan.steps, counted, self.delta, spread=plan.tokens > 1)
        if plan.tokens > 1:
            return [binomial_visits(counted * plan.steps, 1.0 / run.n, 0, self.delta)] * run.n
        other = binomial_visits(plan.steps - 1, 1.0 / run.n, 0, self.delta)
        return [binomial_visits(plan.steps - 1, 1.0 / run.n, 1, self.delta), *[other] * (run.n - 1)]


_VISITS: Final = "averaged over how often a user is visited, which does not depend on data"
_TOTALS: Final = "the observer sees the total of each token, with the noise of all of its contributions"
_SUM: Final = "the observer sees the sum of all totals, with the noise of all contributions"
_MU_MAX: Final = 64.0

Epsilons = Callable[[Law], float]


class Walks:
    """Makes the claims about random walks; each rests on `assumed` too."""

    def __init__(self, context: AuditContext, visits: Visits, assumed: str) -> None:
        self._context = context
        self._plan = context.run.plan
        self._visits = visits
        self._assumed = (assumed, *context.assumptions)
        scale = self._plan.noise.scale if self._plan.noise.name == "gaussian" else 0.0
        self._mu = context.sensitivity / scale * ROUNDED_UP if scale else math.inf

    def node(self, *, one_value: bool) -> Claim | Refusal:
        """Claim about one other user, who sees the walk at its own visits only."""
        reason = self._why_path_hides_nothing(one_value=one_value)
        if reason is not None:
            return Refusal(Observer.NODE, Method.HIDDEN_PATH, reason)
        run, plan = self._context.run, self._plan
        found = a_priori(run.n, plan.steps, plan.tokens, self._mu, self._context.delta, alike=not run.by_record)
        assumptions = (self._visits.basis, OWN_VIEW, ONE_VALUE, *self._assumed)
        epsilon = found.largest, found.mean
        return self._claim(Observer.NODE, Method.HIDDEN_PATH, epsilon, found.worst_pair, assumptions)

    def _why_path_hides_nothing(self, *, one_value: bool) -> str | None:
        if self._plan.order != "complete":
            return "what a hidden path adds is computed in advance for the complete graph only"
        if self._plan.steps > HIDDEN_STEPS_MAX:
            return f"hidden paths are accounted for in advance up to {HIDDEN_STEPS_MAX} hops"
        if not one_value:
            return "some user contributes several values in turn; the law of a path is for one value a user"
        if self._mu > _MU_MAX:
            return f"values may move {_MU_MAX:g} times as far as their noise reaches: a hidden path does not protect"
        return None

    def curator(self) -> Claim:
        """Claim about the curator, who sees the total of each token, and its sender."""
        plan = self._plan
        laws = {law: sum_of(law.squared(), plan.tokens) for law in dict.fromkeys(self._visits.one_token)}
        laws_of_users = [laws[law] for law in self._visits.one_token]
        return self._averaged(Observer.CURATOR, Method.HIDDEN_PATH, laws_of_users, self._gaussian(plan.steps), _TOTALS)

    def public(self) -> Claim:
        """Claim about the public, who see the sum of all totals."""
        laws = {law: law.squared() for law in dict.fromkeys(self._visits.all_tokens)}
        noises = self._plan.steps * self._plan.tokens
        laws_of_users = [laws[law] for law in self._visits.all_tokens]
        return self._averaged(Observer.PUBLIC, Method.HIDDEN_PATH, laws_of_users, self._gaussian(noises), _SUM)

    def network(self, relation: Relation = Relation.REPLACE) -> Claim:
        """Claim about an observer of all messages, who sees each contribution under its own noise."""
        delta = self._context.delta
        if samples([self._plan.protection]):
            one: Epsilons = partial(_sampled, self._context.run, delta, relation)
            laws, stated = self._visits.all_tokens, (OWN_NOISE, HIDDEN_ROWS)
            return replace(self._averaged(Observer.NETWORK, Method.LOCAL, laws, one, *stated), relation=relation)
        if self._plan.noise.name in ("gaussian", "none"):
            one = self._gaussian(1)
        else:
            epsilon_0 = pure_epsilon_of(self._context.run, (self._plan.noise,))

            def one(law: Law) -> float:
                return pure_epsilon(law, epsilon_0, delta)

        return self._averaged(Observer.NETWORK, Method.LOCAL, self._visits.all_tokens, one, OWN_NOISE)

    def _gaussian(self, noises: int) -> Epsilons:
        mu = self._mu / math.sqrt(noises) * ROUNDED_UP
        return lambda law: gaussian_epsilon(law, mu, self._context.delta)

    def _averaged(
        self, observer: Observer, method: str, laws: list[Law], of: Epsilons, sees: str, *stated: str
    ) -> Claim:
        known = {law: of(law) for law in dict.fromkeys(laws)}
        epsilons = [known[law] for law in laws]
        largest = max(epsilons)
        assumptions = (_VISITS, self._visits.basis, sees, *stated, *self._assumed)
        epsilon = largest, sum(epsilons) / len(epsilons)
        return self._claim(observer, method, epsilon, (epsilons.index(largest), observer), assumptions)

    def _claim(
        self, observer: Observer, method: str, epsilon: Spread, worst: tuple[int, Name], assumptions: Sequence[str]
    ) -> Claim:
        context = self._context
        return claim_of(
            context.run.protected,
            observer,
            method,
            Conditioning.A_PRIORI,
            context.delta,
            worst,
            assumptions,
            epsilon=epsilon,
        )


_MORE_VISITS: Final = 0.01  # of delta: what visits beyond those that are counted may weigh


def _sampled(run: RunPlan, delta: float, relation: Relation, visits: Law) -> float:
    """Return epsilon of one row: of as many steps as a user hardly ever takes more."""
    beyond = np.append(np.cumsum(visits.masses[::-1])[::-1][1:], 0.0) + visits.lost
    enough = np.flatnonzero(beyond <= _MORE_VISITS * delta)
    if not len(enough):
        return math.inf
    made = [run.plan.protection] * int(visits.counts[enough[0]])
    return epsilon_of(steps_of(run, made), relation, delta * (1.0 - _MORE_VISITS))


_UNIFORM: Final = "the next holder is uniform over all users, whatever the data"
_NODE: Final = "the observer sees the token at its own visits, and the result"
_NO_SECRET: Final = (
    "who takes a step is not secret enough: when messages arrive shows how often a token moved, and what that tells "
    "beside the models is not worked out"
)
_RESULT: Final = "the observer sees the model of each token"
_POOLED: Final = "the observers see the token at their own visits, and the result"
_TOO_LONG: Final = f"what is seen of a token in advance is worked out for several observers up to {LAW_STEPS_MAX} hops"


def a_priori_of_descent(run: RunPlan, delta: float, colluders: Sequence[Peer], nobody_out: str) -> AccountResult:
    """Return claims and refusals about descent; the caller owes a random walk."""
    context = AuditContext(run, {}, Transcript(), (), delta, colluders)
    found = AccountResult()
    reason = why_not_in_advance(run.plan)
    some = tuple(colluders)
    seen: list[tuple[Observer, int, str, Name | None]] = [] if run.n == 1 else [(Observer.NODE, 1, _NODE, None)]
    seen += [(role, 0, _RESULT, role) for role in (Observer.CURATOR, Observer.PUBLIC)]
    if 0 < len(some) < run.n:
        seen += [(one, len(some), _POOLED, some) for one in (Observer.COALITION, Observer.POOLED)]
    for observer, watchers, sees, name in seen:
        if reason is not None:
            found.refusals.append(Refusal(observer, Method.ITERATION, reason))
        elif watchers > 1 and run.plan.steps > LAW_STEPS_MAX:
            found.refusals.append(Refusal(observer, Method.ITERATION, _TOO_LONG))
        else:
            found.claims.append(_claim(context, observer, watchers, name, (sees, _UNIFORM, nobody_out)))
    if reason is not None and run.n > 1:
        hidden = (Observer.NODE, Observer.CURATOR, Observer.PUBLIC)
        found.refusals += [Refusal(observer, Method.HIDDEN_PATH, _NO_SECRET) for observer in hidden]
    walks = Walks(context, Visits(run, delta), nobody_out)
    found.claims.append(walks.network())
    if samples([run.plan.protection]):
        found.claims.append(walks.network(Relation.ZERO_OUT))
    return found


def why_not_in_advance(plan: SgdPlan) -> str | None:
    """Return the reason why nothing is claimed by iteration before the path is known, or None."""
    if plan.order != "complete":
        return "on graphs that are not complete amplification by iteration is worked out for a known path only"
    if plan.schedule != "constant":
        return "for rates that change amplification by iteration is worked out for a known path only"
    return why_not(plan)


def _claim(
    context: AuditContext, observer: Observer, watchers: int, name: Name | None, assumed: tuple[str, ...]
) -> Claim:
    """Return the claim about so many observers together; `name` is None for any single user."""
    run, rounding = context.run, foreseen(context.run)
    members = name if isinstance(name, tuple) else ()
    single = run.plan.tokens == 1  # which user 0 starts

    def told(*, starts: bool) -> float:
        return beside(lambda delta: _told(run, watchers, delta, starts=starts), context.delta, rounding.nu)

    others = [user for user in range(run.n) if user not in members]
    known = {starts: told(starts=starts) for starts in {single and user == 0 for user in others}}
    epsilons = [known[single and user == 0] for user in others]
    at = max(range(len(others)), key=epsilons.__getitem__)
    return claim_of(
        run.protected,
        observer,
        Method.ITERATION,
        Conditioning.A_PRIORI,
        context.delta,
        (others[at], (0 if others[at] else 1) if name is None else name),
        (*assumed, *terms(run), *rounding.assumptions, *context.assumptions),
        epsilon=(epsilons[at], epsilons[at] - sum(epsilons[at] - one for one in epsilons) / len(epsilons)),
    )


def _told(run: RunPlan, watchers: int, delta: float, *, starts: bool) -> float:
    """Return epsilon, the less of two bounds: by the law of exposures, and by Rényi divergences."""
    ratio, plan = ratio_of(run), run.plan
    steps = plan.steps - (plan.tokens == 1)
    found = math.inf
    if watchers <= 1:
        found = epsilon(ratio, Exposure(run.n, steps, starts=starts, watched=watchers > 0), plan.tokens, delta)
    if steps <= LAW_STEPS_MAX and ratio < math.inf and delta > 0.0:
        law = exposure_law(Walked(run.n, steps, starts, watchers, plan.tokens), delta)
        found = min(found, gaussian_epsilon(law, ratio, delta))
    return found
