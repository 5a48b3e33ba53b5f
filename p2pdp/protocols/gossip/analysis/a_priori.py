"""A-priori claims about gossip, which hold whatever arrives late, is lost, or whoever is excluded.

Which rounds count is not known in advance, and a skipped round may disclose more about some user than one that
counts. So nothing below the local ceiling is promised for a single pair that is near enough. Three facts always hold:

* a user learns nothing of users that are more edges away than there are rounds;
* the leaks of all others to one user add up to at most the local leak times the number of messages it receives (leaks
  are squared lengths of the unit vectors' projections on the span of what it saw, which add up to its dimension);
* the curator and the public see values only if results are published.

Leaks L_i in units of the local one add up to M at most, over K pairs that are near enough. Their roots, which mu is
proportional to, then add up to sqrt(K min(M, K)) at most (Cauchy and Schwarz); and epsilon is a convex function of mu
that is 0 at 0 (its slope is the hazard rate of a normal variable at epsilon/mu + mu/2, which grows with mu), so its
mean is at most the same share of the local one. The effect of rounding on each mu (`rounding.py`) is added to the
share. `forecast.py` gives the leaks of a run without any delay.

For random graphs of which users know their own edges only, [CEBM22, Theorem 4] averages over the graph, given v's
own edges: all users that v never met are alike to it, and share the leak of its messages. That is a bound if pairs
toss for each round's edges by secrets of their own. A fixed random graph is drawn from the seed in the spec, which
every user has: the formula is shown then, and bounds nothing. The theorem holds up to an order of about
sqrt(2) sigma / Delta only, where small deltas cost more than it saves: at usual deltas the local ceiling is the
smaller of the two, and is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from operator import or_
from typing import Final

import numpy as np

from p2pdp.auditor.claims import claim_of, spread_of, worst_of
from p2pdp.auditor.context import NOT_AT_HAND, AccountResult, AuditContext, refused, sensitivity_of, unlike_plan
from p2pdp.auditor.local import local_a_priori
from p2pdp.core.claims import Claim, Conditioning, Method, Name, Observer, Refusal
from p2pdp.core.ids import Peer, is_user
from p2pdp.ledger.records import RECEIVED, public_message
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.linear.published import theorem_4_alpha_most, theorem_4_leak
from p2pdp.privacy.renyi import best_epsilon
from p2pdp.privacy.rounding import beside
from p2pdp.protocols.gossip.analysis.rounding import at_most, rounding_of
from p2pdp.protocols.gossip.analysis.views import graph_of
from p2pdp.protocols.gossip.plan import EXCHANGE, RoundState
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.topology.graphs import Graph

WHATEVER_HAPPENS: Final = "whatever is late or lost, and whoever is put out of the run"
_NEAR: Final = "users within as many edges as there are rounds are taken to tell all that local noise allows"
_ANY: Final = "every user is taken to tell all that local noise allows"
_MEAN: Final = "means count messages: all users together tell no more than as many of them would alone"
_NOTHING: Final = "no value reaches it, for no result is published"
_ONE: Final = "it sees one published result, which may be hardly mixed"
_ALL: Final = "all results are published, which together tell every user's noised value"


def gossip_a_priori(run: RunPlan, delta: float, colluders: Sequence[Peer]) -> AccountResult:
    """Return claims for each kind of observer."""
    found = local_a_priori(run, delta, _contributions(run))
    if not found.claims:
        return found
    local, *others = found.claims  # of other relations, about whoever sees all
    claims = [_node(run, local)] if run.n > 1 else []
    if 0 < len(colluders) < run.n:
        claims.append(_coalition(run, local, colluders))
    claims += [_role(run, local, name) for name in (Observer.CURATOR, Observer.PUBLIC)]
    return AccountResult([*claims, local, *others], found.refusals)


def _node(run: RunPlan, local: Claim) -> Claim:
    pairs = run.n * (run.n - 1)
    graph = _fixed_graph(run)
    near = pairs if graph is None else _pairs_within(graph, run.plan.rounds)
    known = graph is not None or not run.plan.in_rounds
    messages = run.exchanges if known and run.graph is not None else pairs
    if run.plan.publish != "none":
        near, messages = pairs, messages + run.n * (run.n if run.plan.publish == "all" else 1)
    worst = None if graph is None else (graph.neighbours[0][0], 0)
    assumption = _ANY if near == pairs else _NEAR
    return _claim(
        local, Observer.NODE, _share(run, near, messages, pairs), worst, (assumption, *_mean_assumptions(run))
    )


def _coalition(run: RunPlan, local: Claim, members: Sequence[Peer]) -> Claim:
    outside = run.n - len(members)
    graph = _fixed_graph(run)
    near = messages = outside
    if graph is not None and run.plan.publish == "none":
        inside = set(members)
        near = len(_reached(graph, members, run.plan.rounds) - inside)
        messages = run.plan.rounds * sum(len(set(graph.neighbours[user]) - inside) for user in members)
    assumption = _ANY if near == outside else _NEAR
    share = _share(run, near, messages, outside)
    return _claim(local, Observer.COALITION, share, None, (assumption, *_mean_assumptions(run)))


def _role(run: RunPlan, local: Claim, name: Observer) -> Claim:
    if run.plan.publish == "none":
        nothing = replace(local, epsilon_max=0.0, mu_max=None if local.mu_max is None else 0.0)
        return _claim(nothing, name, 0.0, (0, name), (_NOTHING,))
    seen, assumption = (run.n, _ALL) if run.plan.publish == "all" else (1, _ONE)
    return _claim(local, name, _share(run, run.n, seen, run.n), (0, name), (assumption, *_mean_assumptions(run)))


def _claim(
    ceiling: Claim,
    observer: Observer,
    share: float,
    worst: tuple[int, Name] | None,
    stated: tuple[str, ...],
) -> Claim:
    """Return a claim whose mean is at most `share` of the ceiling."""

    def mean(most: float | None) -> float | None:
        if most is None:
            return None
        return 0.0 if share == 0.0 else most * share

    return replace(
        ceiling,
        observer=observer,
        method=Method.LOCAL,
        epsilon_mean=mean(ceiling.epsilon_max),
        mu_mean=mean(ceiling.mu_max),
        worst_pair=worst,
        assumptions=(WHATEVER_HAPPENS, *stated, *ceiling.assumptions),
    )


def _share(run: RunPlan, near: int, messages: int, pairs: int) -> float:
    """Return the share of the local mu; for other noise, or several contributions of a user, only distances count."""
    if not _mean_assumptions(run):
        return near / pairs
    added = 2.0 * at_most(run).nu * run.plan.noise.scale / sensitivity_of(run)  # of the local mu, per pair
    share: float = min(near, math.sqrt(near * min(messages, near)) + added * near) / pairs
    return share


def _mean_assumptions(run: RunPlan) -> tuple[str, ...]:
    """Return the assumptions of means if leaks add up, that is for one Gaussian contribution per user."""
    known = run.plan.noise.name == "gaussian" and _contributions(run) == 1
    return (_MEAN, *at_most(run).assumptions) if known else ()


def _contributions(run: RunPlan) -> int:
    """Return the number of values that each user contributes."""
    block = run.plan.block if run.plan.in_rounds else 0
    return math.ceil(run.plan.rounds / block) if block else 1


def _fixed_graph(run: RunPlan) -> Graph | None:
    """Return the graph if it is known and fixed, so that distances on it limit what rounds carry."""
    stays = run.plan.in_rounds and run.plan.coin is None
    return run.graph if stays and run.n > 1 else None


@lru_cache(maxsize=8)
def _pairs_within(graph: Graph, edges: int) -> int:
    """Count the ordered pairs at most `edges` apart; sets of users are bits of a number."""
    if edges and graph.edge_count == graph.n * (graph.n - 1) // 2:
        return graph.n * (graph.n - 1)
    reached = [1 << user for user in range(graph.n)]
    for _ in range(edges):
        further = [
            reduce(or_, (reached[near] for near in row), own)
            for own, row in zip(reached, graph.neighbours, strict=True)
        ]
        if further == reached:
            break
        reached = further
    return sum(users.bit_count() for users in reached) - graph.n


def _reached(graph: Graph, members: Sequence[Peer], edges: int) -> set[Peer]:
    """Return the users at most `edges` away from the nearest member, members included."""
    reached = fresh = set(members)
    for _ in range(edges):
        fresh = {far for near in fresh for far in graph.neighbours[near]} - reached
        if not fresh:
            break
        reached = reached | fresh
    return reached


def refusals_in_advance(observers: Sequence[Observer], method: str) -> list[Refusal]:
    """Return the refusals of a method that has no claims before the run."""
    reason = "what gossip tells a single user of another depends on which messages arrive in time: an audit says it"
    return [Refusal(observer, method, reason) for observer in observers]


THEOREM_4: Final = "published:theorem-4"
_ALIKE: Final = ("erdos_renyi", "regular")  # random graphs in which all users that one does not meet are alike
_OWN_EDGES: Final = (
    "the observer knows no edge but its own, and learns of none from when messages arrive; those whom it met tell it "
    "all that local noise allows"
)
_KNOWN: Final = "no bound here: the graph is drawn from the seed in the spec, which every user has"
_TOLD: Final = "values were published, and the theorem knows of none"


def hides_graph(run: RunPlan) -> bool:
    """Return whether users do not know the graph, in a way for which there is an account."""
    graph = run.spec.graph
    return run.plan.coin is not None or (graph.kind in _ALIKE and not graph.public)


def hidden_graph_account(context: AuditContext) -> AccountResult:
    run, plan = context.run, context.run.plan
    if not plan.in_rounds or plan.block or plan.noise.name != "gaussian" or plan.pair_noise is not None:
        return AccountResult()
    if not hides_graph(run):
        return AccountResult()
    reason = _TOLD if context.transcript.published != () else unlike_plan(context)
    if reason is not None:
        return refused((Observer.NODE,), THEOREM_4, reason)
    epsilons = np.full((run.n, run.n), np.nan)
    refusals = []
    rounding = rounding_of(context, graph_of(context))
    for one in range(run.n):
        if context.is_at_hand(one):
            epsilons[:, one] = _epsilons(context, one, rounding.nu)
        else:
            refusals.append(Refusal(Observer.NODE, THEOREM_4, f"user {one}: {NOT_AT_HAND}", one))
    if np.isnan(epsilons).all():
        return AccountResult(refusals=refusals)
    claim = claim_of(
        run.protected,
        Observer.NODE,
        THEOREM_4,
        Conditioning.VIEW,
        context.delta,
        worst_of(epsilons, range(run.n)),
        (_OWN_EDGES, *((_KNOWN,) if plan.coin is None else ()), *rounding.assumptions, *context.assumptions),
        epsilon=spread_of(epsilons),
        bound=plan.coin is not None,
    )
    return AccountResult([claim], refusals)


def _epsilons(context: AuditContext, observer: Peer, nu: float) -> np.ndarray:
    """Return epsilon of each user: the local one for users that the observer met, else the theorem's if smaller."""
    n, mu = context.run.n, context.sensitivity / context.run.plan.noise.scale
    local = gaussian.epsilon_of(context.delta, mu)
    met = [
        (record.body.sender, RoundState(*public_message(record).fields).round)
        for record in context.views[observer].records
        if record.kind == RECEIVED and is_user(record.body.sender) and public_message(record).type == EXCHANGE
    ]
    epsilons = np.full(n, local)
    others = np.array(sorted(set(range(n)) - {peer for peer, _ in met} - {observer}), dtype=np.int64)
    if len(others):
        leak = theorem_4_leak(len(met), sum(number == 1 for _, number in met), len(others))
        most = theorem_4_alpha_most(mu) - 1.0

        def linear(delta: float) -> float:
            return best_epsilon(lambda excess: (1.0 + excess) * mu**2 * leak / 2.0, delta, excess_most=most)

        epsilons[others] = min(local, beside(linear, context.delta, nu))
    epsilons[observer] = np.nan
    return epsilons
