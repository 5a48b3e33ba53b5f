"""The local ceiling: all contributions of a user seen one by one, each with only its user's own noise.

It holds against every observer, whatever the route and whoever colludes, is late or is excluded, because everything
else is post-processing of these contributions. It is infinite, and shown as such, where some contribution carries no
noise of its own. `local_account` takes the draws that a run recorded, `local_a_priori` those of a plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from p2pdp.auditor import sampled
from p2pdp.auditor.claims import claim_of
from p2pdp.auditor.context import AccountResult, AuditContext, refused
from p2pdp.auditor.exact import ceiling
from p2pdp.core.claims import Conditioning, Method, Observer, Protected
from p2pdp.core.draws import Mechanism
from p2pdp.core.ids import Peer, is_user
from p2pdp.mechanisms import gaussian, laplace, randomized_response
from p2pdp.mechanisms.clipping import Bounds
from p2pdp.mechanisms.grid import Grid
from p2pdp.privacy.linear.view import ROUNDED_UP
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.contributions import Noise, Recorded
from p2pdp.replay.transcript import Transcript

OWN_NOISE: Final = "each contribution is protected by its own user's noise alone"
_OBSERVER = Observer.NETWORK


def local_account(context: AuditContext) -> AccountResult:
    """Compose Gaussian contributions as mu = sqrt(sum mu_i^2), and add the epsilons of pure ones.

    A ledger that ends early counts as far as it goes, and whatever others had from its owner beyond that: what
    was sent was recorded before, so contributions in neither have reached nobody. The claim says so.
    """
    run, delta = context.run, context.delta
    refusal = not_told(context)
    if refusal is not None:
        return refusal
    own_noise = context.transcript.own_noise
    if any(sampled.samples(own) for own in own_noise.values()):
        parts = [sampled.steps_of(run, own) for own in own_noise.values()]
        found = AccountResult()
        for protected in sampled.relations(run):
            epsilons = sampled.epsilons(parts, protected.relation, delta)
            found.claims += ceiling_of(context, epsilons, None, protected, sampled.HIDDEN_ROWS).claims
        return found
    mus: list[float] | None = None
    if _is_gaussian(own_noise):
        mus = [_mu(context.sensitivity, own) for own in own_noise.values()]
        epsilons = [gaussian.epsilon_of(delta, mu) for mu in mus]
    else:
        epsilons = [ROUNDED_UP * sum(pure_epsilon_of(run, drawn) for drawn in own) for own in own_noise.values()]
    return ceiling_of(context, epsilons, mus)


def not_told(context: AuditContext) -> AccountResult | None:
    """Refuse where the contributions of some user are not known; None where all are."""
    known = context.transcript.own_noise
    absent = [user for user in range(context.run.n) if user not in known]
    if absent:
        return refused((_OBSERVER,), Method.LOCAL, f"the ledger of user {absent[0]} is not at hand")
    if context.transcript.unknown:
        return refused(
            (_OBSERVER,), Method.LOCAL, f"what user {min(context.transcript.unknown)} contributed cannot be told"
        )
    return None


def ceiling_of(
    context: AuditContext,
    epsilons: Sequence[float],
    mus: Sequence[float] | None,
    protected: Protected | None = None,
    *stated: str,
) -> AccountResult:
    """Return the claim from what all contributions of each user tell; `mus` where that is Gaussian."""
    early = [
        f"what user {who} sent is in its ledger or in those of others" for who in context.incomplete if is_user(who)
    ]
    worst = max(range(len(epsilons)), key=lambda user: mus[user] if mus is not None else epsilons[user])
    claim = claim_of(
        protected or context.run.protected,
        _OBSERVER,
        Method.LOCAL,
        Conditioning.PUBLIC,
        context.delta,
        (list(context.transcript.own_noise)[worst], _OBSERVER),
        (*context.assumptions, *early, OWN_NOISE, *stated),
        epsilon=(epsilons[worst], sum(epsilons) / len(epsilons)),
        mu=None if mus is None else (mus[worst], sum(mus) / len(mus)),
    )
    return AccountResult(claims=[claim])


def _is_gaussian(own_noise: Mapping[Peer, Sequence[Recorded]]) -> bool:
    """Return whether all contributions are protected by Gaussian noise only."""
    every = (mechanism for own in own_noise.values() for drawn in own for mechanism in drawn)
    return all(mechanism.name == "gaussian" for mechanism in every)


def _mu(sensitivity: float, own: list[tuple[Mechanism, ...]]) -> float:
    return sensitivity * math.sqrt(ceiling(own)) * ROUNDED_UP


def pure_epsilon_of(run: RunPlan, drawn: tuple[Mechanism, ...]) -> float:
    """Return the epsilon of one contribution; the strongest of several draws counts alone."""
    best = math.inf
    for mechanism in drawn:
        if mechanism.name == "laplace":
            assert run.spec.data.clip is not None
            span = Grid(run.plan.grid_exponent).grid_units_up(Bounds(*run.spec.data.clip).span)
            best = min(best, laplace.epsilon_of(mechanism.scale, float(span * run.dimensions)))
        elif mechanism.name == "randomized_response":
            best = min(best, randomized_response.epsilon_of(mechanism.scale, mechanism.categories))
    return best


def local_a_priori(run: RunPlan, delta: float, contributions: int) -> AccountResult:
    """Return the claim of users who contribute so often, each time under the noise that the plan says."""
    own = {user: Noise([run.plan.protection] * contributions) for user in range(run.n)}
    result = local_account(AuditContext(run, {}, Transcript(find_noise=lambda: own), (), delta, ()))
    result.claims = [replace(claim, conditioning=Conditioning.A_PRIORI) for claim in result.claims]
    return result
