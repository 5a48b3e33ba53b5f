"""Claims from exact Gaussian leaks: every pair, a coalition, curator, public and network, given the realised route."""

from __future__ import annotations

from p2pdp.audit.exact import ExactAuditor
from p2pdp.audit.ground import Finding, Ground
from p2pdp.audit.pair_claims import account_of_pairs
from p2pdp.core.claims import Refusal
from p2pdp.protocols.walk_sgd import SgdPlan

EXACT = "exact"


def exact_account(ground: Ground) -> Finding:
    run = ground.run
    if run.finishes_one_by_one or isinstance(run.plan, SgdPlan):
        return Finding()  # states of gossip are mixed in each round, and steps of descent are not linear
    if run.plan.noise.name not in ("gaussian", "none"):
        reason = f"{run.plan.noise.name} noise has no exact Gaussian leak"
        return Finding(refusals=[Refusal(who, EXACT, reason) for who in ("node", "curator", "public", "network")])
    return account_of_pairs(ground, ExactAuditor(ground.transcript, run.n), EXACT)
