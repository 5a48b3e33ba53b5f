"""The one place where claims are made, and where the views that they are about are gathered.

What all claims have in common is filled in here: the unit, the relation, and means that never exceed the largest value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import numpy as np

from p2pdp.audit.ground import NOT_AT_HAND, PASSED_THROUGH, Ground
from p2pdp.core.arrays import Floats
from p2pdp.core.claims import Claim, Conditioning, Name, Observer, Refusal
from p2pdp.core.ids import CURATOR, Peer
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.gaussian_curve import epsilons_of

UNIT: Final = "user"
RELATION: Final = "replace"
_NOT_ALL: Final = "not all views are at hand"

Spread = tuple[float, float | None]  # the largest value, and the mean where one is known
View = TypeVar("View")


def claim_of(
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
    """Return a claim about the replacement of one user; `mu` where what is told is that of one Gaussian."""
    epsilon_max, epsilon_mean = epsilon
    mu_max, mu_mean = (None, None) if mu is None else mu
    return Claim(
        observer=observer,
        unit=UNIT,
        relation=RELATION,
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
    # Of many pairs epsilon is rounded up more coarsely than of the worst one alone.
    epsilon = gaussian.epsilon_of(at, most), float(np.mean(epsilons_of(at, mu[pairs])))
    spread = most, float(np.mean(mu[pairs]))
    return claim_of(
        observer, method, Conditioning.PUBLIC, delta, worst, assumptions, epsilon=epsilon, mu=spread, bound=bound
    )


def worst_of(values: Floats, names: Sequence[Name]) -> tuple[int, Name]:
    """The user (row) and the observer (column, by name) of the largest value; NaN is no pair."""
    user, column = np.unravel_index(int(np.argmax(np.where(np.isnan(values), -1.0, values))), values.shape)
    return int(user), names[int(column)]


def spread_of(values: Floats) -> Spread:
    """The largest value and the mean of all pairs; NaN is no pair."""
    pairs = values[~np.isnan(values)]
    return float(pairs.max()), float(np.mean(pairs))


def kind_of(name: Name) -> Observer:
    """Users who pool their views are a coalition, one user is a node."""
    if isinstance(name, Observer):
        return name
    return Observer.COALITION if isinstance(name, tuple) else Observer.NODE


def members_of(name: Name) -> tuple[Peer, ...]:
    """The users about whom an observer cannot learn anything, since it is made of them."""
    if isinstance(name, Observer):
        return ()
    return name if isinstance(name, tuple) else (name,)


def views_of(
    ground: Ground,
    method: str,
    users: Callable[[Sequence[Peer]], View | None],
    roles: Mapping[Observer, Callable[[], View | None]],
) -> tuple[dict[Observer, list[tuple[Name, View]]], list[Refusal]]:
    """What each user, the colluders and each of these roles saw, by observer; refusals where that is not known.

    `users` and `roles` give None for what passed through users whose ledgers are not at hand.
    """
    found: dict[Observer, list[tuple[Name, View]]] = {}
    refusals: list[Refusal] = []

    def add(observer: Observer, name: Name, view: View | None, reason: str) -> None:
        if view is None:
            refusals.append(Refusal(observer, method, reason))
        else:
            found.setdefault(observer, []).append((name, view))

    for user in range(ground.run.n):
        at_hand = ground.is_at_hand(user)
        reason = PASSED_THROUGH if at_hand else NOT_AT_HAND
        add(Observer.NODE, user, users([user]) if at_hand else None, f"user {user}: {reason}")
    members = list(ground.colluders)
    absent = [user for user in members if not ground.is_at_hand(user)]
    if members:
        reason = f"user {absent[0]}: {NOT_AT_HAND}" if absent else PASSED_THROUGH
        add(Observer.COALITION, tuple(members), None if absent else users(members), reason)
    for role, view_of in roles.items():
        missing = _missing(ground, role)
        add(role, role, view_of() if missing is None else None, missing or PASSED_THROUGH)
    return found, refusals


def _missing(ground: Ground, role: Observer) -> str | None:
    """Why a role's view is not known; None where all that it saw is at hand."""
    if role == Observer.CURATOR and CURATOR in ground.incomplete:
        return NOT_AT_HAND
    return _NOT_ALL if role == Observer.NETWORK and ground.incomplete else None
