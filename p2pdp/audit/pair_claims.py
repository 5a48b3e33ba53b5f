"""Claims from what each pair leaks as a Gaussian, given the realised route: the worst pair and the mean of all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from p2pdp.audit.claims import gaussian_claim, members_of, views_of
from p2pdp.audit.exact import Leaks
from p2pdp.audit.ground import PUBLIC_ROUTE, Finding, Ground
from p2pdp.core.arrays import Floats
from p2pdp.core.claims import Claim, Name, Observer
from p2pdp.core.ids import Peer
from p2pdp.privacy.gaussian_curve import epsilon_of_each, epsilons_of
from p2pdp.privacy.linear.view import ROUNDED_UP
from p2pdp.protocols.run_plan import RunPlan


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
    roles = {
        Observer.CURATOR: lambda: leaks_of.curator().values,
        Observer.PUBLIC: lambda: leaks_of.public().values,
        Observer.NETWORK: lambda: leaks_of.network().values,
    }
    told, refusals = views_of(ground, method, lambda members: leaks_of.nodes(members).values, roles)
    leaks = np.full((run.n, run.n), np.nan)
    observers: list[int] = []
    for (user,), values in ((members_of(name), values) for name, values in told.get(Observer.NODE, ())):
        leaks[:, user] = values
        observers.append(user)
    mu = claims.mu(leaks)
    made: list[Claim] = []
    if run.n > 1 and observers:
        made.append(claims.claim(Observer.NODE, mu[:, observers], observers))
    for observer in (Observer.COALITION, *roles):
        for name, values in told.get(observer, ()):
            made.append(claims.claim(observer, claims.mu(values)[:, None], [name]))
    coalition = next((values for _, values in told.get(Observer.COALITION, ())), None)
    coalition_mu = None if coalition is None else claims.mu(coalition)
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
        return self._sensitivity * np.sqrt(leaks) * ROUNDED_UP

    def epsilons(self, mu: Floats) -> Floats:
        return epsilons_of(self._delta, self._in_all(mu))

    def epsilon_of_each(self, mu: Floats) -> Floats:
        """Of each user, for one observer."""
        return epsilon_of_each(self._delta, self._in_all(mu[:, None])[:, 0])

    def _in_all(self, mu: Floats) -> Floats:
        """`mu` has a row per user."""
        most = self._ceilings[:, None] * ROUNDED_UP
        with np.errstate(invalid="ignore"):
            return np.where(mu > 0.0, np.maximum(mu, np.minimum(mu + self._rounding, most)), mu)

    def claim(self, observer: Observer, mu: Floats, names: Sequence[Name]) -> Claim:
        """`mu` has a column per observer, named by `names`; the claim adds what rounding may tell."""
        return gaussian_claim(observer, self._method, self._delta, self._in_all(mu), names, self._assumptions)


def _in_sigmas(run: RunPlan, leaks: Floats) -> Floats:
    """The leak in units of one contribution's own noise, as the papers state it: all or nothing without any."""
    unit = math.inf if run.plan.noise.name == "none" else run.plan.noise.scale**2
    with np.errstate(invalid="ignore"):
        return np.where(leaks == 0.0, 0.0, leaks * unit)
