"""Claims about a walk that has not taken place yet.

On a ring the schedule is public and leaves nothing to chance, so the claims are those that an audit will make. On a
random walk they rest on the law of the visits, which do not depend on data; what an audit says afterwards, given
what was seen or the route that was taken, may be more or less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from p2pdp.audit.ground import NOBODY_OUT, PUBLIC_ROUTE, Finding, Ground
from p2pdp.audit.local import local_account
from p2pdp.core.claims import Claim, Conditioning, Method, Observer, Refusal
from p2pdp.core.ids import Peer
from p2pdp.protocols.defaults import Account
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.analysis.a_priori_walks import Walks
from p2pdp.protocols.walk.analysis.scheduled import scheduled
from p2pdp.protocols.walk.analysis.visits import Visits
from p2pdp.replay.transcript import Transcript

SCHEDULE: Final = "the schedule is public and fixed beforehand"
_LAPLACE_SEEN: Final = "laplace noise has no exact Gaussian leak"


def a_priori_of_ring(run: RunPlan, delta: float, colluders: Sequence[Peer], account: Account) -> Finding:
    """Return what an audit by this account will say, and the local ceiling."""
    ground = Ground(run, {}, scheduled(run), (), delta, colluders)
    parts = [account(ground), local_account(ground)]
    claims = [_in_advance(claim) for part in parts for claim in part.claims]
    refusals = [refusal for part in parts for refusal in part.refusals]
    return replace(parts[0], claims=claims, refusals=refusals)


def _in_advance(claim: Claim) -> Claim:
    rest = [text for text in claim.assumptions if text != PUBLIC_ROUTE]
    return replace(claim, conditioning=Conditioning.A_PRIORI, assumptions=(SCHEDULE, NOBODY_OUT, *rest))


def a_priori_of_walk(run: RunPlan, delta: float, colluders: Sequence[Peer], *, one_value: bool) -> Finding:
    """Return claims by the law of a random walk's visits."""
    ground = Ground(run, {}, Transcript(), (), delta, colluders)
    walks = Walks(ground, Visits(run, delta), NOBODY_OUT)
    found = Finding()
    if run.plan.noise.name in ("gaussian", "none"):
        if run.n > 1:
            found.add([walks.node(one_value=one_value)])
        found.claims += [walks.curator(), walks.public()]
    else:
        reason = _LAPLACE_SEEN
        if run.plan.noise.name == "randomized_response":
            reason = "what sums of reports tell is accounted for given a route, and not in advance"
        found.refusals += [
            Refusal(observer, Method.EXACT, reason) for observer in (Observer.NODE, Observer.CURATOR, Observer.PUBLIC)
        ]
    if colluders:
        reason = "who pools views knows more of the path than is accounted for in advance: the local ceiling stands"
        found.refusals.append(Refusal(Observer.COALITION, Method.EXACT, reason))
    found.claims.append(walks.network())
    return found
