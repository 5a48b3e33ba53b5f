"""Claims about learning by gossip, given all meetings: exact where gradients are affine, else of a model of the run.

A gradient depends on all that was sent before, in ways that no linear account covers; so the claim that holds for any
loss is composition over a user's gradients, each under its own noise (`auditor/local.py`), and that is the headline. If
gradients had been fixed in advance, an observer's view would be linear in them: the leak of that model is shown as
`model:non-adaptive`, which bounds nothing.

For the mean of vectors a gradient is the state minus the user's own mean. The state is what the observer accounts for
anyway, so the exact leak is that of the users' means as inputs that do not depend on anything sent, and a bound. It
needs gradients that are not clipped: the probability that one is must be negligible (`unclipped` in
`privacy/linear/descent.py`).

The formulas of [CEBM22] for learning are evaluated for the run that happened, for comparison. [CEBM22, Theorem 6] (of
graphs that stay) and [CEBM22, Theorem 11] (of graphs that change) add up, over blocks and messages, how much of a
user's weight is in each message of a block; colluders are one node, as in the paper's section G. Proposition 1 is for
random graphs of each round. None is a bound: messages share their noise, and the effect of a block on the states of
others is sent on in later blocks, which the proofs leave out. With one round a block nothing at all is printed for
users who are no neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from p2pdp.auditor.claims import claim_of, gaussian_claim, kind_of, spread_of, worst_of
from p2pdp.auditor.context import NOT_AT_HAND, PUBLIC_ROUTE, AccountResult, AuditContext, refused, unlike_plan
from p2pdp.core.arrays import Bools, Floats
from p2pdp.core.claims import Claim, Conditioning, Method, Name, Observer, Refusal
from p2pdp.core.ids import CURATOR
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.gaussian_curve import epsilon_of_each, epsilons_of
from p2pdp.privacy.linear.descent import Told, unclipped, worst
from p2pdp.privacy.linear.layers import Layer, Layers, View
from p2pdp.privacy.linear.published import theorem_1, theorem_4_alpha_most
from p2pdp.privacy.linear.view import ROUNDED_UP
from p2pdp.privacy.renyi import best_epsilon, renyi_epsilons
from p2pdp.protocols.gossip.analysis.descent_views import DescentViews
from p2pdp.protocols.gossip.analysis.rounding import Rounding, rounding_of
from p2pdp.protocols.gossip.analysis.views import graph_of
from p2pdp.protocols.gossip.sgd import GossipSgdPlan
from p2pdp.protocols.learning import apart_bound, norm_bound
from p2pdp.protocols.run_plan import RunPlan

MODEL: Final = "model:non-adaptive"
SAMPLED: Final = (
    "rows of minibatches are drawn in secret: steps over them are accounted for one by one, each under its own noise"
)
FIXED_BEFOREHAND: Final = (
    "no bound: gradients are taken to be fixed beforehand, while those of a real run depend on what was sent"
)
_AFFINE: Final = "gradients of the mean are the state minus the user's own mean, but for a chance of {:.0e} of clipping"
_RANKS: Final = "ranks of blocks are told by rounding (least pivot kept {:.1e}, largest dropped {:.1e})"
_FLOATS: Final = "sums of gossip and gradients are taken to be exact: floats, and the steps of the grid, are left out"
_GRADIENTS: Final = "gradients go to the nearest step of the grid, which is counted with the rounding of floats"
_SOME: Final = "{} of the {} users were looked at as observers"
_NOTHING: Final = "no value reaches it, for no result is published"
_WORK_MAX: Final = 3e10  # multiplications, some ten seconds
_ROUNDED: Final = 1.0 + 1e-9  # rows that were scaled to a length are no longer than this
_SHARE: Final = 0.01  # the share of delta for clipping
_APART: Final = 1e3  # least ratio of kept to dropped pivots for a rank to be trusted


@dataclass(frozen=True)
class Affine:
    """Affine gradients: `ratio` is how far a replaced user moves one, in noise deviations; `chance` is of clipping."""

    ratio: float
    chance: float


def gossip_descent_account(context: AuditContext) -> AccountResult:
    """Return claims about single observers; they follow the local ceiling, which is about all messages."""
    if not context.run.plan.learns or context.run.plan.noise.name not in ("gaussian", "none"):
        return AccountResult()
    reason = unlike_plan(context)
    return (
        _Account(context).result()
        if reason is None
        else refused((Observer.NODE, Observer.CURATOR, Observer.PUBLIC), Method.EXACT, reason)
    )


def affine_of(run: RunPlan, views: DescentViews, delta: float) -> Affine | str:
    """Return how gradients are affine, or the reason why they cannot be taken to be."""
    plan: GossipSgdPlan = run.plan
    if plan.descent.samples:
        return SAMPLED
    if run.spec.task.kind != "mean":
        return "gradients depend on what was sent in ways that no linear account covers: the local ceiling stands"
    if not views.regular or views.matrices is None:
        return "messages were late or lost, or results published, and how far states went is not worked out then"
    if plan.noise.name == "none":
        return "without noise of a user's own nothing limits what is told"
    reach = norm_bound(run.spec.data, plan.descent.dimension, intercept=False)
    apart = apart_bound(run.spec.data, plan.descent.dimension)
    if reach is None or apart is None:
        return "examples have no bound on their length: [data] unit_norm, standardize or clip gives one"
    course = views.course(1.0 + plan.descent.regularization)
    sigma = plan.noise.scale * plan.step
    chance = unclipped(course, reach, plan.descent.clip, sigma, plan.descent.dimension)
    moved = apart * _ROUNDED
    if plan.descent.records is not None:  # one row of a mean, in a sum of floats
        moved = (moved + plan.descent.clip * plan.descent.records.most**2 / 2.0**52) / plan.descent.records.least
    ratio = (moved + plan.step * math.sqrt(plan.descent.dimension)) / sigma
    most = gaussian.epsilon_of(delta * (1.0 - _SHARE), ratio * math.sqrt(plan.gradients))
    if most < math.inf and chance * (1.0 + math.exp(min(most, 700.0))) <= _SHARE * delta:
        return Affine(ratio, chance)
    return f"gradients may be clipped, with a chance of up to {chance:.2g}: [task] clip is near to examples and noise"


class _Account:
    """Gathers what observers learned, and turns it into claims."""

    def __init__(self, context: AuditContext) -> None:
        self._context = context
        self._run = context.run
        self._plan: GossipSgdPlan = context.run.plan
        self._views = DescentViews(context)
        affine: Affine | str = self._views.reason or affine_of(context.run, self._views, context.delta)
        self._affine = None if isinstance(affine, str) else affine
        self._why_not = affine if isinstance(affine, str) else ""
        self._rounding = Rounding(0.0, (_FLOATS,))
        if self._affine is not None:
            found = rounding_of(context, graph_of(context))
            self._rounding = Rounding(found.nu, (*found.assumptions, _GRADIENTS))
        self._decay = self._plan.descent.regularization + (self._affine is not None)
        self._ratio = math.inf
        if self._affine is not None:
            self._ratio = self._affine.ratio
        elif self._plan.noise.name != "none":
            self._ratio = context.sensitivity / self._plan.noise.scale
        self._most = self._ratio * math.sqrt(self._plan.gradients) * ROUNDED_UP  # mu of all gradients, each on its own
        self._found = AccountResult()

    def result(self) -> AccountResult:
        if self._plan.descent.samples:
            observers = (Observer.NODE, *((Observer.COALITION,) if self._context.colluders else ()))
            kind = MODEL if self._plan.pair_noise is not None else Method.EXACT  # there is a bound besides
            self._found.refusals += [Refusal(observer, kind, SAMPLED) for observer in observers]
            self._roles()
            return self._found
        if self._affine is None and self._plan.pair_noise is None:  # of which there is a bound besides
            observers = (Observer.NODE, *((Observer.COALITION,) if self._context.colluders else ()))
            self._found.refusals += [Refusal(observer, Method.EXACT, self._why_not) for observer in observers]
        if self._views.reason is not None:
            self._found.refusals.append(Refusal(Observer.NODE, MODEL, self._views.reason))
        else:
            self._nodes()
            self._coalition()
            self._roles()
        return self._found

    def _nodes(self) -> None:
        n, found = self._run.n, self._found
        observers = [user for user in range(n) if self._context.is_at_hand(user)]
        refused = sorted(set(range(n)) - set(observers))
        found.refusals += [Refusal(Observer.NODE, MODEL, f"user {user}: {NOT_AT_HAND}", user) for user in refused]
        afforded = int(_WORK_MAX / max(1.0, self._views.work))
        if n == 1 or not observers:
            return
        if not afforded:
            found.refusals.append(Refusal(Observer.NODE, MODEL, "to work out what one user was told takes too long"))
            return
        every = len(observers)
        if every > afforded:
            observers = [observers[int(at)] for at in np.unique(np.linspace(0, every - 1, afforded).astype(int))]

        def row(place: int) -> Floats:
            told = self._views.told([observers[place]], self._decay)
            return np.append(self._leak(told), (told.kept, told.dropped))

        rows = np.array(self._context.each(len(observers), row))
        pivots = rows[:, -2:].tolist()
        leak = np.full((n, n), np.nan)
        leak[:, observers] = rows[:, :-2].T
        np.fill_diagonal(leak, np.nan)
        some = () if len(observers) == every else (_SOME.format(len(observers), n),)
        exact = (
            self._affine is not None
            and not some
            and self._add(Observer.NODE, leak[:, observers], observers, pivots, ())
        )
        if exact:
            found.mu, found.leak = self._mu(leak), leak
            in_all = self._rounding.added_to(found.mu, self._most)
            found.epsilon = epsilons_of(self._context.delta * (1.0 - _SHARE), in_all)
        else:
            self._add(Observer.NODE, leak[:, observers], observers, pivots, some, model=True)
        self._publish(Seen(observers, leak[:, observers] if exact else None))

    def _coalition(self) -> None:
        members = list(self._context.colluders)
        absent = [user for user in members if not self._context.is_at_hand(user)]
        if absent:
            self._found.refusals.append(Refusal(Observer.COALITION, MODEL, f"user {absent[0]}: {NOT_AT_HAND}"))
        if absent or not members or self._views.work > _WORK_MAX:
            return
        told = self._views.told(members, self._decay)
        leak = self._leak(told)
        leak[members] = np.nan
        name: list[Name] = [tuple(members)]
        pivots = [(told.kept, told.dropped)]
        exact = self._affine is not None and self._add(Observer.COALITION, leak[:, None], name, pivots, ())
        if exact:
            self._found.leak_coalition, self._found.mu_coalition = leak, self._mu(leak)
            in_all = self._rounding.added_to(self._found.mu_coalition, self._most)
            self._found.epsilon_coalition = epsilon_of_each(self._context.delta * (1.0 - _SHARE), in_all)
        else:
            self._add(Observer.COALITION, leak[:, None], name, pivots, (), model=True)
        self._publish(Seen([tuple(members)], leak[:, None] if exact else None))

    def _publish(self, seen: Seen) -> None:
        if self._views.regular and self._plan.noise.name == "gaussian" and self._plan.pair_noise is None:
            assert self._views.matrices is not None
            claims, matrix = published_claims(self._context, self._views.matrices, seen)
            self._found.claims += claims
            if matrix is not None:
                self._found.published = matrix

    def _roles(self) -> None:
        """Add claims about curator and public, who learn nothing if nothing is published."""
        for name in (Observer.CURATOR, Observer.PUBLIC):
            if name == Observer.CURATOR and CURATOR in self._context.incomplete:
                self._found.refusals.append(Refusal(name, Method.EXACT, NOT_AT_HAND))
            elif not self._context.transcript.published and not self._context.transcript.seen_by_roles:
                zero = np.zeros((self._run.n, 1))
                self._found.claims.append(self._claim(name, zero, [name], Method.EXACT, (_NOTHING,), bound=True))
            elif self._plan.descent.samples:
                continue
            elif not self._views.regular and self._views.work <= _WORK_MAX:
                told = self._views.told([], self._decay)
                pivots = [(told.kept, told.dropped)]
                self._add(name, self._leak(told)[:, None], [name], pivots, (), model=True)

    def _leak(self, told: Told) -> Floats:
        """Return leaks in units of one gradient. Affine gradients over the same rows all move alike."""
        if self._affine is not None and self._plan.descent.batch is None:
            return np.asarray(np.maximum(0.0, told.grams.sum(axis=(1, 2))))
        return worst(told.grams)

    def _mu(self, leak: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            return np.where(leak <= 0.0, 0.0, self._ratio * np.sqrt(leak)) * ROUNDED_UP

    def _add(
        self,
        observer: Observer,
        leak: Floats,
        names: Sequence[Name],
        pivots: Sequence[Sequence[float]],
        stated: tuple[str, ...],
        *,
        model: bool = False,
    ) -> bool:
        """Add a claim; add a refusal and return False if an exact claim rests on a rank that rounding leaves open.

        `pivots` are, of each observer, the smallest that was kept and the largest that was dropped.
        """
        kept, dropped = min(one[0] for one in pivots), max(one[1] for one in pivots)
        if not model and dropped * _APART > kept:
            self._found.refusals.append(
                Refusal(observer, Method.EXACT, "rounding leaves open how much some user was told")
            )
            return False
        assumptions = (
            _RANKS.format(kept, dropped),
            *(self._rounding.assumptions if not model else (_FLOATS,)),
            *stated,
        )
        if model:
            assumptions = (FIXED_BEFOREHAND, *assumptions)
        elif self._affine is not None:
            assumptions = (_AFFINE.format(self._affine.chance), *assumptions)
        self._found.claims.append(
            self._claim(
                observer, leak, names, MODEL if model else Method.EXACT, (PUBLIC_ROUTE, *assumptions), bound=not model
            )
        )
        return True

    def _claim(
        self,
        observer: Observer,
        leak: Floats,
        names: Sequence[Name],
        method: str,
        stated: tuple[str, ...],
        *,
        bound: bool,
    ) -> Claim:
        mu, delta = self._mu(leak), self._context.delta
        if bound:
            mu = self._rounding.added_to(mu, self._most)
        at = delta * (1.0 - _SHARE) if bound and self._affine is not None else delta
        assumptions = (*stated, *self._context.shared(observer), *self._context.assumptions)
        protected = self._context.run.protected
        return gaussian_claim(protected, observer, method, delta, mu, names, assumptions, at=at, bound=bound)


_ROUNDING: Final = 1e-9
_SHARED: Final = "no bound: messages share their noise, and what earlier blocks left in states is not counted"
_MESSAGE_NOISE: Final = "the formula knows of no noise on messages and leaves it out"


@dataclass(frozen=True, slots=True)
class Seen:
    """Observers by name, and the exact leak of each user (row) for each, in gradients; None if unknown."""

    names: Sequence[int | tuple[int, ...]]
    exact: Floats | None


def published_claims(context: AuditContext, matrices: Sequence[Any], seen: Seen) -> tuple[list[Claim], Floats | None]:
    """Return claims, and the leak of each pair by the theorem, indexed like all matrices; None for colluders."""
    plan: GossipSgdPlan = context.run.plan
    groups = [name if isinstance(name, tuple) else (name,) for name in seen.names]
    leak = printed_leaks(plan, matrices, groups)
    for column, group in enumerate(groups):
        leak[list(group), column] = np.nan
    doubled = (context.sensitivity / plan.noise.scale) ** 2
    pairs = ~np.isnan(leak)
    epsilons = np.full(leak.shape, np.nan)
    epsilons[pairs] = renyi_epsilons(doubled * leak[pairs], context.delta)
    name = "theorem-6" if plan.coin is None else "theorem-11"
    claims = [_claim(context, seen, name, epsilons, None if seen.exact is None else seen.exact > leak + _ROUNDING)]
    if plan.coin is not None:
        claims.append(_claim(context, seen, "proposition-1", _proposition_1(context, matrices, groups), None))
    if any(len(group) > 1 for group in groups):
        return claims, None
    matrix = np.full((context.run.n, context.run.n), np.nan)
    matrix[:, [group[0] for group in groups]] = leak
    return claims, matrix


def printed_leaks(plan: GossipSgdPlan, matrices: Sequence[Any], groups: Sequence[Sequence[int]]) -> Floats:
    """Return Equations (8) and (12), for each user (row) and each group of users who pool (column)."""
    found = np.zeros((plan.n, len(groups)))
    nothing = np.zeros(0, dtype=np.int64)
    fixed = all(matrix is matrices[0] for matrix in matrices)
    for block in range(1 if fixed else plan.gradients):
        rounds = matrices[block * plan.block : (block + 1) * plan.block]
        layers = Layers(plan.n, [Layer(matrix, nothing) for matrix in rounds[:-1]])
        views = [View({number: _near(one, group) for number, one in enumerate(rounds)}) for group in groups]
        found += theorem_1(layers, views)
    return found * (plan.gradients if fixed else 1)


def _proposition_1(context: AuditContext, matrices: Sequence[Any], groups: Sequence[Sequence[int]]) -> Floats:
    """Return epsilon of each user (row): users met in a block leak all of its gradient, all others share the rest."""
    plan: GossipSgdPlan = context.run.plan
    mu = context.sensitivity / plan.noise.scale
    most = theorem_4_alpha_most(mu) - 1.0
    found = np.full((plan.n, len(groups)), np.nan)
    for column, group in enumerate(groups):
        total = np.zeros(plan.n)
        for block in range(plan.gradients):
            near = [_near(one, group) for one in matrices[block * plan.block : (block + 1) * plan.block]]
            met = np.zeros(plan.n, dtype=bool)
            met[[user for some in near for user in some]] = True
            others = plan.n - max(len(some) for some in near)
            total += np.where(met, 1.0, min(1.0, sum(len(some) for some in near) / max(1, others)))
        values, places = np.unique(total, return_inverse=True)
        each = [_renyi(2.0 * mu**2 * value, context.delta, most) for value in values.tolist()]
        found[:, column] = np.array(each)[places]
        found[list(group), column] = np.nan
    return found


def _renyi(doubled: float, delta: float, most: float) -> float:
    return best_epsilon(lambda excess: (1.0 + excess) * doubled / 2.0, delta, excess_most=most)


def _near(matrix: Any, group: Sequence[int]) -> list[int]:
    rows = matrix[list(group)].tocoo()
    found: list[int] = np.setdiff1d(rows.col[rows.data != 0.0], list(group)).tolist()
    return found


def _claim(context: AuditContext, seen: Seen, name: str, epsilons: Floats, violated: Bools | None) -> Claim:
    hidden = name == "proposition-1"  # it is about graphs that the observer does not know
    noised = () if context.run.plan.message_noise is None else (_MESSAGE_NOISE,)
    return claim_of(
        context.run.protected,
        kind_of(seen.names[0]),
        f"published:{name}",
        Conditioning.VIEW if hidden else Conditioning.PUBLIC,
        context.delta,
        worst_of(epsilons, seen.names),
        (*(() if hidden else (PUBLIC_ROUTE,)), _SHARED, *noised, *context.assumptions),
        epsilon=spread_of(epsilons),
        bound=False,
        violated_pairs=None if violated is None else int(violated.sum()),
    )
