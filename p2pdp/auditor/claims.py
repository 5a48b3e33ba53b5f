"""The one place where claims are made, and where the views that they are about are gathered.

What all claims have in common is filled in here: what they protect, and means that never exceed the largest value.

A broker, in a run that has one, passes on every frame. So it sees who sends to whom, when and how much, and opens none:
a claim about an observer of the network's wires, and a refusal, holds for it in the same words. What rests on a hidden
route is refused, unless cover hides the route from the wires too.

A spec whose `[data] standardize` holds means and deviations says at which epsilon and delta these were estimated from
the users' data. That was another mechanism on the same data, so by basic composition epsilons and deltas add up: the
run itself is accounted for at what is left of delta, and the claims are at all of it. They are no longer those of one
Gaussian, so they have no mu.

Skeletons that the curator can read tell every route, so claims about the curator that rest on hidden routes are
refused. Sealed ones tell their sizes only, which follow from public facts (`protocols/run_plan.py`); one that did not
fit and was lengthened tells how much its user passed on, and such claims are refused as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

import numpy as np

from p2pdp.auditor.context import NOT_AT_HAND, PASSED_THROUGH, AuditContext
from p2pdp.core.arrays import Floats
from p2pdp.core.claims import Claim, Conditioning, Name, Observer, Protected, Refusal
from p2pdp.core.errors import UsageError
from p2pdp.core.ids import CURATOR, Peer, is_user
from p2pdp.core.messages import SKELETON, SkeletonPiece
from p2pdp.core.spec import Spec
from p2pdp.crypto.sealed_skeleton import sealed_bytes
from p2pdp.ledger.records import OPENED, RECEIVED, public_message
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.gaussian_curve import epsilons_of
from p2pdp.protocols.run_plan import skeleton_size
from p2pdp.transports.registry import transport_kind

_NOT_ALL: Final = "not all views are at hand"

Spread = tuple[float, float | None]  # the largest value, and the mean where one is known
View = TypeVar("View")


def claim_of(
    protected: Protected,
    observer: Observer,
    method: str,
    conditioning: Conditioning,
    delta: float,
    worst: tuple[int, Name] | None,
    assumptions: Sequence[str],
    *,
    epsilon: Spread,
    mu: Spread | None = None,
    bound: bool = True,
    violated_pairs: int | None = None,
) -> Claim:
    """Return a claim about one such unit; `mu` where what is told is that of one Gaussian."""
    epsilon_max, epsilon_mean = epsilon
    mu_max, mu_mean = (None, None) if mu is None else mu
    return Claim(
        observer=observer,
        unit=protected.unit,
        relation=protected.relation,
        delta=delta,
        method=method,
        conditioning=conditioning,
        epsilon_max=epsilon_max,
        epsilon_mean=None if epsilon_mean is None else min(epsilon_max, epsilon_mean),
        mu_max=mu_max,
        mu_mean=None if mu_mean is None or mu_max is None else min(mu_max, mu_mean),
        worst_pair=worst,
        bound=bound,
        violated_pairs=violated_pairs,
        assumptions=tuple(assumptions),
    )


def gaussian_claim(
    protected: Protected,
    observer: Observer,
    method: str,
    delta: float,
    mu: Floats,
    names: Sequence[Name],
    assumptions: Sequence[str],
    *,
    at: float | None = None,
    bound: bool = True,
) -> Claim:
    """Return the claim from the mu of each user (row) for each observer (column), given the public route.

    Observers are named by `names`; NaN is no pair. Epsilon is that at the delta `at`, if it is not all of `delta`.
    """
    worst, pairs = worst_of(mu, names), ~np.isnan(mu)
    at = delta if at is None else at
    most = float(mu[pairs].max())
    # For many pairs epsilon is rounded up more coarsely than for the worst one alone.
    epsilon = gaussian.epsilon_of(at, most), float(np.mean(epsilons_of(at, mu[pairs])))
    spread = most, float(np.mean(mu[pairs]))
    return claim_of(
        protected,
        observer,
        method,
        Conditioning.PUBLIC,
        delta,
        worst,
        assumptions,
        epsilon=epsilon,
        mu=spread,
        bound=bound,
    )


def worst_of(values: Floats, names: Sequence[Name]) -> tuple[int, Name]:
    """Return the user (row) and the observer (column, by name) of the largest value; NaN is no pair."""
    user, column = np.unravel_index(int(np.argmax(np.where(np.isnan(values), -1.0, values))), values.shape)
    return int(user), names[int(column)]


def spread_of(values: Floats) -> Spread:
    """Return the largest value and the mean of all pairs; NaN is no pair."""
    pairs = values[~np.isnan(values)]
    return float(pairs.max()), float(np.mean(pairs))


def kind_of(name: Name) -> Observer:
    """Return the kind of an observer: users who pool their views are a coalition, one user is a node."""
    if isinstance(name, Observer):
        return name
    return Observer.COALITION if isinstance(name, tuple) else Observer.NODE


def members_of(name: Name) -> tuple[Peer, ...]:
    """Return the users about whom an observer cannot learn anything, since it is made of them."""
    if isinstance(name, Observer):
        return ()
    return name if isinstance(name, tuple) else (name,)


def views_of(
    context: AuditContext,
    method: str,
    users: Callable[[Sequence[Peer]], View | None],
    roles: Mapping[Observer, Callable[[], View | None]],
    pooled: Callable[[Sequence[Peer]], View | None] | None = None,
) -> tuple[dict[Observer, list[tuple[Name, View]]], list[Refusal]]:
    """Return what each user, the colluders and each of these roles saw, by observer; refuse where that is unknown.

    `users` and `roles` give None for what passed through users whose ledgers are not at hand. `pooled` gives what the
    curator and the colluders saw together, where that is worth a claim.
    """
    views: dict[Observer, list[tuple[Name, View]]] = {}
    refusals: list[Refusal] = []

    def add(observer: Observer, name: Name, view: View | None, reason: str) -> None:
        if view is None:
            refusals.append(Refusal(observer, method, reason, name if isinstance(name, int) else None))
        else:
            views.setdefault(observer, []).append((name, view))

    for user in range(context.run.n):
        at_hand = context.is_at_hand(user)
        reason = PASSED_THROUGH if at_hand else NOT_AT_HAND
        add(Observer.NODE, user, users([user]) if at_hand else None, f"user {user}: {reason}")
    members = list(context.colluders)
    absent = [user for user in members if not context.is_at_hand(user)]
    if members:
        reason = f"user {absent[0]}: {NOT_AT_HAND}" if absent else PASSED_THROUGH
        add(Observer.COALITION, tuple(members), None if absent else users(members), reason)
        if pooled is not None:
            missing = reason if absent else _missing(context, Observer.CURATOR)
            add(
                Observer.POOLED,
                Observer.POOLED,
                pooled(members) if missing is None else None,
                missing or PASSED_THROUGH,
            )
    for role, view_of in roles.items():
        missing = _missing(context, role)
        add(role, role, view_of() if missing is None else None, missing or PASSED_THROUGH)
    return views, refusals


def _missing(context: AuditContext, role: Observer) -> str | None:
    """Return why a role's view is not known; None where all that it saw is at hand."""
    if role == Observer.CURATOR and CURATOR in context.incomplete:
        return NOT_AT_HAND
    return _NOT_ALL if role == Observer.NETWORK and context.incomplete else None


def has_broker(spec: Spec) -> bool:
    """Return whether somebody carries every message of such a run."""
    return transport_kind(spec.run.transport).has_broker


def claims_with_broker(spec: Spec, claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims, each about the network followed by the one about the broker."""
    if not has_broker(spec):
        return list(claims)
    return [
        one for claim in claims for one in ((claim, _same(claim)) if claim.observer == Observer.NETWORK else (claim,))
    ]


def refusals_with_broker(spec: Spec, refusals: Sequence[Refusal]) -> list[Refusal]:
    if not has_broker(spec):
        return list(refusals)
    known = {refusal.method for refusal in refusals if refusal.observer == Observer.BROKER}
    return [
        one
        for refusal in refusals
        for one in (
            (refusal, replace(refusal, observer=Observer.BROKER))
            if refusal.observer == Observer.NETWORK and refusal.method not in known
            else (refusal,)
        )
    ]


def _same(claim: Claim) -> Claim:
    pair = claim.worst_pair
    return replace(claim, observer=Observer.BROKER, worst_pair=None if pair is None else (pair[0], Observer.BROKER))


class Cost(NamedTuple):
    epsilon: float
    delta: float


def cost_of(spec: Spec) -> Cost | None:
    """Return what standardizing cost; None where everything that data are standardized by is public."""
    estimates = spec.data.standardize
    return None if estimates is None or "epsilon" not in estimates else Cost(estimates["epsilon"], estimates["delta"])


def left_of(delta: float, cost: Cost | None) -> float:
    """Return the delta at which the run itself is accounted for."""
    if cost is None:
        return delta
    if cost.delta >= delta:
        raise UsageError(f"[data] standardize: its delta {cost.delta:g} leaves nothing of the {delta:g} of the claims")
    return delta - cost.delta


def added(claim: Claim, cost: Cost | None) -> Claim:
    if cost is None:
        return claim
    text = (
        f"the estimates by which columns are standardized cost epsilon {cost.epsilon:g} at delta {cost.delta:g}, "
        "which is added"
    )
    return replace(
        claim,
        delta=claim.delta + cost.delta,
        epsilon_max=None if claim.epsilon_max is None else claim.epsilon_max + cost.epsilon,
        epsilon_mean=None if claim.epsilon_mean is None else claim.epsilon_mean + cost.epsilon,
        mu_max=None,
        mu_mean=None,
        assumptions=(*claim.assumptions, text),
    )


READABLE: Final = "users handed in skeletons that the curator can read, and these tell every route: name an [audit] key"


def told_by_skeletons(context: AuditContext) -> str | None:
    """Return why the curator knows more than its claims assume; None where it does not."""
    sizes = _sizes(context)
    if sizes and context.run.spec.audit.key is None:
        return READABLE
    for user, size in sorted(sizes.items()):
        degree = _degree(context, user)
        if degree is None:
            return f"the ledger of user {user} is not at hand, so the size of its skeleton cannot be judged"
        if size != sealed_bytes(skeleton_size(context.run, degree)):
            return f"the size of the skeleton of user {user} tells how much it passed on"
    return None


def _sizes(context: AuditContext) -> dict[Peer, int]:
    """Return the lengths of the skeletons that the curator received, by user."""
    contents = context.views.get(CURATOR)
    lengths: dict[Peer, int] = {}
    for record in contents.records if contents is not None else ():
        if (
            record.kind == RECEIVED
            and is_user(record.body.sender)
            and (message := public_message(record)).type == SKELETON
        ):
            lengths[record.body.sender] = SkeletonPiece(*message.fields).length
    return lengths


def _degree(context: AuditContext, user: Peer) -> int | None:
    contents = context.views.get(user)
    if contents is None:
        return None
    opening = next(record for record in contents.records if record.kind == OPENED)
    return context.run.n - 1 if opening.body.neighbours is None else len(opening.body.neighbours)
