"""Claims about gossip on a random graph of which users know their own edges only: [CEBM22, Theorem 4].

It averages over the graph, given v's own edges: all whom v never met are alike to it, and share what its messages
tell. That is a bound where pairs toss for each round's edges by secrets of their own. A random graph that stays is
drawn from the seed in the spec, which every user has: the formula is shown then, and bounds nothing.

The theorem holds up to an order of about sqrt(2) sigma / Delta only, where small deltas cost more than it saves: at
usual deltas the local ceiling is the lesser of the two, and taken.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from p2pdp.audit.claims import claim_of, spread_of, worst_of
from p2pdp.audit.ground import NOT_AT_HAND, Finding, Ground
from p2pdp.audit.recorded import refused, unlike_plan
from p2pdp.core.claims import Conditioning, Observer, Refusal
from p2pdp.core.ids import Peer, is_user
from p2pdp.ledger.records import RECEIVED, public_message
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.linear.published import theorem_4_alpha_most, theorem_4_leak
from p2pdp.privacy.renyi import best_epsilon
from p2pdp.privacy.rounding import beside
from p2pdp.protocols.gossip.analysis.rounding import rounding_of
from p2pdp.protocols.gossip.analysis.views import graph_of
from p2pdp.protocols.gossip.messages import EXCHANGE, RoundState
from p2pdp.protocols.gossip.plan import GossipPlan

THEOREM_4: Final = "published:theorem-4"
_ALIKE: Final = ("erdos_renyi", "regular")  # random graphs in which all users whom one does not meet are alike
_OWN_EDGES: Final = (
    "the observer knows no edge but its own, and learns of none from when messages arrive; those whom it met tell it "
    "all that local noise allows"
)
_KNOWN: Final = "no bound here: the graph is drawn from the seed in the spec, which every user has"
_TOLD: Final = "values were published, and the theorem knows of none"


def hidden_graph_account(ground: Ground) -> Finding:
    run, plan = ground.run, ground.run.plan
    if not isinstance(plan, GossipPlan) or plan.block or plan.noise.name != "gaussian":
        return Finding()
    graph = run.spec.graph
    if plan.coin is None and (graph.kind not in _ALIKE or graph.public):
        return Finding()
    reason = _TOLD if ground.transcript.published != () else unlike_plan(ground)
    if reason is not None:
        return refused((Observer.NODE,), THEOREM_4, reason)
    epsilons = np.full((run.n, run.n), np.nan)
    refusals = []
    rounding = rounding_of(ground, graph_of(ground))
    for one in range(run.n):
        if ground.is_at_hand(one):
            epsilons[:, one] = _epsilons(ground, one, rounding.nu)
        else:
            refusals.append(Refusal(Observer.NODE, THEOREM_4, f"user {one}: {NOT_AT_HAND}"))
    if np.isnan(epsilons).all():
        return Finding(refusals=refusals)
    claim = claim_of(
        Observer.NODE,
        THEOREM_4,
        Conditioning.VIEW,
        ground.delta,
        worst_of(epsilons, range(run.n)),
        (_OWN_EDGES, *((_KNOWN,) if plan.coin is None else ()), *rounding.said, *ground.assumptions),
        epsilon=spread_of(epsilons),
        bound=plan.coin is not None,
    )
    return Finding([claim], refusals)


def _epsilons(ground: Ground, observer: Peer, nu: float) -> np.ndarray:
    """Of each user: local noise for those whom the observer met, else what the theorem says if that is less."""
    n, mu = ground.run.n, ground.sensitivity / ground.run.plan.noise.scale
    local = gaussian.epsilon_of(ground.delta, mu)
    met = [
        (record.body.sender, RoundState(*public_message(record).fields).round)
        for record in ground.views[observer].records
        if record.kind == RECEIVED and is_user(record.body.sender) and public_message(record).type == EXCHANGE
    ]
    found = np.full(n, local)
    others = np.array(sorted(set(range(n)) - {peer for peer, _ in met} - {observer}), dtype=np.int64)
    if len(others):
        leak = theorem_4_leak(len(met), sum(number == 1 for _, number in met), len(others))
        most = theorem_4_alpha_most(mu) - 1.0

        def linear(delta: float) -> float:
            return best_epsilon(lambda excess: (1.0 + excess) * mu**2 * leak / 2.0, delta, excess_most=most)

        found[others] = min(local, beside(linear, ground.delta, nu))
    found[observer] = np.nan
    return found
