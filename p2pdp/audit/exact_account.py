"""Claims by the linear account: every pair, a coalition, curator, public and network, given the realised route.

It is the account of every linear protocol with Gaussian noise that has none of its own, and of gossip whose recorded
draws are not those of its plan.
"""

from __future__ import annotations

from typing import Final

from p2pdp.audit.exact import ExactAuditor
from p2pdp.audit.gossip import graph_of
from p2pdp.audit.gossip_rounding import rounding_of
from p2pdp.audit.ground import Finding, Ground
from p2pdp.audit.pair_claims import account_of_pairs
from p2pdp.audit.recorded import refused, unlike_plan
from p2pdp.protocols.gossiping_plan import AveragingPlan
from p2pdp.protocols.shuffling_plan import ShufflePlan
from p2pdp.replay.rows import TooLarge

EXACT: Final = "exact"
OBSERVERS: Final = ("node", "curator", "public", "network")
_TOO_LARGE: Final = "the run is too large to write out what everybody saw: the local ceiling stands"
_FLOATS: Final = "sums are taken to be exact: what the rounding of floats tells is left out"


def exact_account(ground: Ground) -> Finding:
    run, transcript = ground.run, ground.transcript
    if transcript.models or isinstance(run.plan, ShufflePlan):
        return Finding()  # gradients depend on what was sent, and sealed reports are not linear
    if isinstance(run.plan, AveragingPlan) and (unlike_plan(ground) is None or transcript.published is None):
        return Finding()
    recorded = [own for contributions in transcript.own_noise.values() for own in contributions]
    others = {mechanism for noise in transcript.noise.values() for mechanism in noise.others}
    named = {mechanism.name for drawn in (*recorded, others) for mechanism in drawn} - {"gaussian"}
    if named:
        return refused(OBSERVERS, EXACT, f"{min(named)} noise has no exact Gaussian leak")
    try:
        leaks = ExactAuditor(transcript, run.n, run.plan.unit)
    except TooLarge:
        return refused(OBSERVERS, EXACT, _TOO_LARGE)
    if isinstance(run.plan, AveragingPlan):
        rounding = rounding_of(ground, graph_of(ground))
        return account_of_pairs(ground, leaks, EXACT, *rounding.said, rounding=2.0 * rounding.nu)
    return account_of_pairs(ground, leaks, EXACT, *((_FLOATS,) if run.plan.unit != 1.0 else ()))
