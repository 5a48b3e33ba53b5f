"""Claims about a run that has not taken place yet, conditioning `a-priori`: averaged over all that chance decides.

Guarantee: each claim with `bound` holds for a run of this plan, with exactly these users, in which nobody is excluded.
A protocol's own `Analysis.a_priori` makes the claims that are particular to it.

The caller owes a plan with its graph, and says whether every user has one value only.

`enforced_limit` and `spent_in` hold for one user whatever other peers do: they cover all that its own node contributes,
each value under its own noise. On a random walk that is as many contributions as the node makes at most
(`walk/walking.py`), elsewhere as many as the plan says. The behaviour of others only post-processes these, so lateness,
exclusions and peers that break the protocol are covered; claims by a hidden path, by iteration or by shuffling are not.

`Tradeoff` states what one amount of noise on messages would buy, and `recommended` chooses one of several.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from p2pdp.auditor.claims import added, claims_with_broker, cost_of, left_of, refusals_with_broker
from p2pdp.auditor.context import NO_KEYS, AccountResult, AuditContext
from p2pdp.core.claims import Claim, Conditioning, Method, Observer, Relation
from p2pdp.core.errors import UsageError
from p2pdp.core.ids import Peer
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.contributions import Noise, Recorded
from p2pdp.replay.transcript import Transcript

NO_SKELETON: Final = "no user hands in a skeleton that the curator can read ([audit] key seals them)"


def claims_a_priori(run: RunPlan, delta: float, colluders: Sequence[Peer], *, one_value: bool) -> AccountResult:
    """Return claims and refusals by observer, those about one other node first."""
    if not 0.0 < delta < 1.0:
        raise UsageError("delta must be between 0 and 1")
    cost = cost_of(run.spec)
    delta = left_of(delta, cost)
    analysis = run.protocol.analysis()
    result = analysis.a_priori(run, delta, colluders, one_value=one_value)
    result.claims = claims_with_broker(run.spec, [added(claim, cost) for claim in result.claims])
    if run.spec.audit.key is None:
        result.claims = [_unread(claim) for claim in result.claims]
    result.refusals = refusals_with_broker(run.spec, result.refusals)
    first, order = analysis.headline_observer, list(Observer)
    result.claims.sort(key=lambda claim: (claim.observer != first, order.index(claim.observer)))
    return result


def _unread(claim: Claim) -> Claim:
    """Add the assumption that no skeleton tells the curator routes to a claim that rests on these."""
    if claim.observer != Observer.CURATOR or claim.method not in (Method.HIDDEN_PATH, Method.SHUFFLE):
        return claim
    return replace(claim, assumptions=(*claim.assumptions, NO_SKELETON))


def epsilon_against(observers: Sequence[Observer], run: RunPlan, delta: float, *, one_value: bool) -> float:
    """Return the largest of the best bounds of these observers; those that the spec names collude with the curator."""
    colluders = run.spec.privacy.colluders if Observer.POOLED in observers else ()
    claims = claims_a_priori(run, delta, colluders, one_value=one_value).claims
    most = delta * (1.0 + 1e-12)  # parts of delta that were taken off and put on again
    sound = [one for one in claims if one.delta <= most and one.epsilon_max is not None]
    return max(
        min((one.epsilon_max or 0.0 for one in sound if covers(one, observer)), default=math.inf)
        for observer in observers
    )


def covers(claim: Claim, observer: Observer) -> bool:
    """Return whether a claim bounds what this observer learns: it is about it, or about an observer of all contents.

    Whoever watches wires under cover sees no contents, and a claim about that covers nobody. Whoever holds no key
    knows nothing of what two users draw together, which both of them do: a claim about that covers nobody else.
    """
    if claim.relation != Relation.REPLACE:  # which is about less than what others are about
        return False
    if claim.observer == observer or not claim.bound:
        return claim.bound and not _is_of_wires(claim)
    return claim.observer == Observer.NETWORK and not _is_of_wires(claim) and NO_KEYS not in claim.assumptions


def _is_of_wires(claim: Claim) -> bool:
    return claim.observer == Observer.NETWORK and claim.method == Method.SHUFFLE


def enforced_limit(run: RunPlan, delta: float) -> Claim | None:
    """Return the claim about an observer of all messages of a walk; None where the plan fixes all contributions."""
    plan = run.plan
    if plan.enforced_max is None:
        return None
    claim = spent_in(run, 0, [plan.protection] * plan.enforced_max, delta)
    assert claim is not None
    limit = f"the user's own node adds its value at most {plan.enforced_max} times, whatever it is sent"
    return replace(claim, conditioning=Conditioning.A_PRIORI, assumptions=(limit, *claim.assumptions))


def spent_in(run: RunPlan, user: Peer, made: Sequence[Recorded], delta: float) -> Claim | None:
    """Return the claim about an observer of all messages, from the recorded draws of each of a user's contributions.

    None where the records do not agree with a plan that has to be relied on.
    """
    cost = cost_of(run.spec)
    own = {other: Noise() for other in range(run.n)} | {user: Noise(list(made))}
    context = AuditContext(run, {}, Transcript(find_noise=lambda: own), (), left_of(delta, cost), ())
    claim = next(iter(run.protocol.analysis().ceiling(context).claims), None)
    if claim is None or made:
        return None if claim is None else added(claim, cost)
    return replace(claim, delta=delta, epsilon_max=0.0, epsilon_mean=0.0, mu_max=None, mu_mean=None)


NEXT_TO_NOTHING: Final = 0.01
"""By how much of itself a standard error may rise for noise that is recommended."""


@dataclass(frozen=True)
class Tradeoff:
    """The effects of one amount of noise on messages; leaks in units of what a user's own noised value tells."""

    ratio: float
    message_sigma: float
    leak_max: float
    leak_far_max: float | None  # among users who are no neighbours; None if there are none
    leak_mean: float
    epsilon_max: float
    epsilon_mean: float  # for a pair whose leak is the mean
    standard_error: float


def recommended(tradeoff: Sequence[Tradeoff]) -> Tradeoff | None:
    """Return the most noise whose standard error is next to that without; None where none costs so little."""
    without = tradeoff[0].standard_error
    cheap = [one for one in tradeoff if one.ratio > 0.0 and one.standard_error <= (1.0 + NEXT_TO_NOTHING) * without]
    return max(cheap, key=lambda one: one.ratio, default=None)
