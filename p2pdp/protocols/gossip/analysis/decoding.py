"""The attack of one user of gossip: noised values of others, read from its own view and public facts.

In a round of synchronous gossip the observer hears (W^t y)_w of each neighbour w, y being the users' noised values.
It keeps an orthonormal basis of what it heard, and how each vector of the basis is made of messages; a user whose
unit vector lies in the span is read off as the same combination of the received values. Floats are precise enough
for that. The attack assumes that every message of every round was delivered to everybody: where rounds were skipped
it reads wrong values. Where messages carry noise of their own the combination adds noise up, so only the neighbours'
first messages are read, which are as far off as that noise. The same holds if the graph changes: a user knows its own
edges of each round only.

In randomized gossip a user knows its own activations with their numbers, and nobody else's. A peer that it meets for
the first time sends its noised value if that peer has met nobody before: that is certain if the observer was in
all activations before this one, or is the peer's only neighbour on a known graph. Later states mix others' values
in shares that depend on the unknown order of their activations.

From learners that the observer meets in the first round it reads the first noised gradient, if models begin at zeros.

Noise of pairs hides users who share it with each other. It cancels in the sum over a component of the graph without
the observer, who knows the draws of which it holds an end: so such sums are read, of single users where their only
neighbour is the observer.

Values are in steps of the grid, as for walks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final

import numpy as np

from p2pdp.attacks.linear import shared_draws
from p2pdp.core.arrays import Floats
from p2pdp.core.errors import Refused
from p2pdp.core.ids import Peer, is_user
from p2pdp.ledger.records import (
    RECEIVED,
    SENT,
    Contents,
    carries_message,
    public_message,
    whole_message,
)
from p2pdp.mechanisms import dither
from p2pdp.protocols.defaults import with_graph
from p2pdp.protocols.gossip.plan import ACTIVATIONS, EXCHANGE, Activations, AveragingPlan, GossipPlan
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.topology.components import component_labels
from p2pdp.topology.graphs import Graph
from p2pdp.topology.weights import sparse_weights

_KEPT_FROM: Final = 1e-9
_READ_WITHIN: Final = 1e-9
_BLURRED_FROM: Final = 0.1  # share of a user's noise above which a reading blurred by dithers is useless


def read_gossip(
    run: RunPlan, observer: Peer, contents: Contents
) -> list[tuple[tuple[Peer, ...], Any, list[tuple[int, int]]]]:
    """Return the noised values that can be read one by one."""
    plan = run.plan
    groups = [(user,) for user in range(run.n)] if plan.pair_noise is None else hiding(graph_of(run), observer)
    sums: dict[tuple[Peer, ...], Any] = {}
    if not plan.in_rounds:
        first = met_alone(run, contents)
    elif plan.learns:
        if not plan.descent.starts_at_zero:
            raise Refused("first models hold a start that is no part of the folder, so no gradient is read from them")
        gradients = {peer: value for (number, peer), value in states_heard(contents).items() if number == 1}
        first = {peer: value / -plan.rate_at(1) for peer, value in gradients.items()}
    elif not plan.block:
        heard = states_heard(contents)
        if plan.message_noise is not None or plan.coin is not None:
            first = {peer: value for (number, peer), value in heard.items() if number == 1}
        else:
            sums, first = decoded(graph_of(run), plan, observer, first_sent(contents), heard, groups), {}
    else:
        raise Refused(f"no attack on {run.protocol.name} is implemented")
    sums |= {users: sum(first[user] for user in users) for users in groups if first.keys() >= set(users)}
    known = drawn_with(plan, observer, contents)
    return [
        (users, (total - sum(known.get(user, 0.0) for user in users)) / plan.step, [(0, user) for user in users])
        for users, total in sorted(sums.items())
    ]


def hiding(graph: Graph, observer: Peer) -> list[tuple[Peer, ...]]:
    """Return the users who share noise with each other, directly or through others, but for the observer."""
    labels = component_labels(graph, [observer]).tolist()
    return [tuple(user for user in range(graph.n) if labels[user] == label) for label in sorted({*labels} - {observer})]


def drawn_with(plan: AveragingPlan, observer: Peer, contents: Contents) -> dict[Peer, Any]:
    """Return the noise that the observer shares with each neighbour, as it is in the neighbour's first contribution."""
    return {
        peer: drawn * (plan.step if peer < observer else -plan.step)
        for peer, number, drawn in shared_draws(contents)
        if number == 0
    }


def graph_of(run: RunPlan) -> Graph:
    """Return the graph if it is public or follows from the spec."""
    graph = with_graph(run).graph
    assert graph is not None
    return graph


def met_alone(run: RunPlan, contents: Contents) -> dict[Peer, Any]:
    """Return the states of users who had certainly met nobody before."""
    graph = None if run.graph is None and run.spec.graph.kind == "file" else graph_of(run)
    heard = states_heard(contents)
    mine = sorted(
        (number, peer)
        for record in contents.records
        if record.kind == RECEIVED and public_message(record).type == ACTIVATIONS
        for number, peer in Activations(*public_message(record).fields).pairs
    )
    found: dict[Peer, Any] = {}
    met: set[Peer] = set()
    for before, (number, peer) in enumerate(mine):
        alone = graph is not None and graph.degree(peer) == 1
        if peer not in met and (number, peer) in heard and (number == before + 1 or alone):
            found[peer] = heard[number, peer]
        met.add(peer)
    return found


def states_heard(contents: Contents) -> dict[tuple[int, Peer], Any]:
    """Return the received values, by round and sender."""
    found: dict[tuple[int, Peer], Any] = {}
    for record in contents.records:
        if record.kind == RECEIVED and is_user(record.body.sender) and public_message(record).type == EXCHANGE:
            message = whole_message(record)
            number, *_ = message.fields
            found.setdefault((number, record.body.sender), message.value)
    return found


def first_sent(contents: Contents) -> Any:
    """Return a user's noised value from its own ledger, if messages have no noise; None if it sent none."""
    sent = (record for record in contents.records if record.kind == SENT and carries_message(record))
    return next((whole_message(one).value for one in sent if public_message(one).type == EXCHANGE), None)


def decoded(
    graph: Graph,
    plan: GossipPlan,
    observer: Peer,
    own: Any,
    heard: Mapping[tuple[int, Peer], Any],
    groups: Sequence[tuple[Peer, ...]],
) -> dict[tuple[Peer, ...], Any]:
    """Return the sums of noised values of these groups that can be read; `own` is the observer's.

    A value that many rounds carry in small shares is read as large multiples of messages, and of their dithers.
    """
    near = graph.neighbours[observer]
    rounds = next(at for at in count() if any((at + 1, one) not in heard for one in near)) if near else 0
    values = np.array([own, *(heard[at + 1, one] for at in range(rounds) for one in near)], dtype=np.float64)
    basis, made_of = _Heard(graph, plan, observer, rounds).space()
    wanted = np.array([basis[list(users)].sum(axis=0) for users in groups])
    lengths = np.array([len(users) for users in groups])
    readable = np.nonzero(np.einsum("ij,ij->i", wanted, wanted) > lengths * (1.0 - _READ_WITHIN))[0]
    shares = wanted[readable] @ made_of
    if plan.dither is not None:
        blurs = np.sqrt((shares**2).sum(axis=1)) * (dither.SCALE * plan.fine)
        sharp = blurs < _BLURRED_FROM * plan.noise.scale * plan.step * np.sqrt(lengths[readable])
        readable, shares = readable[sharp], shares[sharp]
    read = np.tensordot(shares, values, axes=1)
    found = {groups[int(at)]: value for at, value in zip(readable, read, strict=True)}
    return {users: value for users, value in found.items() if observer not in users}


class _Heard:
    """The span of what an observer heard: its own value is column 0 of the messages, followed by round after round."""

    def __init__(self, graph: Graph, plan: GossipPlan, observer: Peer, rounds: int) -> None:
        self._weights = sparse_weights(graph, plan.weights)
        self._gamma = plan.gamma
        self._near = list(graph.neighbours[observer])
        self._observer = observer
        self._rounds = rounds
        self._messages = 1 + rounds * len(self._near)

    def space(self) -> tuple[Floats, Floats]:
        """Return an orthonormal basis (columns), and the combination of messages that makes each vector (rows)."""
        from scipy.linalg import qr, solve_triangular

        begin = [self._observer, *(self._near if self._rounds else ())]
        basis = np.zeros((self._weights.shape[0], len(begin)))
        basis[begin, np.arange(len(begin))] = 1.0
        made_of = np.eye(len(begin), self._messages)
        block, made = basis[:, 1:], made_of[1:]
        for _ in range(1, self._rounds):
            block, made = self._weights @ block, self._one_round_later(made)
            for _ in range(2):
                known = basis.T @ block
                block, made = block - basis @ known, made - known.T @ made_of
            found, triangle, order = qr(block, mode="economic", pivoting=True)
            kept = int(np.sum(np.abs(np.diag(triangle)) > _KEPT_FROM))
            if not kept:
                break
            made = solve_triangular(triangle[:kept, :kept], made[order[:kept]], trans="T")
            block = found[:, :kept]
            basis, made_of = np.concatenate([basis, block], axis=1), np.concatenate([made_of, made])
        return basis, made_of

    def _one_round_later(self, made: Floats) -> Floats:
        """Return the combinations of messages that make W times the vectors that `made` makes.

        A state s_t is P_t(W) y with P_1 = W P_0 and P_(t+1) = gamma W P_t + (1 - gamma) P_(t-1).
        """
        degree = len(self._near)
        rounds = made[:, 1:].reshape(len(made), self._rounds, degree)
        later = np.zeros_like(rounds)
        later[:, 1:] = rounds[:, :-1]
        later[:, 2:] /= self._gamma
        later[:, :-1] -= rounds[:, 1:] * (1.0 - self._gamma) / self._gamma
        row = self._weights[[self._observer]].toarray()[0]
        later[:, 0] += made[:, :1] * row[self._near]
        return np.concatenate([made[:, :1] * row[self._observer], later.reshape(len(made), -1)], axis=1)
