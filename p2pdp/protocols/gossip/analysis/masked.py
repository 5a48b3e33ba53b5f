"""Bounds from noise of pairs: for whoever sees all messages, whatever contributions depend on.

All that users send follows from their contributions with own noise and noise of pairs, so whoever sees these knows no
less (guide/accounting.md, section 7). Contributions of later gradients depend on earlier ones as they were seen, so
those of one user compose as Gaussians of a fixed size:

    mu_u^2 = sum over its contributions of sensitivity^2 e_u' (sigma^2 + pair_sigma^2 L)^-1 e_u,

L being the Laplacian of those who share noise, without the edges of the members of a coalition, who know these draws.
It bounds every observer. After a run, noise of pairs that was not with the contributions of both its ends in all that
was seen counts as known to everybody: it was taken back, or one end was out of the run before. Which that is follows
from the replay (`views.follows_masks`); only edges of users who were put out are looked at one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from p2pdp.auditor import sampled
from p2pdp.auditor.claims import claim_of, gaussian_claim, worst_of
from p2pdp.auditor.context import (
    COMPUTATIONAL,
    NO_KEYS,
    NOBODY_OUT,
    PUBLIC_ROUTE,
    AccountResult,
    AuditContext,
    refused,
    sensitivity_of,
    unlike_plan,
)
from p2pdp.auditor.local import not_told
from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.claims import Claim, Conditioning, Method, Name, Observer
from p2pdp.core.errors import Refused
from p2pdp.core.ids import BOOTSTRAP, Peer
from p2pdp.core.messages import OUT, Exclusion
from p2pdp.core.values import Source
from p2pdp.ledger.records import RECEIVED, SENT, public_message
from p2pdp.privacy.linear.view import ROUNDED_UP
from p2pdp.privacy.pairwise import leaks_to_each, pair_leaks
from p2pdp.privacy.subsampled import Steps, epsilon_of
from p2pdp.protocols.gossip.analysis.pair_noise import ends_of, ratio_of
from p2pdp.protocols.gossip.analysis.views import follows_masks
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.transcript import Transcript
from p2pdp.topology.graphs import Graph, graph_of_edges

_ALL_SEEN: Final = "it is taken to see every contribution with all of its noise: whatever is sent follows from these"
_KNOWN: Final = "{} draws of pairs were taken back, or are with one end only: they count as known"
_UNLIKE: Final = "what was sent is not made of contributions with their noise of pairs: the local ceiling stands"
_WORK_MAX: Final = 1e9  # beyond it one inverse serves all single users
_LOOKED_AT_MAX: Final = 64  # edges of users who were put out

Edge = tuple[Peer, Peer]
_OBSERVERS: Final = (Observer.NODE, Observer.NETWORK)


@dataclass(frozen=True)
class Masked:
    """Graphs of those who share noise, each with how many contributions of each user had it."""

    run: RunPlan
    graphs: Sequence[tuple[Graph, Ints]]
    share: float = 1.0  # the largest chance with which a row enters a contribution

    def claims(self, delta: float, colluders: Sequence[Peer], stated: Sequence[str]) -> AccountResult:
        """Return claims about every single user, colluders, and an observer who holds nobody's keys."""
        n, result = self.run.n, AccountResult()
        stated = (*stated, _ALL_SEEN, COMPUTATIONAL)

        def add(observer: Observer, leaks: Sequence[Floats], names: Sequence[Name], *more: str) -> None:
            result.add(self._claims(observer, delta, leaks, names, (*stated, *more)))

        if n > 1:
            try:
                add(Observer.NODE, self._to_each(), range(n))
            except Refused as reason:
                result.refusals += refused((Observer.NODE,), Method.EXACT, str(reason)).refusals
        if 0 < len(colluders) < n:
            add(Observer.COALITION, self._leaks(colluders), [tuple(colluders)])
        everything = self._leaks(())
        for role in (Observer.CURATOR, Observer.PUBLIC) if self.run.plan.publish != "none" else ():
            add(role, everything, [role])
        add(Observer.NETWORK, everything, [Observer.NETWORK], NO_KEYS)
        return result

    def _leaks(self, members: Sequence[Peer]) -> list[Floats]:
        """Return the leak of each user in a contribution with each graph, for whoever knows the draws of members."""
        ratio = math.sqrt(ratio_of(self.run.plan))
        return [pair_leaks(graph, 1.0, ratio, members)[:, None] for graph, _ in self.graphs]

    def _to_each(self) -> list[Floats]:
        """Return the leak of each user (row) for each single user; raise `Refused` where that is too much."""
        n = self.run.n
        if float(n) ** 4 * len(self.graphs) > _WORK_MAX:
            return [leaks_to_each(graph, 1.0, math.sqrt(ratio_of(self.run.plan))) for graph, _ in self.graphs]
        by_user = [self._leaks([user]) for user in range(n)]
        return [np.hstack(columns) for columns in zip(*by_user, strict=True)]

    def _claims(
        self, observer: Observer, delta: float, leaks: Sequence[Floats], names: Sequence[Name], stated: tuple[str, ...]
    ) -> list[Claim]:
        run, scale = self.run, self.run.plan.noise.scale
        total = np.zeros((run.n, len(names)))
        for leak, (_, times) in zip(leaks, self.graphs, strict=True):
            total += times[:, None] * leak
        if self.share >= 1.0:
            mu = np.asarray(sensitivity_of(run) / scale * np.sqrt(total) * ROUNDED_UP)
            return [gaussian_claim(run.protected, observer, Method.EXACT, delta, mu, names, stated)]
        # What others add is known at worst. Of all directions only one tells a row's part, which in deviations of the
        # noise there is so long: the root of the leak times what it is in deviations of the user's own noise.
        part = sampled.ratio_of(run, scale)
        steps = [
            Steps(self.share, part * math.sqrt(float(np.nanmax(leak))) * ROUNDED_UP, int(times.max()))
            for leak, (_, times) in zip(leaks, self.graphs, strict=True)
        ]
        return [
            claim_of(
                protected,
                observer,
                Method.EXACT,
                Conditioning.PUBLIC,
                delta,
                worst_of(total, names),
                (*stated, sampled.HIDDEN_ROWS),
                epsilon=(epsilon_of(steps, protected.relation, delta), None),
            )
            for protected in sampled.relations(run)
        ]


def masked_a_priori(run: RunPlan, delta: float, colluders: Sequence[Peer], contributions: int) -> list[Claim]:
    """Return claims that hold if nobody is put out of the run; none where there is no noise of pairs."""
    if run.plan.pair_noise is None or run.graph is None:
        return []
    graph = graph_of_edges(run.n, ends_of(run).tolist())
    share = sampled.share_of(run.plan.protection)
    masked = Masked(run, [(graph, np.full(run.n, contributions))], share)
    found = masked.claims(delta, colluders, (NOBODY_OUT,)).claims
    return [replace(claim, conditioning=Conditioning.A_PRIORI) for claim in found]


def masked_account(context: AuditContext) -> AccountResult:
    """Return the claims of a run in which users contribute again and again; nothing without noise of pairs."""
    run, transcript = context.run, context.transcript
    if run.plan.pair_noise is None or not_told(context) is not None:
        return AccountResult()
    unlike = unlike_plan(context)
    if unlike is None and any(mechanism != run.plan.pair_noise for mechanism in transcript.pairs.values()):
        unlike = _UNLIKE
    known = known_draws(context) if unlike is None else None
    if known is None:
        return refused(_OBSERVERS, Method.EXACT, unlike or _UNLIKE)
    stated = (PUBLIC_ROUTE, *((_KNOWN.format(len(known)),) if known else ()), *context.assumptions)
    share = max(sampled.share_of(one) for own in transcript.own_noise.values() for one in own)
    return Masked(run, _graphs(run, transcript, known), share).claims(context.delta, context.colluders, stated)


def _graphs(run: RunPlan, transcript: Transcript, known: set[Source]) -> list[tuple[Graph, Ints]]:
    """Return the graphs of all contributions, the same one once."""
    made = np.array([len(transcript.own_noise[user]) for user in range(run.n)])
    times: dict[tuple[Edge, ...], Ints] = {}
    edges: dict[int, list[Edge]] = {number: [] for number in range(int(made.max(initial=0)))}
    for source in transcript.pairs:
        if source not in known:
            edges.setdefault(source.number, []).append((source.peer, source.other))
    for number, some in edges.items():
        key = tuple(sorted(some))
        times[key] = times.get(key, np.zeros(run.n, dtype=np.int64)) + (made > number)
    return [(graph_of_edges(run.n, some), count) for some, count in times.items()]


def known_draws(context: AuditContext) -> set[Source] | None:
    """Return noise of pairs that was not with the contributions of both its ends; None if that is not all.

    What is taken back is what was drawn with a user from some contribution on.
    """
    transcript, step = context.transcript, context.run.plan.step
    by_edge: dict[Edge, list[Source]] = {}
    for source in sorted(transcript.pairs):
        by_edge.setdefault((source.peer, source.other), []).append(source)

    def follow(*some: Sequence[Source]) -> bool:
        return follows_masks(transcript, step, [source for sources in some for source in sources])

    if follow(*by_edge.values()):
        return set()
    out = _out_of(context)
    doubtful = [some for edge, some in by_edge.items() if out & set(edge)]
    if not follow(*(some for edge, some in by_edge.items() if not out & set(edge))):
        return None
    known: set[Source] = set()
    for some in doubtful:
        low, high = 0, 0 if len(doubtful) > _LOOKED_AT_MAX else len(some)
        while low < high:  # the most draws from the first on that are where they should be
            middle = (low + high + 1) // 2
            low, high = (middle, high) if follow(some[:middle]) else (low, middle - 1)
        known.update(some[low:])
    return known


def _out_of(context: AuditContext) -> set[Peer]:
    """Return the users of whom bootstrap said that they are out."""
    found: set[Peer] = set()
    for owner, contents in context.views.items():
        for record in contents.records:
            told = record.kind == RECEIVED and record.body.sender == BOOTSTRAP
            if (told or (owner == BOOTSTRAP and record.kind == SENT)) and public_message(record).type == OUT:
                found.add(Exclusion(*public_message(record).fields).peer)
    return found
