"""What gossip will tell each kind of observer, whatever arrives late, is lost or whoever is put out.

Which rounds count is not known in advance, and a round that is skipped may tell more of some user than one that
counts. So nothing below the local ceiling is promised for a single pair that is near enough. What holds always:

* a user learns nothing of users from whom there are more edges to it than rounds;
* what a user learns of all others together is at most as many times the local leak as messages come to it (leaks
  are squared lengths of the unit vectors' projections on the span of what it saw, which add up to its dimension);
* the curator and the public see values only where results are published.

Leaks L_i in units of the local one add up to M at most, over K pairs that are near enough. Their roots, which mu is in
proportion to, then add up to sqrt(K min(M, K)) at most (Cauchy and Schwarz); and epsilon is a convex function of mu
that is 0 at 0 (its slope is the hazard rate of a normal variable at epsilon/mu + mu/2, which grows with mu), so its
mean is at most the same share of the local one. What rounding adds to each mu (`rounding.py`) is added to the
share. `forecast.py` says what a run without any delay will tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from operator import or_
from typing import Final

from p2pdp.audit.ground import Finding, sensitivity_of
from p2pdp.audit.local_beforehand import local_beforehand
from p2pdp.core.claims import Claim, Method, Name, Observer, Refusal
from p2pdp.core.ids import Peer
from p2pdp.protocols.gossip.analysis.rounding import at_most
from p2pdp.protocols.gossip.pairing import PairPlan
from p2pdp.protocols.gossip.plan import GossipPlan
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.topology.graphs import Graph

WHATEVER_HAPPENS: Final = "whatever is late or lost, and whoever is put out of the run"
_NEAR: Final = "users within as many edges as there are rounds are taken to tell all that local noise allows"
_ANY: Final = "every user is taken to tell all that local noise allows"
_MEAN: Final = "means count messages: all users together tell no more than as many of them would alone"
_NOTHING: Final = "no value reaches it, for no result is published"
_ONE: Final = "it sees one published result, which may be hardly mixed"
_ALL: Final = "all results are published, which together tell every user's noised value"


def gossip_beforehand(run: RunPlan, delta: float, colluders: Sequence[Peer]) -> Finding:
    """Claims for each kind of observer."""
    found = local_beforehand(run, delta, _contributions(run))
    if not found.claims:
        return found
    (local,) = found.claims
    claims = [_node(run, local)] if run.n > 1 else []
    if 0 < len(colluders) < run.n:
        claims.append(_coalition(run, local, colluders))
    claims += [_role(run, local, name) for name in (Observer.CURATOR, Observer.PUBLIC)]
    return Finding([*claims, local], found.refusals)


def _node(run: RunPlan, local: Claim) -> Claim:
    pairs = run.n * (run.n - 1)
    graph = _fixed(run)
    near = pairs if graph is None else _pairs_within(graph, run.plan.rounds)
    known = graph is not None or isinstance(run.plan, PairPlan)
    messages = run.exchanges if known and run.graph is not None else pairs
    if run.plan.publish != "none":
        near, messages = pairs, messages + run.n * (run.n if run.plan.publish == "all" else 1)
    worst = None if graph is None else (graph.neighbours[0][0], 0)
    said = _ANY if near == pairs else _NEAR
    return _claim(local, Observer.NODE, _share(run, near, messages, pairs), worst, (said, *_means(run)))


def _coalition(run: RunPlan, local: Claim, members: Sequence[Peer]) -> Claim:
    outside = run.n - len(members)
    graph = _fixed(run)
    near = messages = outside
    if graph is not None and run.plan.publish == "none":
        inside = set(members)
        near = len(_reached(graph, members, run.plan.rounds) - inside)
        messages = run.plan.rounds * sum(len(set(graph.neighbours[user]) - inside) for user in members)
    said = _ANY if near == outside else _NEAR
    share = _share(run, near, messages, outside)
    return _claim(local, Observer.COALITION, share, None, (said, *_means(run)))


def _role(run: RunPlan, local: Claim, name: Observer) -> Claim:
    if run.plan.publish == "none":
        nothing = replace(local, epsilon_max=0.0, mu_max=None if local.mu_max is None else 0.0)
        return _claim(nothing, name, 0.0, (0, name), (_NOTHING,))
    seen, said = (run.n, _ALL) if run.plan.publish == "all" else (1, _ONE)
    return _claim(local, name, _share(run, run.n, seen, run.n), (0, name), (said, *_means(run)))


def _claim(
    ceiling: Claim,
    observer: Observer,
    share: float,
    worst: tuple[int, Name] | None,
    said: tuple[str, ...],
) -> Claim:
    """`share` of the ceiling is the most that it is on average."""

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
        assumptions=(WHATEVER_HAPPENS, *said, *ceiling.assumptions),
    )


def _share(run: RunPlan, near: int, messages: int, pairs: int) -> float:
    """Of the local mu; of other noise, and of several contributions of a user, only distances are counted."""
    if not _means(run):
        return near / pairs
    added = 2.0 * at_most(run).nu * run.plan.noise.scale / sensitivity_of(run)  # of the local mu, for each that is near
    share: float = min(near, math.sqrt(near * min(messages, near)) + added * near) / pairs
    return share


def _means(run: RunPlan) -> tuple[str, ...]:
    """What means rest on, where leaks add up: one Gaussian contribution a user."""
    known = run.plan.noise.name == "gaussian" and _contributions(run) == 1
    return (_MEAN, *at_most(run).said) if known else ()


def _contributions(run: RunPlan) -> int:
    """How many values each user puts in."""
    block = run.plan.block if isinstance(run.plan, GossipPlan) else 0
    return math.ceil(run.plan.rounds / block) if block else 1


def _fixed(run: RunPlan) -> Graph | None:
    """The graph where it is known and stays, so that distances on it limit what rounds carry."""
    stays = isinstance(run.plan, GossipPlan) and run.plan.coin is None
    return run.graph if stays and run.n > 1 else None


@lru_cache(maxsize=8)
def _pairs_within(graph: Graph, edges: int) -> int:
    """Ordered pairs at that distance at most; sets of users are bits of a number."""
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
    """Users at that distance from the nearest member at most, members included."""
    reached = fresh = set(members)
    for _ in range(edges):
        fresh = {far for near in fresh for far in graph.neighbours[near]} - reached
        if not fresh:
            break
        reached = reached | fresh
    return reached


def refusals_in_advance(observers: Sequence[Observer], method: str) -> list[Refusal]:
    """Why there is nothing of this method before the run."""
    reason = "what gossip tells a single user of another depends on which messages arrive in time: an audit says it"
    return [Refusal(observer, method, reason) for observer in observers]
