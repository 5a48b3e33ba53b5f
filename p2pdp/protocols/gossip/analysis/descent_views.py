"""The views of users of learning by gossip: the course of the run if all arrived, else the rows of what came.

If every message of every round arrived and nothing was published, a user's view follows from the weights of each
round and from the effect of a step on a state (`privacy/linear/descent.py`). That a run is of this kind is verified:
what each user received is compared, at random values of all gradients, with the prediction of the weights. Otherwise
the forms of the replay are written out, one row for each thing that was seen, with one column for each user's gradient
of each step; that is done for runs that are small enough. It leaves out noise of pairs, which can only hide more.

`decay` is what a step takes away of a state besides its noised gradient, per unit of the rate: regularization, and
where gradients are affine in the state their slope too, so that what is left of them does not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from p2pdp.auditor.context import AuditContext
from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.ids import Peer
from p2pdp.core.values import GRADIENT, PAIR, LinearForm, in_order
from p2pdp.ledger.records import MET
from p2pdp.privacy.linear.descent import Course, Told, told
from p2pdp.privacy.linear.krylov import extended
from p2pdp.protocols.gossip.analysis.pair_noise import laplacian_of, ratio_of
from p2pdp.protocols.gossip.analysis.views import ends_drawn, graph_of, masks_hold
from p2pdp.protocols.gossip.sgd import GossipSgdPlan
from p2pdp.topology.weights import meeting_weights, sparse_weights

_ALIKE: Final = 1e-9
_NUMBERS_MAX: Final = 1 << 24  # numbers in the rows of a run that is written out
_DROPPED_VARIANCE: Final = 1e-12  # as a share of the largest


def course_of(plan: GossipSgdPlan, matrices: Sequence[Any], decay: float, ends: Ints | None = None) -> Course:
    """Return the course of a run; `ends` are the users who share noise."""
    rates = [plan.rate_at(step) for step in range(1, plan.gradients + 1)]
    ratio = 0.0
    if plan.message_noise is not None and plan.noise.name != "none":
        ratio = plan.message_noise.scale / plan.noise.scale
    shared = ratio_of(plan) * laplacian_of(plan.n, ends) if ends is not None and len(ends) else None
    return Course(matrices, plan.block, plan.gamma, [1.0 - rate * decay for rate in rates], rates, ratio, shared)


class DescentViews:
    """The views of a run; `reason` says why there are none."""

    def __init__(self, context: AuditContext) -> None:
        self._context = context
        self._plan: GossipSgdPlan = context.run.plan
        self.reason: str | None = None
        self.matrices = _matrices(context)
        self.regular = self.matrices is not None and _follows_weights(context, self.matrices) and masks_hold(context)
        self._rows: _Rows | None = None
        if not self.regular:
            self._rows = self._written_out()

    def _written_out(self) -> _Rows | None:
        if self._context.transcript.published is None or self._context.transcript.unknown:
            self.reason = "what users saw passed through users whose ledgers are not at hand"
            return None
        rows = _Rows(self._context)
        if rows.count * rows.width > _NUMBERS_MAX:
            self.reason = "messages were late or lost, or results published, and the run is too large to write them out"
            return None
        rows.fill()
        return rows

    def told(self, members: Sequence[Peer], decay: float) -> Told:
        """Return what members who pool their views learned of everybody."""
        if self.regular:
            assert self.matrices is not None
            return told(self.course(decay), members)
        assert self._rows is not None
        return self._rows.told(members)

    def course(self, decay: float) -> Course:
        """Return the course of a run in which every message arrived, and no noise of pairs was taken back."""
        assert self.matrices is not None
        return course_of(self._plan, self.matrices, decay, ends_drawn(self._context.transcript))

    @property
    def work(self) -> float:
        """Estimate the number of multiplications for one observer."""
        users, count = self._context.run.n, self._plan.gradients
        if self._rows is not None:
            return float(self._rows.count) / users * self._rows.width * min(self._rows.count, self._rows.width)
        return work_of(users, count, self._plan.block, noised=self._plan.message_noise is not None)


def work_of(users: int, gradients: int, block: int, *, noised: bool) -> float:
    """Estimate the number of multiplications for one observer whose view follows from the weights."""
    heard = min(users, 8 * block)
    filters = (block if noised else 1) * (8 if noised else 4) * gradients * users**3
    return float(filters + gradients**2 * heard * users**2 + users * gradients**3 * heard)


def _matrices(context: AuditContext) -> list[Any] | None:
    """Return the weights of each round, by graph or meetings; None if they are unknown."""
    plan: GossipSgdPlan = context.run.plan
    n = context.run.n
    if any(not context.is_at_hand(user) for user in range(n)):
        return None
    if plan.coin is None:
        graph = graph_of(context)
        return None if graph is None else [sparse_weights(graph, plan.weights)] * plan.rounds
    met: list[list[tuple[Peer, Peer]]] = [[] for _ in range(plan.rounds)]
    for user in range(n):
        for record in context.views[user].records:
            if record.kind == MET:
                number, peers = record.body
                if not 1 <= number <= plan.rounds:
                    return None
                met[number - 1] += [(user, peer) for peer in peers if peer > user]
    return [meeting_weights(n, pairs, plan.weights, plan.degree_max) for pairs in met]


def _follows_weights(context: AuditContext, matrices: Sequence[Any]) -> bool:
    """Return whether each user received exactly the messages of a run without delay, loss or publication."""
    plan: GossipSgdPlan = context.run.plan
    transcript, n = context.transcript, context.run.n
    if transcript.published or transcript.seen_by_roles or len(transcript.received) != n:
        return False
    random = np.random.Generator(np.random.Philox(key=1))
    values = random.normal(size=(n, plan.gradients))
    expected: list[list[float]] = [[] for _ in range(n)]
    now = before = np.zeros(n)
    for number, matrix in enumerate(matrices, start=1):
        if plan.begins_block(number):
            visit = (number - 1) // plan.block
            rate = plan.rate_at(visit + 1)
            now = now * (1.0 - rate * plan.descent.regularization) - rate * values[:, visit]
        entries = matrix.tocoo()
        across = (entries.row != entries.col) & (entries.data != 0.0)
        for to, sender in zip(entries.row[across].tolist(), entries.col[across].tolist(), strict=True):
            expected[to].append(float(now[sender]))
        gamma = plan.gamma_at(number)
        before, now = now, gamma * (matrix @ now) + (1.0 - gamma) * before
    found = _evaluated([form for user in range(n) for form in transcript.received[user]], transcript.ordered, values)
    at = 0
    for user in range(n):
        mine = np.sort(found[at : at + len(transcript.received[user])])
        at += len(mine)
        theirs = np.sort(expected[user])
        if len(mine) != len(theirs) or not np.allclose(mine, theirs, rtol=_ALIKE, atol=_ALIKE):
            return False
    return True


def _evaluated(forms: Sequence[LinearForm], ordered: Sequence[LinearForm], values: Floats) -> Floats:
    """Return the values of forms at these gradients and without noise; `ordered` has parents first."""
    known: dict[int, float] = {}
    for form in ordered:
        total = 0.0
        for source, weight in form.terms:
            if source.kind == GRADIENT:
                total += weight * float(values[source.peer, source.number])
            elif source.kind not in ("draw", PAIR):
                total = float("nan")
        known[id(form)] = total + sum([known[id(parent)] * weight for parent, weight in form.parents])
    return np.array([known[id(form)] for form in forms])


class _Rows:
    """All that was seen, as rows over noised gradients and draws on messages, each in units of its noise."""

    def __init__(self, context: AuditContext) -> None:
        self._context = context
        self._plan: GossipSgdPlan = context.run.plan
        transcript = context.transcript
        self._every = [form for forms in transcript.received.values() for form in forms]
        self._every += [*(transcript.published or ()), *transcript.seen_by_roles]
        self._own = _own_draws(self._every)
        self._columns: dict[tuple[Peer, int], int] = {}
        if self._plan.message_noise is not None:
            for user, drawn in sorted(transcript.draws.items()):
                for number in range(len(drawn)):
                    if (user, number) not in self._own:
                        self._columns[user, number] = len(self._columns)
        self._places: dict[int, int] = {}
        for form in self._every:
            self._places.setdefault(id(form), len(self._places))
        self._table = np.zeros((0, 0))

    @property
    def count(self) -> int:
        return len(self._places)

    @property
    def width(self) -> int:
        return self._context.run.n * self._plan.gradients + len(self._columns)

    def fill(self) -> None:
        ordered = in_order(self._every)
        uses: dict[int, int] = {}
        for form in ordered:
            for parent, _ in form.parents:
                uses[id(parent)] = uses.get(id(parent), 0) + 1
        self._table = np.zeros((self.count, self.width))
        live: dict[int, Floats] = {}
        for form in ordered:
            row = self._terms(form)
            for parent, weight in form.parents:
                row += live[id(parent)] * weight
                uses[id(parent)] -= 1
                if not uses[id(parent)]:
                    del live[id(parent)]
            if uses.get(id(form)):
                live[id(form)] = row
            if id(form) in self._places:
                self._table[self._places[id(form)]] = row

    def _terms(self, form: LinearForm) -> Floats:
        row, count = np.zeros(self.width), self._plan.gradients
        extra = self._plan.message_noise
        for source, weight in form.terms:
            if source.kind == GRADIENT:
                row[source.peer * count + source.number] += weight
            elif (source.peer, source.number) in self._columns:
                assert extra is not None
                # In units of a gradient's noise; without any, every leak is total.
                scale = extra.scale / self._plan.noise.scale if self._plan.noise.name != "none" else 0.0
                column = self._context.run.n * count + self._columns[source.peer, source.number]
                row[column] += weight / self._plan.step * scale
        return row

    def told(self, members: Sequence[Peer]) -> Told:
        transcript, count, n = self._context.transcript, self._plan.gradients, self._context.run.n
        forms = [form for member in members for form in transcript.received.get(member, ())]
        forms += transcript.published or ()
        if not members:
            forms += transcript.seen_by_roles
        chosen = sorted({self._places[id(form)] for form in forms})
        rows = self._table[chosen]
        for member in members:
            rows[:, member * count : (member + 1) * count] = 0.0
        known = [n * count + place for (user, _), place in self._columns.items() if user in members]
        rows[:, known] = 0.0
        lengths = np.sqrt((rows**2).sum(axis=1))
        rows = rows[lengths > 0.0] / lengths[lengths > 0.0][:, None]
        split = n * count
        if self._columns:
            seen, kept, dropped = _whitened(rows[:, :split], rows[:, split:])
        else:
            basis, kept, dropped = extended(np.zeros((split, 0)), rows.T)
            seen = basis.T
        parts = seen.reshape(-1, n, count).transpose(1, 2, 0)
        return Told(np.asarray(parts @ parts.transpose(0, 2, 1)), kept, dropped)


def _whitened(rows: Floats, noise: Floats) -> tuple[Floats, float, float]:
    if not len(rows):
        return rows, 1.0, 0.0
    values, vectors = np.linalg.eigh(rows @ rows.T + noise @ noise.T)
    chosen = values > _DROPPED_VARIANCE * values[-1]
    kept, dropped = values[chosen].min() / values[-1], max(0.0, values[~chosen].max(initial=0.0)) / values[-1]
    return vectors[:, chosen].T @ rows / np.sqrt(values[chosen])[:, None], float(kept**0.5), float(dropped**0.5)


def _own_draws(forms: Sequence[LinearForm]) -> set[tuple[Peer, int]]:
    """Return the draws that noise a gradient: each is in the form in which it was added to the gradient."""
    found = set()
    for form in in_order(forms):
        if len(form.parents) == 1 and len(form.terms) == 1 and form.terms[0][0].kind == "draw":
            (parent, _), (source, _) = form.parents[0], form.terms[0]
            if not parent.parents and [term.kind for term, _ in parent.terms] == [GRADIENT]:
                found.add((source.peer, source.number))
    return found
