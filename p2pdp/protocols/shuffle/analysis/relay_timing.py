"""When reports moved in a run of network shuffling: what the law of a report's place follows from.

A report that is sent in round r is passed on in round r + 1, or, where it came late, in the round after the one that
its holder had reached by then. When that is depends on clocks and links, not on data, so claims may rest on it. It
is read from marks: what a neighbour sent in a round is held from its mark on, all together. What is meant for somebody
whose mark of the round before is missing stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.core.ids import Peer, is_user
from p2pdp.ledger.records import RECEIVED, SENT, Contents, public_message
from p2pdp.protocols.shuffle.messages import MARK, RELAY, Hop, Round
from p2pdp.topology.graphs import Graph


@dataclass
class Timing:
    """When reports moved otherwise than the walk says.

    `late[v, w, r]` is the round in which w passes on what v sent it in round r, where that is not r + 1.
    """

    late: dict[tuple[Peer, Peer, int], int] = field(default_factory=dict)
    passed_over: set[tuple[Peer, Peer, int]] = field(default_factory=set)  # v keeps what it means for w in that round
    most_on_edge: int = 0  # reports that one user sent another in one round

    @property
    def times(self) -> int:
        """How often somebody was late."""
        return len(self.late) + len(self.passed_over)


def timing_of(views: Mapping[Peer, Contents], rounds: int) -> Timing:
    found = Timing()
    for user, contents in views.items():
        if is_user(user):
            _read(found, user, contents, rounds)
    return found


def _read(found: Timing, user: Peer, contents: Contents, rounds: int) -> None:
    reached = 0  # the round whose marks it waits for
    marked: dict[Peer, int] = {}  # the last mark of each neighbour
    sent: dict[tuple[Peer, int], int] = {}
    for record in contents.records:
        if record.kind == SENT and is_user(record.body.receiver):
            message, peer = public_message(record), record.body.receiver
            if message.type == MARK:
                reached = Round(*message.fields).round
                if marked.get(peer, 0) < reached - 1:
                    found.passed_over.add((user, peer, reached))
            elif message.type == RELAY:
                key = peer, Hop(*message.fields).round
                sent[key] = sent.get(key, 0) + 1
        elif record.kind == RECEIVED and is_user(record.body.sender) and public_message(record).type == MARK:
            number, peer = Round(*public_message(record).fields).round, record.body.sender
            marked[peer] = number
            if number < reached:
                found.late[peer, user, number] = min(reached + 1, rounds + 1)
    found.most_on_edge = max(found.most_on_edge, *sent.values(), 0)


def laws_with(graph: Graph, stay: float, rounds: int, timing: Timing) -> Floats:
    """Row j is the law of report j's place in the end, for the timing that the run had."""
    users = np.eye(graph.n)
    due = {1: users}  # round -> [place, report] of what is sent on in it
    for number in range(1, rounds + 1):
        here = due.pop(number, None)
        if here is None:
            continue
        for place, peers in enumerate(graph.neighbours):
            mass = here[place]
            if not mass.any():
                continue
            kept = stay if peers else 1.0
            _add(due, number + 1, place, kept * mass)
            for peer in peers:
                kept_here = (place, peer, number) in timing.passed_over
                when = number + 1 if kept_here else timing.late.get((place, peer, number), number + 1)
                _add(due, when, place if kept_here else peer, (1.0 - stay) / len(peers) * mass)
    return np.ascontiguousarray(due.get(rounds + 1, np.zeros_like(users)).T)


def _add(due: dict[int, Floats], number: int, place: int, mass: Floats) -> None:
    if number not in due:
        due[number] = np.zeros((len(mass), len(mass)))
    due[number][place] += mass
