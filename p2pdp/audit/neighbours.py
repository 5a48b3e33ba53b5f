"""The graph of a run, put together from what users' ledgers say of their neighbours."""

from __future__ import annotations

from collections.abc import Mapping

from p2pdp.core.ids import Peer
from p2pdp.ledger.records import OPENED, Contents
from p2pdp.topology.graphs import Graph, complete_graph, graph_of_edges


def graph_of(views: Mapping[Peer, Contents], n: int) -> Graph | None:
    """As the users' ledgers have it; None where one is not at hand, or names users that there are not."""
    edges = []
    for user in range(n):
        if user not in views or not views[user].records or views[user].records[0].kind != OPENED:
            return None
        neighbours = views[user].records[0].body.neighbours
        if neighbours is None:
            return complete_graph(n)
        if not all(0 <= peer < n for peer in neighbours):
            return None
        edges += [(user, int(peer)) for peer in neighbours]
    return graph_of_edges(n, edges)
