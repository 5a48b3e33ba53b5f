"""Whether both ends of each pair saw the same coins on a graph that changed.

Who is cut short, or has no ledger, says nothing about the rounds that it does not tell of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from p2pdp.core.ids import Peer, is_user
from p2pdp.ledger.records import MET, Contents, Record

Found = tuple[Peer, int, str]  # whose record, which one, what is wrong with it


def meeting_problems(views: Mapping[Peer, Contents]) -> Iterator[Found]:
    """Meetings that only one of the two tells of, where both tell of the round."""
    told: dict[Peer, dict[int, tuple[Record, frozenset[Peer]]]] = {}
    for user in filter(is_user, views):
        rounds = told[user] = {}
        for record in views[user].records:
            if record.kind == MET:
                number, peers = record.body
                if number in rounds or user in peers:
                    yield user, record.index, "is a meeting that the coins of pairs cannot give"
                rounds[number] = record, frozenset(peers)
    for user, rounds in told.items():
        for number, (record, peers) in rounds.items():
            for peer in peers:
                other = told.get(peer, {}).get(number)
                if other is not None and user not in other[1]:
                    yield user, record.index, f"meets user {peer}, whose ledger does not meet it in that round"
