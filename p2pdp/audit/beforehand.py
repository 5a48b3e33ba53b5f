"""Claims about a run that has not taken place yet, conditioning `a-priori`: averaged over all that chance decides.

Guarantee: each claim with `bound` holds for a run of this plan, with exactly these users, in which nobody is put out.
What holds of a protocol its own `Analysis.a_priori` says.

The caller owes a plan with its graph, and says whether every user has one value only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from p2pdp.audit.brokers import claims_with_broker, refusals_with_broker
from p2pdp.audit.estimates import added, cost_of, left_of
from p2pdp.audit.ground import Finding
from p2pdp.core.claims import Claim, Method, Observer
from p2pdp.core.errors import UsageError
from p2pdp.core.ids import Peer
from p2pdp.protocols.run_plan import RunPlan

NO_SKELETON: Final = "no user hands in a skeleton that the curator can read ([audit] key seals them)"


def beforehand(run: RunPlan, delta: float, colluders: Sequence[Peer], *, one_value: bool) -> Finding:
    """Claims and refusals by observer, those about one other node first."""
    if not 0.0 < delta < 1.0:
        raise UsageError("delta must be between 0 and 1")
    cost = cost_of(run.spec)
    delta = left_of(delta, cost)
    analysis = run.protocol.analysis()
    found = analysis.a_priori(run, delta, colluders, one_value=one_value)
    found.claims = claims_with_broker(run.spec, [added(claim, cost) for claim in found.claims])
    if run.spec.audit.key is None:
        found.claims = [_unread(claim) for claim in found.claims]
    found.refusals = refusals_with_broker(run.spec, found.refusals)
    first, order = analysis.headline_observer, list(Observer)
    found.claims.sort(key=lambda claim: (claim.observer != first, order.index(claim.observer)))
    return found


def _unread(claim: Claim) -> Claim:
    """The claim with the assumption that no skeleton tells the curator routes, where it rests on these."""
    if claim.observer != Observer.CURATOR or claim.method not in (Method.HIDDEN_PATH, Method.SHUFFLE):
        return claim
    return replace(claim, assumptions=(*claim.assumptions, NO_SKELETON))


def epsilon_against(observers: Sequence[Observer], run: RunPlan, delta: float, *, one_value: bool) -> float:
    """The best bound of each of these observers, and of these the largest."""
    claims = beforehand(run, delta, (), one_value=one_value).claims
    most = delta * (1.0 + 1e-12)  # parts of delta that were taken off and put on again
    sound = [one for one in claims if one.delta <= most and one.epsilon_max is not None]
    return max(
        min((one.epsilon_max or 0.0 for one in sound if covers(one, observer)), default=math.inf)
        for observer in observers
    )


def covers(claim: Claim, observer: Observer) -> bool:
    """Whether a claim bounds what this observer learns: it is about it, or about whoever sees all contents.

    Whoever watches wires under cover sees no contents, and a claim about that covers nobody else.
    """
    wires = claim.observer == Observer.NETWORK and claim.method == Method.SHUFFLE
    return claim.bound and not wires and claim.observer in (observer, Observer.NETWORK)
