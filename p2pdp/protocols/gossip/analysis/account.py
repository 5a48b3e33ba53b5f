"""Claims about gossip: exact leaks of all pairs and coalitions, and the paper's formulas for comparison.

The exact leak of a pair is a number between 0 and 1 in units of the leak of a user's own noised value; times the local
mu^2 it is that of one Gaussian, to which claims add the effect of rounding (`rounding.py`).

The formulas of [CEBM22] are evaluated for the run that happened, and are shown with the number of pairs whose leak
exceeds them (`violated_pairs`). Theorem 1 and Corollary 1 (for users who pool: Theorem 12 and Corollary 3) are printed
as bounds for each pair and are none, so these claims prove nothing; Theorem 4 does where its conditions hold
(`a_priori.py`). Epsilon is the best conversion of their Rényi divergences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from p2pdp.auditor.claims import claim_of, gaussian_claim, kind_of, members_of, spread_of, views_of, worst_of
from p2pdp.auditor.context import PASSED_THROUGH, PUBLIC_ROUTE, AccountResult, AuditContext, unlike_plan
from p2pdp.auditor.pairs import Gathering, blocks_of
from p2pdp.core.arrays import Floats
from p2pdp.core.claims import Claim, Conditioning, Method, Name, Observer, Refusal
from p2pdp.privacy.gaussian_curve import epsilon_of_each, epsilons_of
from p2pdp.privacy.linear.layers import View
from p2pdp.privacy.linear.published import corollary_1, theorem_1
from p2pdp.privacy.linear.view import ROUNDED_UP
from p2pdp.privacy.renyi import renyi_epsilons
from p2pdp.protocols.gossip.analysis.rounding import rounding_of
from p2pdp.protocols.gossip.analysis.views import GossipViews, Spans, masks_hold, together

_SLACK_TOLD: Final = 1e-9
_ALL_PUBLISHED: Final = "these results tell every user's noised value, so everybody learns all that local noise allows"
_ALL_SEEN: Final = "whoever sees all messages sees each user's noised value: the local ceiling stands"
_NOT_HELD: Final = "formulas are compared with pairs that are held: of so many users they are if --pairs asks for them"
_NO_NOISE: Final = "without noise of a user's own whatever reaches an observer is taken to be told"


def gossip_account(context: AuditContext) -> AccountResult:
    if context.run.plan.learns:  # which has an account of its own
        return AccountResult()
    run, who = context.run, (Observer.NODE, Observer.CURATOR, Observer.PUBLIC, Observer.NETWORK)
    if run.plan.noise.name not in ("gaussian", "none"):
        reason = f"{run.plan.noise.name} noise has no exact Gaussian leak"
        return AccountResult(refusals=[Refusal(one, Method.EXACT, reason) for one in who])
    if context.transcript.published is None:
        return AccountResult(refusals=[Refusal(one, Method.EXACT, PASSED_THROUGH) for one in who])
    if unlike_plan(context) is not None or not masks_hold(context):
        return AccountResult()  # the linear account applies
    return _Account(context).result()


class _Account:
    """Gathers the available views, and turns their spans into claims."""

    def __init__(self, context: AuditContext) -> None:
        self._context = context
        self._run = context.run
        self._views = GossipViews(context)
        self._claims: list[Claim] = []
        noise = self._run.plan.noise
        self._mu_local = math.inf if noise.name == "none" else context.sensitivity / noise.scale
        self._rounding = rounding_of(context, self._views.graph)
        self._paired = bool(context.transcript.pairs)

    def result(self) -> AccountResult:
        n = self._run.n
        roles = {Observer.CURATOR: self._views.curator, Observer.PUBLIC: self._views.public}
        if self._paired:
            roles[Observer.NETWORK] = self._views.network
        seen, refusals = views_of(self._context, Method.EXACT, self._views.view, roles)
        all_seen = [] if self._paired else [Refusal(Observer.NETWORK, Method.EXACT, _ALL_SEEN)]
        found = AccountResult(self._claims, [*all_seen, *refusals])
        columns = [user for user, _ in seen.get(Observer.NODE, ()) if isinstance(user, int)]
        (self._in_blocks if self._context.in_blocks else self._held)(
            found, columns if n > 1 else (), [view for _, view in seen.get(Observer.NODE, ())]
        )
        for name, view in seen.get(Observer.COALITION, ()):
            self._coalition(found, members_of(name), view)
        for role in roles:
            for name, view in seen.get(role, ()):
                spans = self._views.spans([view])
                self._add(role, self._mu(spans.spans[0].leaks)[:, None], [name], self._assumptions(spans))
        return found

    def _held(self, found: AccountResult, columns: Sequence[int], views: Sequence[View]) -> None:
        """Add the claims about single users as observers, and all pairs."""
        leak = np.full((self._run.n, self._run.n), np.nan)
        found.mu = found.leak = leak
        if not columns:
            return
        spans = self._views.spans(views)
        for user, span in zip(columns, spans.spans, strict=True):
            leak[:, user] = span.leaks
            leak[user, user] = np.nan
        found.mu = mu = self._mu(leak)
        self._add(Observer.NODE, mu[:, columns], columns, self._assumptions(spans))
        found.epsilon = epsilons_of(self._context.delta, self._with_rounding(mu))
        if not self._paired:
            printed = Printed(columns, leak[:, columns], views)
            claims, found.published = printed_claims(self._context, self._views, printed, self._mu_local)
            self._claims += claims

    def _in_blocks(self, found: AccountResult, columns: Sequence[int], views: Sequence[View]) -> None:
        """Add the claim about them without holding pairs, with which formulas of papers would be compared."""
        if not columns:
            return
        gathering, spans = Gathering(self._run.n, self._context.delta), []
        for block in blocks_of(len(columns), self._run.n):
            told = self._views.spans(views[block])
            leak = np.stack([span.leaks for span in told.spans], axis=1)
            leak[columns[block], np.arange(leak.shape[1])] = np.nan
            mu = self._mu(leak)
            gathering.add(columns[block], mu, self._with_rounding(mu))
            spans.append(told.without_leaks)
        stated = self._stated(Observer.NODE, self._assumptions(together(spans)))
        self._claims.append(gathering.claim(self._run.protected, Method.EXACT, stated))
        found.totals = gathering.totals()
        if not self._paired and self._mu_local < math.inf:
            printed = ["theorem-1", "corollary-1"] if self._views.regular else ["theorem-1"]
            found.refusals += [Refusal(Observer.NODE, f"published:{name}", _NOT_HELD) for name in printed]

    def _coalition(self, found: AccountResult, members: Sequence[int], view: View) -> None:
        spans = self._views.spans([view])
        leak = np.array(spans.spans[0].leaks)
        leak[list(members)] = np.nan
        found.leak_coalition, found.mu_coalition = leak, self._mu(leak)
        found.epsilon_coalition = epsilon_of_each(self._context.delta, self._with_rounding(found.mu_coalition))
        self._add(Observer.COALITION, found.mu_coalition[:, None], [tuple(members)], self._assumptions(spans))
        if self._paired:  # of which the formulas know nothing
            return
        printed = Printed([tuple(members)], leak[:, None], [view])
        self._claims += printed_claims(self._context, self._views, printed, self._mu_local)[0]

    def _mu(self, leak: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            return np.where(leak == 0.0, 0.0, self._mu_local * np.sqrt(leak)) * ROUNDED_UP

    def _with_rounding(self, mu: Floats) -> Floats:
        """Return mu with the effect of rounding, which `leak` and `mu` of pairs leave out."""
        return self._rounding.added_to(mu, self._mu_local * ROUNDED_UP)

    def _assumptions(self, spans: Spans) -> tuple[str, ...]:
        """Return the assumptions of these numbers, besides those of all claims of the run."""
        assumptions = [*self._rounding.assumptions]
        if self._mu_local == math.inf:
            assumptions.append(_NO_NOISE)
        published = len(self._context.transcript.published or ())
        if published:
            assumptions.append(f"the results that {published} users published are in every view")
        if self._views.all_is_published:
            assumptions.append(_ALL_PUBLISHED)
        elif spans.deflated:
            assumptions.append(
                f"ranks are proved for {spans.proved} views; for {spans.deflated} of less than full rank they are "
                f"probabilistic: three primes agree (least pivot kept {spans.kept:.1e}, "
                f"largest dropped {spans.dropped:.1e})"
            )
        else:
            assumptions.append(f"ranks are proved for all {spans.proved} views (least pivot {spans.kept:.1e})")
        if spans.slack > _SLACK_TOLD:
            assumptions.append(f"leaks are raised by up to {spans.slack:.1e} for what rounding may have hidden")
        if spans.raised:
            assumptions.append(f"in {spans.raised} views rounding hides what was told: all is taken to be")
        return tuple(assumptions)

    def _add(self, observer: Observer, mu: Floats, names: Sequence[Name], stated: tuple[str, ...]) -> None:
        """Add a claim; `mu` has a column per observer, named by `names`."""
        self._claims.append(
            gaussian_claim(
                self._context.run.protected,
                observer,
                Method.EXACT,
                self._context.delta,
                self._with_rounding(mu),
                names,
                self._stated(observer, stated),
            )
        )

    def _stated(self, observer: Observer, stated: tuple[str, ...]) -> tuple[str, ...]:
        return (PUBLIC_ROUTE, *stated, *self._context.shared(observer), *self._context.assumptions)


_ROUNDING: Final = 1e-9
_MESSAGE_NOISE: Final = "the formula knows of no noise on messages and leaves it out"
_SUM: Final = "added up over all users the formula is a bound, which the mean over pairs respects: {:.4g} of local"


@dataclass(frozen=True, slots=True)
class Printed:
    """Observers by name, the exact leak of each user (row) for each of them, and what they saw."""

    names: Sequence[int | tuple[int, ...]]
    exact: Floats
    views: Sequence[View]


def printed_claims(
    context: AuditContext, views: GossipViews, of: Printed, mu_local: float
) -> tuple[list[Claim], Floats | None]:
    """Return claims, and the leak of each pair by Theorem 1, indexed like all matrices; nothing without noise."""
    if mu_local == math.inf:
        return [], None
    pooled = isinstance(of.names[0], tuple)
    formulas = {"theorem-12" if pooled else "theorem-1": theorem_1(views.layers, of.views)}
    if views.regular:
        groups = [name if isinstance(name, tuple) else (name,) for name in of.names]
        rounds = context.run.plan.rounds
        formulas["corollary-3" if pooled else "corollary-1"] = corollary_1(views.weights, groups, rounds)
    claims = [_claim(context, views, of, name, leak, mu_local) for name, leak in formulas.items()]
    matrix = np.full((context.run.n, context.run.n), np.nan)
    for name, column in zip(of.names, next(iter(formulas.values())).T, strict=True):
        if isinstance(name, int):
            matrix[:, name] = column
            matrix[name, name] = np.nan
    return claims, None if pooled else matrix


def _claim(context: AuditContext, views: GossipViews, of: Printed, name: str, leak: Floats, mu_local: float) -> Claim:
    pairs = ~np.isnan(of.exact)
    printed = np.where(pairs, leak, np.nan)
    epsilons = renyi_epsilons(mu_local**2 * printed[pairs], context.delta)
    stated = [PUBLIC_ROUTE, _SUM.format(float(np.mean(printed[pairs])))]
    if views.layers.noises:
        stated.append(_MESSAGE_NOISE)
    return claim_of(
        context.run.protected,
        kind_of(of.names[0]),
        f"published:{name}",
        Conditioning.PUBLIC,
        context.delta,
        worst_of(printed, of.names),
        (*stated, *context.assumptions),
        epsilon=spread_of(epsilons),
        bound=False,
        violated_pairs=int(np.sum(of.exact[pairs] > printed[pairs] * (1.0 + _ROUNDING) + _ROUNDING)),
    )
