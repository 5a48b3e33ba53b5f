"""The headline of a run: one bound for all observers who need not be trusted, and beside it the worst bound of all.

Other users (who only have to follow the protocol), the curator (who gets nothing but what the spec publishes) and the
public (who reads what was published) need not be trusted. The headline is the worst of their bounds. Colluding users,
an observer of all decrypted messages and a broker see more: `worst` is the worst bound of all observers.

An observer's bound is its smallest valid one, among claims about it and about an observer of all contents, which sees
no less. Claims of different conditioning are never minimized across. One conditioning is chosen for each observer: what
its own view tells, where there is a claim about it of that kind, else the a-priori one, else the public route. A claim
that was refused for some users, because of what they know, is no claim about any user, and counts only where nothing
else is there. Where ledgers are missing, claims are about those at hand, which `verified` says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from p2pdp.auditor.a_priori import claims_a_priori, covers
from p2pdp.auditor.context import NOT_AT_HAND, PASSED_THROUGH
from p2pdp.core.claims import NOT_TRUSTED, Claim, Conditioning, Observer, Refusal
from p2pdp.core.ids import Peer
from p2pdp.protocols.run_plan import RunPlan

SEES_MORE: Final = (Observer.COALITION, Observer.POOLED, Observer.NETWORK, Observer.BROKER)
_KINDS: Final = (Conditioning.VIEW, Conditioning.A_PRIORI, Conditioning.PUBLIC)
_MODERATE, _WEAK = 1.0, 5.0
DELTA_MAX: Final = 1e-3


def reading_of(epsilon: float, delta: float) -> str:
    """Describe an epsilon in one word. With a larger delta it says little: with that chance anything may be told."""
    if epsilon == math.inf or delta > DELTA_MAX:
        return "none"
    return "strong" if epsilon < _MODERATE else "moderate" if epsilon <= _WEAK else "weak"


@dataclass(frozen=True, slots=True)
class Bound:
    """The best bound of one observer. Epsilon is infinite where there is no claim.

    `claims` are those of the chosen conditioning; the first gives epsilon.
    """

    observer: Observer
    delta: float
    claims: tuple[Claim, ...]
    left_out: tuple[Peer, ...] = ()  # users who are not covered as observers: their views are not known

    @property
    def claim(self) -> Claim | None:
        return self.claims[0] if self.claims else None

    @property
    def epsilon(self) -> float:
        return _epsilon(self.claims[0]) if self.claims else math.inf

    @property
    def method(self) -> str | None:
        return self.claims[0].method if self.claims else None

    @property
    def conditioning(self) -> str | None:
        return self.claims[0].conditioning if self.claims else None

    @property
    def reading(self) -> str:
        return reading_of(self.epsilon, self.delta)


class Verdict(NamedTuple):
    """The headline, which is about the observers who need not be trusted, and the worst bound of all observers."""

    headline: Bound
    worst: Bound


def bounds_of(claims: Sequence[Claim], refusals: Sequence[Refusal], nodes: int, delta: float) -> list[Bound]:
    """Return the best bound of each observer, untrusted ones first; others where there is a claim or refusal."""
    named = {one.observer for one in claims} | {one.observer for one in refusals}
    own = [one for one in NOT_TRUSTED if nodes > 1 or one != Observer.NODE]
    more = [one for one in SEES_MORE if one in named]
    return [_bound(one, claims, refusals, delta) for one in (*own, *more)]


def verdict_of(claims: Sequence[Claim], refusals: Sequence[Refusal], nodes: int, delta: float) -> Verdict:
    """Return headline and worst bound. Of equally bad ones the worst is that of the observer who sees most."""
    bounds = bounds_of(claims, refusals, nodes, delta)
    first = [one for one in bounds if one.observer in NOT_TRUSTED]
    rest = [one for one in bounds if one.observer not in NOT_TRUSTED]
    rest.sort(key=lambda one: one.observer != Observer.NETWORK)
    headline = max(first, key=lambda one: one.epsilon)
    worst = max((*rest, *first), key=lambda one: one.epsilon)
    left_out = tuple(sorted({user for one in first for user in one.left_out}))
    of_all = replace(headline, left_out=left_out)
    return Verdict(of_all, of_all if worst is headline else worst)


def verdict_in_advance(run: RunPlan, delta: float, colluders: Sequence[Peer] = (), *, one_value: bool) -> Verdict:
    """Return what holds before a run, and may be told participants after it: it depends on no route that was taken."""
    account = claims_a_priori(run, delta, colluders, one_value=one_value)
    return verdict_of(account.claims, account.refusals, run.n, delta)


def _bound(observer: Observer, claims: Sequence[Claim], refusals: Sequence[Refusal], delta: float) -> Bound:
    fitting = [one for one in claims if covers(one, observer) and one.epsilon_max is not None]
    whole = [one for one in fitting if not any(_is_about_some(one, refusal) for refusal in refusals)]
    fitting = whole or fitting
    kinds = {one.conditioning for one in fitting if one.observer == observer} or {one.conditioning for one in fitting}
    kind = next((one for one in _KINDS if one in kinds), None)
    chosen = sorted((one for one in fitting if one.conditioning == kind), key=_epsilon)
    about = {(one.observer, one.method) for one in chosen[:1]}
    left_out = {one.user for one in refusals if one.user is not None and (one.observer, one.method) in about}
    return Bound(observer, chosen[0].delta if chosen else delta, tuple(chosen), tuple(sorted(left_out)))


def _is_about_some(claim: Claim, refusal: Refusal) -> bool:
    """Return whether the claim leaves out observers of its kind who know too much for it."""
    if (claim.observer, claim.method) != (refusal.observer, refusal.method):
        return False
    return refusal.user is None and not refusal.reason.endswith((NOT_AT_HAND, PASSED_THROUGH))


def _epsilon(claim: Claim) -> float:
    assert claim.epsilon_max is not None
    return claim.epsilon_max
