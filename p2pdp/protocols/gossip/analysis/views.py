"""Exact leaks of a run of gossip, from what was really exchanged.

Two computations agree: if every message of every round arrived, none was noised or published and
the graph stayed as it was, the view of a user follows from the weights (`privacy/linear/krylov.py`); else the
forms of the replay are laid out in layers (`privacy/linear/layers.py`). That a run is of the first kind is
verified: what each user received is compared, at random values modulo primes, with the prediction of the weights.

Leaks are in units of the leak of a user's own noised value, so they lie between 0 and 1, where 1 is the local
ceiling. A user's own result is nobody else's view unless it was published.

With noise of pairs y is a user's value with all of its noise, and the y have a covariance, from which the draws that an
observer holds an end of are missing. That y is all that messages are made of is verified (`masks_hold`): it is not
where noise of pairs was taken back, and then the linear account applies. No leak is above that of an observer of all y
(`privacy/pairwise.py`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from p2pdp.auditor.context import Ahead, AuditContext
from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.ids import Peer
from p2pdp.core.values import GRADIENT, LinearForm, Source
from p2pdp.ledger.records import OPENED
from p2pdp.privacy.linear.descent import without
from p2pdp.privacy.linear.filter import filter_is_quicker, filtered_span, seen_draws_are_fresh
from p2pdp.privacy.linear.krylov import Span, fixed_span, packed, unpacked
from p2pdp.privacy.linear.layers import (
    Layers,
    View,
    fixed_layers,
    layered_span,
    modular_ranks,
    raised,
    slack_of,
    stochastic_residues,
)
from p2pdp.privacy.linear.modular import MODULUS, PRIMES, residue
from p2pdp.privacy.pairwise import pair_leaks
from p2pdp.protocols.gossip.analysis.forms import OWN_NOISE, Stack, collapsed, evaluated
from p2pdp.protocols.gossip.analysis.pair_noise import laplacian_of, ratio_of
from p2pdp.replay.evidence import Evidence
from p2pdp.replay.transcript import Transcript
from p2pdp.topology.graphs import Graph, graph_of_edges
from p2pdp.topology.weights import sparse_weights

_ALIKE: Final = 1e-6  # largest difference of leaks computed in two ways
_SHORT_STRIDES: Final = (2, 1)
_BELOW: Final = (1e-9, 1e-7, 1e-11, 1e-5)  # pivots below it count as rounding; tried in this order


@dataclass(frozen=True, slots=True)
class Spans:
    """The spans of some observers' views, with leaks rounded up, and how their ranks were determined."""

    spans: list[Span]
    proved: int  # views whose rank is proved
    deflated: int  # views with less than full rank, on which all primes agree
    raised: int  # views that lost rows by rounding, so that everything counts as disclosed

    @property
    def without_leaks(self) -> Spans:
        return replace(self, spans=[replace(span, leaks=np.zeros(0)) for span in self.spans])

    @property
    def kept(self) -> float:
        return min((span.kept for span in self.spans), default=1.0)

    @property
    def dropped(self) -> float:
        return max((span.dropped for span in self.spans), default=0.0)

    @property
    def slack(self) -> float:
        return max((slack_of(span) for span in self.spans), default=0.0)


def together(several: Sequence[Spans]) -> Spans:
    """Return the spans of several blocks of observers as those of one."""
    return Spans(
        [span for one in several for span in one.spans],
        sum(one.proved for one in several),
        sum(one.deflated for one in several),
        sum(one.raised for one in several),
    )


class GossipViews:
    """The views of a run, laid out once, to answer for any observers."""

    def __init__(self, context: AuditContext) -> None:
        run, transcript = context.run, context.transcript
        assert transcript.published is not None
        self._plan = run.plan
        self._each, self._ahead = context.each, context.ahead
        self._users = run.n
        self._noised = run.plan.noise.name != "none"
        self._received = transcript.received
        self._published: Sequence[LinearForm] = transcript.published
        self._totals: Sequence[LinearForm] = transcript.seen_by_roles
        self.graph = graph_of(context)
        self.weights: Any = None if self.graph is None else sparse_weights(self.graph, run.plan.weights)
        self.regular = self.graph is not None and self._follows_weights(transcript)
        self._unknown: set[int] = set()
        self._ends = ends_drawn(transcript)
        self._laplacian = np.zeros((1, 1))  # with noise of pairs as large as a number for each pair of users
        if len(self._ends):
            self._laplacian = ratio_of(run.plan) * laplacian_of(run.n, self._ends)
        if self.regular:
            self.layers: Layers = fixed_layers(self.weights, run.plan.rounds)
        else:
            self._lay_out()

    def view(self, members: Sequence[Peer]) -> View | None:
        """Return the members' view; None if it depends on messages of users without ledgers."""
        if self.regular:
            assert self.graph is not None
            heard = sorted({near for member in members for near in self.graph.neighbours[member]})
            rounds = range(self._plan.rounds)
            return View(dict.fromkeys(rounds, heard) if heard else {}, members)
        forms = [form for member in members for form in self._received.get(member, ())]
        drawn = [number for (peer, _), number in self._draws.items() if peer in members]
        return self._view_of([*forms, *self._published], members, drawn)

    def curator(self) -> View | None:
        """Return the view of the curator: messages to it, and what it published."""
        return View({}) if self.regular else self._view_of([*self._totals, *self._published], (), ())

    def public(self) -> View | None:
        return View({}) if self.regular else self._view_of(self._published, (), ())

    def network(self) -> View | None:
        """Return the view of an observer of all messages, who knows nobody's draws."""
        if self.regular:
            return View({0: range(self._users)} if self._plan.rounds else {})
        received = [form for forms in self._received.values() for form in forms]
        return self._view_of([*received, *self._totals, *self._published], (), ())

    def _with_spread(self, view: View) -> View:
        """Return a view with the covariance of all y, in own noise, given the draws that its members hold an end of.

        It is as large as a number for each pair of users, so one view at a time has it.
        """
        if not len(self._ends):
            return view
        return replace(view, spread=np.eye(self._users) + without(self._laplacian, list(view.members)))

    def most(self, members: Sequence[Peer]) -> Floats:
        """Return the leaks to members who see all y."""
        if not len(self._ends):
            return np.ones(self._users)
        graph = graph_of_edges(self._users, self._ends.tolist())
        return np.nan_to_num(pair_leaks(graph, 1.0, math.sqrt(ratio_of(self._plan)), members), nan=1.0)

    def spans(self, views: Sequence[View]) -> Spans:
        """Return the spans of views with leaks rounded up."""
        if self.all_is_published:
            whole = Span(np.ones(self._users), self._users, self._users, 1.0, 0.0)
            return Spans(self._all_capped(views, [whole] * len(views)), len(views), 0, 0)
        rows = self._ahead(self._about(views))
        spans = self._of_each(len(views), lambda at: self._span(views[at])) if rows is None else [*map(unpacked, rows)]
        sources = self._users + self.layers.noises
        fresh = [self.layers.noises > 0 and seen_draws_are_fresh(self.layers, view) for view in views]
        ranks = [span.rows for span in spans]
        self._rank(views, spans, ranks, [at for at, is_fresh in enumerate(fresh) if not is_fresh], PRIMES[:1])
        full = [rank == min(span.rows, sources) for rank, span in zip(ranks, spans, strict=True)]
        doubtful = [at for at, is_full in enumerate(full) if not is_full]
        self._rank(views, spans, ranks, doubtful, PRIMES[1:])
        first = spans
        spans = self._of_each(len(views), lambda at: self._agreed(views[at], first[at], ranks[at]))
        found = [raised(span, rank) for span, rank in zip(spans, ranks, strict=True)]
        if not self._noised:  # all or nothing
            found = [replace(span, leaks=np.where(span.leaks > 0.0, 1.0, 0.0)) for span in found]
        lost = sum(rank > span.rank for span, rank in zip(spans, ranks, strict=True))
        return Spans(self._all_capped(views, found), sum(full), len(doubtful), lost)

    def _about(self, views: Sequence[View]) -> Any:
        """Return what `spans_ahead` is about, if these views are of that kind."""
        members = [tuple(view.members) for view in views]
        alone = members == [(user,) for user in range(self._users)]
        return (self.graph, self._plan.rounds) if alone and self.regular and not len(self._ends) else None

    def _of_each(self, count: int, span: Callable[[int], Span]) -> list[Span]:
        return [unpacked(row) for row in self._each(count, lambda at: packed(span(at)))]

    def _all_capped(self, views: Sequence[View], spans: Sequence[Span]) -> list[Span]:
        if not len(self._ends):
            return list(spans)
        return self._of_each(len(views), lambda at: self._capped(views[at], spans[at]))

    def _capped(self, view: View, span: Span) -> Span:
        rounding = 4.0 * self._users * float(np.finfo(np.float64).eps) * (1.0 + 2.0 * self._laplacian.max())
        return replace(span, leaks=np.minimum(span.leaks * (1.0 + rounding), self.most(view.members)))

    def _rank(
        self,
        views: Sequence[View],
        spans: Sequence[Span],
        ranks: list[int],
        which: Sequence[int],
        primes: Sequence[int],
    ) -> None:
        """Set the ranks of these views to the largest modulo the primes; the first prime replaces earlier ranks."""
        most = max((span.rank for span in spans), default=0)
        for prime in primes if which else ():
            found = modular_ranks(self.layers, [views[at] for at in which], most, prime, self._each)
            for at, rank in zip(which, found, strict=True):
                ranks[at] = rank if prime == PRIMES[0] else max(ranks[at], rank)

    @cached_property
    def all_is_published(self) -> bool:
        """Return whether each user's noised value follows from the published ones: proved by their rank."""
        if self.regular or self.layers.noises or len(self._published) < self._users:
            return False
        view = self.public()
        return view is not None and modular_ranks(self.layers, [view], self._users, PRIMES[0])[0] == self._users

    def _span(self, view: View) -> Span:
        view = self._with_spread(view)
        if self.regular and view.members:
            assert self.graph is not None
            return fixed_span(self.weights, self.graph.neighbours, view.members, self._plan.rounds, view.spread)
        if not view.seen:
            leaks = np.zeros(self._users)
            leaks[list(view.members)] = 1.0
            return Span(leaks, len(view.members), len(view.members), 1.0, 0.0)
        if self.layers.noises and filter_is_quicker(self.layers, view):
            return filtered_span(self.layers, view)
        return layered_span(self.layers, view)

    def _agreed(self, view: View, span: Span, rank: int) -> Span:
        """Repeat in shorter strides until both ranks agree, if floats mistook rounding for a row or the reverse."""
        if span.rank == rank or self.regular or self.layers.noises:
            return span
        view = self._with_spread(view)
        for below in _BELOW:
            again = layered_span(self.layers, view, _SHORT_STRIDES, below)
            if again.rank == rank and (span.rank != rank or again.doubt < span.doubt):
                span = again
                if span.doubt < _ALIKE:
                    break
        return span

    def _follows_weights(self, transcript: Transcript) -> bool:
        """Return whether each user received exactly the messages of a run without delay, loss, noise or publication.

        Forms are compared modulo primes, at values that are random for each input and each user's noise.
        """
        plan = self._plan
        if self._published or self._totals or plan.message_noise is not None or len(self._received) != self._users:
            return False
        random = np.random.Generator(np.random.Philox(key=1))
        inputs, noises = random.integers(0, MODULUS, (2, self._users)).tolist()
        values = {Source("input", user, 0): value for user, value in enumerate(inputs)}
        noised = inputs
        if self._noised:
            scale = pow(residue(plan.step), -1, MODULUS)
            values |= {Source("draw", user, OWN_NOISE): value * scale for user, value in enumerate(noises)}
            noised = [sum(pair) for pair in zip(inputs, noises, strict=True)]
            for source in transcript.pairs:
                value = int(random.integers(MODULUS))
                values[source] = value * scale
                noised[source.peer] += value
                noised[source.other] -= value
        received = [form for forms in self._received.values() for form in forms]
        computed = iter(evaluated(received, transcript.ordered, values))
        expected = self._expected(noised)
        return all(Counter(next(computed) for _ in forms) == expected[user] for user, forms in self._received.items())

    def _expected(self, values: Sequence[int]) -> list[Counter[int | None]]:
        """Return the messages that each user would have received, by the weights alone."""
        assert self.graph is not None
        plan, weights = self._plan, self.weights
        rests = stochastic_residues(weights).tolist()
        places, ends = weights.indices.tolist(), weights.indptr.tolist()
        grown, shrunk = residue(plan.gamma), residue(1.0 - plan.gamma)
        found: list[Counter[int | None]] = [Counter() for _ in range(self._users)]
        before, now = values, [value % MODULUS for value in values]
        for number in range(1, plan.rounds + 1):
            for user, near in enumerate(self.graph.neighbours):
                found[user].update(now[other] for other in near)
            moved = [
                sum(rests[at] * now[places[at]] for at in range(ends[user], ends[user + 1])) % MODULUS
                for user in range(self._users)
            ]
            if number > 1 and plan.gamma != 1.0:
                moved = [(grown * one + shrunk * old) % MODULUS for one, old in zip(moved, before, strict=True)]
            before, now = now, moved
        return found

    def _lay_out(self) -> None:
        forms = [form for several in self._received.values() for form in several]
        every = [*forms, *self._published, *self._totals]
        nodes, of_form = collapsed(every, self._plan.step, noised=self._noised)
        extra, noise = self._plan.message_noise, self._plan.noise
        deviation = 0.0 if extra is None else extra.scale / noise.scale if self._noised else 1.0
        stack = Stack(self._users, nodes, deviation)
        self.layers, self._draws = stack.layers, stack.draws
        self._places = {id(form): stack.place(node) for form, node in zip(every, of_form, strict=True)}
        self._unknown = {id(form) for form, node in zip(every, of_form, strict=True) if nodes[node].unknown}

    def _view_of(self, forms: Sequence[LinearForm], members: Sequence[Peer], drawn: Sequence[int]) -> View | None:
        if any(id(form) in self._unknown for form in forms):
            return None
        seen: dict[int, set[int]] = {}
        for form in forms:
            layer, place = self._places[id(form)]
            seen.setdefault(layer, set()).add(place)
        places = {layer: sorted(places) for layer, places in seen.items()}
        return View(places, members, drawn)


def ends_drawn(transcript: Transcript, number: int = 0) -> Ints:
    """Return the users who shared a draw of this number, the lower-numbered one first."""
    found = sorted((source.peer, source.other) for source in transcript.pairs if source.number == number)
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def masks_hold(context: AuditContext) -> bool:
    """Return whether noise of pairs is that of the plan, and is in all that was seen wherever its users' values are.

    If all values are minus what is added to them, nothing is left of any form: forms are evaluated modulo primes.
    """
    plan, transcript = context.run.plan, context.transcript
    if not transcript.pairs:
        return True
    if any(mechanism != plan.pair_noise for mechanism in transcript.pairs.values()):
        return False
    return follows_masks(transcript, plan.step, transcript.pairs)


def follows_masks(transcript: Transcript, step: float, sources: Iterable[Source]) -> bool:
    """Return whether these draws are in all that was seen wherever contributions are of the users who share them."""
    random, scale = np.random.Generator(np.random.Philox(key=3)), pow(residue(step), -1, MODULUS)
    values: dict[Source, int] = dict.fromkeys(transcript.pairs, 0)
    for user, drawn in transcript.draws.items():
        values |= {Source("draw", user, number): 0 for number in range(len(drawn))}
    kind = GRADIENT if transcript.models else "input"
    masks: dict[Source, int] = {}
    for source in sources:
        value = int(random.integers(MODULUS))
        values[source] = value * scale
        for user, sign in ((source.peer, -1), (source.other, 1)):
            mine = Source(kind, user, source.number)
            masks[mine] = masks.get(mine, 0) + sign * value
    for user, number in transcript.models or dict.fromkeys((user, 0) for user in transcript.values):
        values[Source(kind, user, number)] = masks.get(Source(kind, user, number), 0)
    found = evaluated(transcript.told, transcript.ordered, values)
    return not any(found) and (None not in found or bool(transcript.unknown))


def graph_of(context: AuditContext) -> Graph | None:
    """Return the graph of a run of fixed weights, on which all ledgers agree; None if there is none."""
    plan, n = context.run.plan, context.run.n
    if not plan.in_rounds or plan.coin is not None:
        return None
    rows: list[tuple[int, ...]] = []
    for user in range(n):
        contents = context.views.get(user)
        if contents is None or not contents.records or contents.records[0].kind != OPENED:
            return None
        near = contents.records[0].body.neighbours
        rows.append(tuple(other for other in range(n) if other != user) if near is None else tuple(sorted(near)))
    return _agreed_on(rows)


def spans_ahead(evidence: Evidence) -> Ahead | None:
    """Return the spans of all users if every message arrives, packed, by what their ledgers begin with."""
    run = evidence.run
    plan = run.plan
    if not plan.in_rounds or (plan.coin, plan.message_noise, plan.pair_noise) != (None, None, None):
        return None
    told = [evidence.neighbours_told(user) for user in range(run.n)]
    graph = None if None in told else _agreed_on([tuple(near) for near in told if near is not None])
    if graph is None or plan.publish != "none":
        return None
    weights = sparse_weights(graph, plan.weights)
    about = graph, plan.rounds
    return Ahead(about, lambda user: packed(fixed_span(weights, graph.neighbours, (user,), plan.rounds)))


def _agreed_on(rows: Sequence[tuple[int, ...]]) -> Graph | None:
    """Return the graph with these neighbours of each user; None where only one of two names the other."""
    edges = {(user, other) for user, row in enumerate(rows) for other in row}
    if any((other, user) not in edges for user, other in edges):
        return None
    return graph_of_edges(len(rows), sorted(edges))
