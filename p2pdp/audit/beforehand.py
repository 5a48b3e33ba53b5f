"""Claims about a run that has not taken place yet, conditioning `a-priori`: averaged over all that chance decides.

Guarantee: each claim with `bound` holds for a run of this plan, with exactly these users, in which nobody is put out.
On a ring the schedule is public and leaves nothing to chance, so the claims are those that an audit will make. On a
random walk they rest on the law of the visits, which do not depend on data; what an audit says afterwards, given
what was seen or the route that was taken, may be more or less. Of gossip `beforehand_gossip.py` says what holds.

The caller owes a plan with its graph, and says whether every user has one value only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from p2pdp.audit.beforehand_gossip import gossip_beforehand, refusals_in_advance
from p2pdp.audit.beforehand_published import published
from p2pdp.audit.beforehand_sgd import walk_of_descent
from p2pdp.audit.beforehand_shuffle import shuffle_beforehand
from p2pdp.audit.beforehand_visits import Visits
from p2pdp.audit.beforehand_walks import A_PRIORI, Walks
from p2pdp.audit.blanket import blanket_account
from p2pdp.audit.brokers import claims_with_broker, refusals_with_broker
from p2pdp.audit.estimates import added, cost_of, left_of
from p2pdp.audit.exact_account import EXACT, exact_account
from p2pdp.audit.ground import PUBLIC_ROUTE, Finding, Ground
from p2pdp.audit.hidden_path import HIDDEN_PATH
from p2pdp.audit.iteration import iteration_account
from p2pdp.audit.local import local_account
from p2pdp.audit.shuffle_claims import SHUFFLE
from p2pdp.core.claims import Claim, Refusal
from p2pdp.core.errors import UsageError
from p2pdp.core.ids import Peer
from p2pdp.protocols.gossiping_plan import AveragingPlan
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.shuffling_plan import ShufflePlan
from p2pdp.protocols.walk_sgd import SgdPlan
from p2pdp.replay.scheduled import is_scheduled, scheduled
from p2pdp.replay.transcript import Transcript

SCHEDULE: Final = "the schedule is public and fixed beforehand"
NO_SKELETON: Final = "no user hands in a skeleton that the curator can read ([audit] key seals them)"
NOBODY_OUT: Final = "all users take part to the end"
OBSERVERS: Final = ("node", "coalition", "curator", "public", "network", "broker")
_LAPLACE_SEEN: Final = "laplace noise has no exact Gaussian leak"


def beforehand(run: RunPlan, delta: float, colluders: Sequence[Peer], *, one_value: bool) -> Finding:
    """Claims and refusals by observer, those about one other node first."""
    if not 0.0 < delta < 1.0:
        raise UsageError("delta must be between 0 and 1")
    cost = cost_of(run.spec)
    delta = left_of(delta, cost)
    if isinstance(run.plan, AveragingPlan):
        found = _gossip(run, delta, colluders)
    elif run.finishes_one_by_one:
        found = shuffle_beforehand(run, delta, colluders, NOBODY_OUT)
    elif is_scheduled(run):
        found = _ring(run, delta, colluders)
    elif isinstance(run.plan, SgdPlan):
        found = walk_of_descent(run, delta, colluders, NOBODY_OUT)
    else:
        found = _walk(run, delta, colluders, one_value=one_value)
    if not run.finishes_one_by_one:
        _add(found, published(run, delta))
    found.claims = claims_with_broker(run.spec, [added(claim, cost) for claim in found.claims])
    if run.spec.audit.key is None:
        found.claims = [_unread(claim) for claim in found.claims]
    found.refusals = refusals_with_broker(run.spec, found.refusals)
    first = "curator" if isinstance(run.plan, ShufflePlan) else "node"  # who is shown first
    found.claims.sort(key=lambda claim: (claim.observer != first, OBSERVERS.index(claim.observer)))
    return found


def _unread(claim: Claim) -> Claim:
    """The claim with the assumption that no skeleton tells the curator routes, where it rests on these."""
    if claim.observer != "curator" or claim.method not in (HIDDEN_PATH, SHUFFLE):
        return claim
    return replace(claim, assumptions=(*claim.assumptions, NO_SKELETON))


def node_epsilon(run: RunPlan, delta: float, *, one_value: bool) -> float:
    """The best bound of what one other node will learn; what nobody at all will learn, it will not either."""
    return epsilon_against(("node",), run, delta, one_value=one_value)


def epsilon_against(observers: Sequence[str], run: RunPlan, delta: float, *, one_value: bool) -> float:
    """The best bound of each of these observers, and of these the largest."""
    claims = beforehand(run, delta, (), one_value=one_value).claims
    most = delta * (1.0 + 1e-12)  # parts of delta that were taken off and put on again
    sound = [one for one in claims if one.delta <= most and one.epsilon_max is not None]
    return max(
        min((one.epsilon_max or 0.0 for one in sound if covers(one, observer)), default=math.inf)
        for observer in observers
    )


def covers(claim: Claim, observer: str) -> bool:
    """Whether a claim bounds what this observer learns: it is about it, or about whoever sees all contents.

    Whoever watches wires under cover sees no contents, and a claim about that covers nobody else.
    """
    wires = claim.observer == "network" and claim.method == SHUFFLE
    return claim.bound and not wires and claim.observer in (observer, "network")


def _ring(run: RunPlan, delta: float, colluders: Sequence[Peer]) -> Finding:
    ground = Ground(run, {}, scheduled(run), (), delta, colluders)
    account = blanket_account if run.plan.noise.name == "randomized_response" else exact_account
    if isinstance(run.plan, SgdPlan):
        account = iteration_account
    parts = [account(ground), local_account(ground)]
    claims = [_in_advance(claim) for part in parts for claim in part.claims]
    refusals = [refusal for part in parts for refusal in part.refusals]
    return replace(parts[0], claims=claims, refusals=refusals)


def _gossip(run: RunPlan, delta: float, colluders: Sequence[Peer]) -> Finding:
    found = gossip_beforehand(run, delta, colluders)
    observers = ("node", "coalition") if colluders else ("node",)
    found.refusals += refusals_in_advance(observers, EXACT)
    return found


def _in_advance(claim: Claim) -> Claim:
    rest = [text for text in claim.assumptions if text != PUBLIC_ROUTE]
    return replace(claim, conditioning=A_PRIORI, assumptions=(SCHEDULE, NOBODY_OUT, *rest))


def _walk(run: RunPlan, delta: float, colluders: Sequence[Peer], *, one_value: bool) -> Finding:
    ground = Ground(run, {}, Transcript(), (), delta, colluders)
    walks = Walks(ground, Visits(run, delta), NOBODY_OUT)
    found = Finding()
    if run.plan.noise.name in ("gaussian", "none"):
        if run.n > 1:
            _add(found, [walks.node(one_value=one_value)])
        found.claims += [walks.curator(), walks.public()]
    else:
        reason = _LAPLACE_SEEN
        if run.plan.noise.name == "randomized_response":
            reason = "what sums of reports tell is accounted for given a route, and not in advance"
        found.refusals += [Refusal(observer, EXACT, reason) for observer in ("node", "curator", "public")]
    if colluders:
        reason = "who pools views knows more of the path than is accounted for in advance: the local ceiling stands"
        found.refusals.append(Refusal("coalition", EXACT, reason))
    found.claims.append(walks.network())
    return found


def _add(found: Finding, said: Sequence[Claim | Refusal]) -> None:
    found.claims += [one for one in said if isinstance(one, Claim)]
    found.refusals += [one for one in said if isinstance(one, Refusal)]
