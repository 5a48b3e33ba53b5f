"""Claims from what each pair leaks as a Gaussian, given the realised route: the worst pair and the mean of all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from p2pdp.accounting.gaussian_curve import epsilon_of_each, epsilons_of
from p2pdp.audit.exact import Leaks
from p2pdp.audit.ground import NOT_AT_HAND, PASSED_THROUGH, PUBLIC_ROUTE, Finding, Floats, Ground
from p2pdp.core.claims import Claim, Conditioning, Name, Observer, Refusal
from p2pdp.core.ids import CURATOR, Peer
from p2pdp.mechanisms import gaussian
from p2pdp.protocols.run_plan import RunPlan

_ROUNDED_UP: Final = 1.0 + 1e-12  # more than the sums behind a leak can be off


class PairLeaks(Protocol):
    """mu^2 / sensitivity^2 of each user, for any observer."""

    def nodes(self, members: Sequence[Peer]) -> Leaks: ...

    def curator(self) -> Leaks: ...

    def public(self) -> Leaks: ...

    def network(self) -> Leaks: ...


def account_of_pairs(
    ground: Ground,
    leaks_of: PairLeaks,
    method: str,
    *assumptions: str,
    rounding: float = 0.0,
    ceilings: Floats | None = None,
) -> Finding:
    """Every pair, a coalition, curator, public and network.

    Claims add to mu what `rounding` of floats may tell, up to the ceiling of each user where these are known.
    """
    run = ground.run
    claims = PairClaims(ground, method, PUBLIC_ROUTE, *assumptions, rounding=rounding, ceilings=ceilings)
    refusals: list[Refusal] = []
    leaks = np.full((run.n, run.n), np.nan)
    observers: list[int] = []
    for user in range(run.n):
        found = leaks_of.nodes([user]).values if ground.is_at_hand(user) else None
        if found is None:
            reason = PASSED_THROUGH if ground.is_at_hand(user) else NOT_AT_HAND
            refusals.append(Refusal(Observer.NODE, method, f"user {user}: {reason}"))
        else:
            leaks[:, user] = found
            observers.append(user)
    mu = claims.mu(leaks)
    made: list[Claim] = []
    if run.n > 1 and observers:
        made.append(claims.claim(Observer.NODE, mu[:, observers], observers))
    coalition = _coalition(ground, leaks_of, method, refusals)
    coalition_mu = None if coalition is None else claims.mu(coalition)
    if coalition_mu is not None:
        made.append(claims.claim(Observer.COALITION, coalition_mu[:, None], [tuple(ground.colluders)]))
    roles: list[tuple[Observer, Leaks | None]] = [
        (Observer.CURATOR, None if CURATOR in ground.incomplete else leaks_of.curator()),
        (Observer.PUBLIC, leaks_of.public()),
        (Observer.NETWORK, None if ground.incomplete else leaks_of.network()),
    ]
    for name, role in roles:
        if role is None:
            reason = NOT_AT_HAND if name == Observer.CURATOR else "not all views are at hand"
            refusals.append(Refusal(name, method, reason))
        elif role.values is None:
            refusals.append(Refusal(name, method, PASSED_THROUGH))
        else:
            made.append(claims.claim(name, claims.mu(role.values)[:, None], [name]))
    scaled, scaled_coalition = _in_sigmas(run, leaks), None if coalition is None else _in_sigmas(run, coalition)
    finding = Finding(made, refusals, mu, scaled, claims.epsilons(mu), coalition_mu, scaled_coalition)
    if coalition_mu is not None:
        finding.epsilon_coalition = claims.epsilon_of_each(coalition_mu)
    return finding


class PairClaims:
    """Turns leaks into claims by one method, at one delta."""

    def __init__(
        self, ground: Ground, method: str, *assumptions: str, rounding: float = 0.0, ceilings: Floats | None = None
    ) -> None:
        self._rounding = rounding
        self._ceilings = np.full(ground.run.n, math.inf) if ceilings is None else ceilings
        self._method = method
        self._delta = ground.delta
        self._sensitivity = ground.sensitivity
        self._assumptions = (*assumptions, *ground.assumptions)

    def mu(self, leaks: Floats) -> Floats:
        return self._sensitivity * np.sqrt(leaks) * _ROUNDED_UP

    def epsilons(self, mu: Floats) -> Floats:
        return epsilons_of(self._delta, self._in_all(mu))

    def epsilon_of_each(self, mu: Floats) -> Floats:
        """Of each user, for one observer."""
        return epsilon_of_each(self._delta, self._in_all(mu[:, None])[:, 0])

    def _in_all(self, mu: Floats) -> Floats:
        """`mu` has a row per user."""
        most = self._ceilings[:, None] * _ROUNDED_UP
        with np.errstate(invalid="ignore"):
            return np.where(mu > 0.0, np.maximum(mu, np.minimum(mu + self._rounding, most)), mu)

    def claim(self, observer: Observer, mu: Floats, names: Sequence[Name]) -> Claim:
        """`mu` has a column per observer, named by `names`; the claim adds what rounding may tell."""
        mu = self._in_all(mu)
        pairs = ~np.isnan(mu)
        worst = np.unravel_index(int(np.argmax(np.where(pairs, mu, -1.0))), mu.shape)
        mu_max = float(mu[worst])
        epsilon_max = gaussian.epsilon_of(self._delta, mu_max)
        return Claim(
            observer=observer,
            unit="user",
            relation="replace",
            delta=self._delta,
            method=self._method,
            conditioning=Conditioning.PUBLIC,
            epsilon_max=epsilon_max,
            # Of many pairs epsilon is rounded up more coarsely than of the worst one alone.
            epsilon_mean=min(epsilon_max, float(np.mean(epsilons_of(self._delta, mu)[pairs]))),
            mu_max=mu_max,
            mu_mean=min(mu_max, float(np.mean(mu[pairs]))),
            worst_pair=(int(worst[0]), names[int(worst[1])]),
            bound=True,
            violated_pairs=None,
            assumptions=self._assumptions,
        )


def _in_sigmas(run: RunPlan, leaks: Floats) -> Floats:
    """The leak in units of one contribution's own noise, as the papers state it: all or nothing without any."""
    unit = math.inf if run.plan.noise.name == "none" else run.plan.noise.scale**2
    with np.errstate(invalid="ignore"):
        return np.where(leaks == 0.0, 0.0, leaks * unit)


def _coalition(ground: Ground, leaks_of: PairLeaks, method: str, refusals: list[Refusal]) -> Floats | None:
    if not ground.colluders:
        return None
    absent = [user for user in ground.colluders if not ground.is_at_hand(user)]
    if absent:
        refusals.append(Refusal(Observer.COALITION, method, f"user {absent[0]}: {NOT_AT_HAND}"))
        return None
    found = leaks_of.nodes(list(ground.colluders)).values
    if found is None:
        refusals.append(Refusal(Observer.COALITION, method, PASSED_THROUGH))
    return found
