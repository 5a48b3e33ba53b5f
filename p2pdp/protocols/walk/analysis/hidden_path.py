"""Claims about users who saw a random walk only at their own visits: the curve of a hidden path.

Given the observer's own visits, and how often the token moved between them, the path there follows the law of the
walk, and that hides the place of each contribution. This holds against one user alone. Observers who see more of the
path, or know it, are refused here and get the claims for a public route: coalitions, the network, brokers, and
everybody on a ring.

The claim's epsilon is the upper end for any values of the others; its assumptions state a lower end for the truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Final

import numpy as np

from p2pdp.auditor.claims import claim_of, has_broker
from p2pdp.auditor.context import NOT_AT_HAND, AccountResult, AuditContext, unlike_plan
from p2pdp.core.arrays import Ints
from p2pdp.core.claims import Claim, Conditioning, Method, Observer, Refusal
from p2pdp.core.ids import BOOTSTRAP, Peer
from p2pdp.ledger.records import OPENED
from p2pdp.mechanisms.clipping import Bounds
from p2pdp.mechanisms.grid import Grid
from p2pdp.privacy.hidden_path.complete import complete_graph
from p2pdp.privacy.hidden_path.curves import Ends
from p2pdp.privacy.hidden_path.gaps import Gap, gaps_of
from p2pdp.privacy.hidden_path.graph import GRAPH_USERS_MAX, general_graph
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.walking import WalkPlan
from p2pdp.replay.visits import TokenRoutes, put_out, token_routes

OWN_VIEW: Final = (
    "the observer knows its own visits, whom it had tokens from and passed them to, what is published, and for each "
    "stretch of steps that it does not see how many of them were moves from one user to another; when messages arrive "
    "tells it no more than that about the path"
)
ONE_VALUE: Final = "every user contributes one value, whenever it is visited"
KNOWN_GRAPH: Final = "the observer knows the graph"
_MU_MAX: Final = 64.0  # where noise is so small, epsilon is in the thousands on any path


def hidden_path_account(context: AuditContext) -> AccountResult:
    run = context.run
    if run.plan.learns or run.n == 1:
        return AccountResult()  # without a walk, or anybody else, there is no path to hide
    routes = _Routes(context)
    reason = _unfit(context, routes)
    if reason is not None:
        return AccountResult(refusals=[Refusal(Observer.NODE, Method.HIDDEN_PATH, reason)])
    observers = [user for user in range(run.n) if context.is_at_hand(user)]
    absent = [user for user in range(run.n) if user not in observers]
    refusals = [Refusal(Observer.NODE, Method.HIDDEN_PATH, f"user {user}: {NOT_AT_HAND}", user) for user in absent]
    if observers:
        refusals += _who_sees_more(context)
    ends = _ends(context, routes, observers)
    ends.upper[:, absent] = ends.variation[:, absent] = np.nan
    claims = [_claim(context, ends, observers)] if observers else []
    return (
        AccountResult(claims, refusals, epsilon=ends.upper, variation=ends.variation)
        if claims
        else AccountResult([], refusals)
    )


class _Routes:
    """The routes of tokens as each user saw them, and as all saw them together."""

    def __init__(self, context: AuditContext) -> None:
        self._context = context

    @cached_property
    def of_users(self) -> list[TokenRoutes]:
        views, tokens = self._context.views, self._context.run.plan.tokens
        return [token_routes(user, views[user], tokens) for user in range(self._context.run.n)]

    @cached_property
    def holders(self) -> Ints:
        """Return the holder of each token at each step, -1 if no ledger tells; before the first step it is user 0."""
        plan: WalkPlan = self._context.run.plan
        found = np.full((plan.tokens, plan.steps + 1), -1, dtype=np.int64)
        found[:, 0] = 0
        for user, seen in enumerate(self.of_users):
            for item, visits in enumerate(seen.visits):
                found[item, [visit.step for visit in visits]] = user
        return found


def _unfit(context: AuditContext, routes: _Routes) -> str | None:
    """Return the reason why nothing can be claimed about anybody, or None."""
    run, plan = context.run, context.run.plan
    if plan.order == "ring":
        return "on a ring everybody knows the path: none of it is hidden"
    if plan.noise.name != "gaussian":
        drawn = "without noise" if plan.noise.name == "none" else f"with {plan.noise.name} noise"
        return f"what a hidden path adds is derived for Gaussian noise only, and this walk is {drawn}"
    if plan.order == "graph" and run.n > GRAPH_USERS_MAX:
        return f"on a graph that is not complete the laws of paths are computed for up to {GRAPH_USERS_MAX} users"
    if context.sensitivity > _MU_MAX * plan.noise.scale:
        return f"values may move {_MU_MAX:g} times as far as their noise reaches: a hidden path does not protect them"
    return unlike_plan(context) or _untold(context, routes)


def _untold(context: AuditContext, routes: _Routes) -> str | None:
    """Return the reason why the law of the path cannot be verified from the ledgers, or None."""
    values = context.transcript.values
    if context.transcript.published is None:
        return "what was published cannot be told, and it belongs to every view"
    if context.run.plan.order == "graph" and BOOTSTRAP in context.incomplete:
        return "without bootstrap's whole ledger it cannot be told whether somebody was put out"
    out = put_out(context.views)
    if out:
        return f"user {min(out)} was put out: while it was gone tokens did not move as the law of the path assumes"
    for user in range(context.run.n):
        if user not in values or user not in context.views:
            return f"how many values user {user} contributes cannot be told: its ledger is not at hand"
        if values[user] != 1:
            return f"user {user} contributes {values[user]} values in turn; the law of a path is for one value a user"
    if context.run.plan.order == "complete" and np.any(routes.holders == -1):
        return "how often a token moved cannot be told: some of its steps are in ledgers that are not whole"
    return None


def _who_sees_more(context: AuditContext) -> list[Refusal]:
    found = [Refusal(Observer.NETWORK, Method.HIDDEN_PATH, "whoever watches the network sees the path")]
    if context.colluders:
        reason = "who pools views knows more of the path than the law for one user's view assumes"
        found += [Refusal(one, Method.HIDDEN_PATH, reason) for one in (Observer.COALITION, Observer.POOLED)]
    if has_broker(context.run.spec):
        found.append(
            Refusal(Observer.BROKER, Method.HIDDEN_PATH, "the broker carries every message and so sees the path")
        )
    return found


def _ends(context: AuditContext, routes: _Routes, observers: Sequence[Peer]) -> Ends:
    run, moves, at_hand = context.run, None, frozenset(observers)
    if run.plan.order == "complete":  # on other graphs every step is a move
        moves = [[0, *np.cumsum(np.diff(holders) != 0).tolist()] for holders in routes.holders]

    def gaps_of_all(*, ends_seen: bool) -> list[list[Gap]]:
        return [
            _gaps(context, seen, moves, ends_seen=ends_seen) if user in at_hand else []
            for user, seen in enumerate(routes.of_users)
        ]

    gaps = gaps_of_all(ends_seen=True)
    unended = gaps if run.plan.tokens == 1 else gaps_of_all(ends_seen=False)
    mu_upper = math.nextafter(context.sensitivity / run.plan.noise.scale, math.inf)
    mu_lower = min(_span(run) / run.plan.noise.scale * (1.0 - 1e-12), mu_upper)
    if run.plan.order == "complete":
        alike = not run.by_record  # else sums of rows, of which users may have quite different ones
        of = partial(complete_graph, run.n, mu_upper=mu_upper, mu_lower=mu_lower, delta=context.delta)
        of = partial(of, alike=alike, each=context.each)
        return of(gaps) if gaps == unended else _larger(of(gaps), of(unended))
    neighbours = [neighbours_of(context, user) for user in range(run.n)]
    return general_graph(neighbours, gaps, mu_upper, mu_lower, context.delta, context.each)


def _larger(one: Ends, other: Ends) -> Ends:
    """Return the larger upper end of each pair, with its lower end."""
    lower = np.where(one.upper >= other.upper, one.lower, other.lower)
    return Ends(np.maximum(one.upper, other.upper), lower, np.maximum(one.variation, other.variation))


def _gaps(
    context: AuditContext, seen: TokenRoutes, moves: Sequence[Sequence[int]] | None, *, ends_seen: bool
) -> list[Gap]:
    """Return the gaps of an observer, given that user 0 sends each of several tokens to a user that only it knows.

    User 0 starts a single token itself. The time of the result shows how often the last of several tokens moved; of the
    others it may show nothing, or all.
    """
    plan: WalkPlan = context.run.plan
    starters = [0] if plan.tokens == 1 else [seen.began_at.get(item) for item in range(plan.tokens)]
    return gaps_of(seen.visits, plan.steps, starters, moves=moves, origin=0, ends_seen=ends_seen)


def _span(run: RunPlan) -> float:
    """Return how far apart on the grid two contributions of a user can really be."""
    if run.plan.sensitivity is not None:
        return float(run.plan.sensitivity)
    assert run.spec.data.clip is not None
    grid, bounds = Grid(run.plan.grid_exponent), Bounds(*run.spec.data.clip)
    return float(grid.to_grid(bounds.high) - grid.to_grid(bounds.low)) * math.sqrt(run.dimensions)


def neighbours_of(context: AuditContext, user: Peer) -> tuple[Peer, ...]:
    """Return a user's neighbours as it was told by bootstrap."""
    opening = next(record for record in context.views[user].records if record.kind == OPENED)
    return tuple(int(peer) for peer in opening.body.neighbours)


def _claim(context: AuditContext, ends: Ends, observers: Sequence[Peer]) -> Claim:
    user, observer = np.unravel_index(int(np.nanargmax(ends.upper)), ends.upper.shape)
    worst = int(user), int(observer)
    graph = () if context.run.plan.order == "complete" else (KNOWN_GRAPH,)
    lowest = f"where all others hold one value, epsilon of the worst pair is at least {float(ends.lower[worst]):.6g}"
    return claim_of(
        context.run.protected,
        Observer.NODE,
        Method.HIDDEN_PATH,
        Conditioning.VIEW,
        context.delta,
        worst,
        (OWN_VIEW, *graph, ONE_VALUE, *context.assumptions, lowest),
        epsilon=(float(ends.upper[worst]), float(np.nanmean(ends.upper[:, observers]))),
    )
