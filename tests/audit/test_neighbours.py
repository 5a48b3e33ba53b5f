from __future__ import annotations

from p2pdp.audit.neighbours import graph_of
from p2pdp.core.spec import GraphPart
from p2pdp.topology.graphs import make_graph
from tests.support.gossips import gossip
from tests.support.runs import quiet


def test_the_graph_is_in_the_ledgers_of_all_users() -> None:
    run = quiet(gossip(5, "ring", "rounds = 2"))
    graph = graph_of(run.contents(), 5)
    assert graph is not None
    assert graph.neighbours == make_graph(GraphPart(kind="ring"), 5, 0).neighbours
    assert graph_of({peer: view for peer, view in run.contents().items() if peer != 2}, 5) is None
    whole = graph_of(quiet(gossip(3, "complete", "rounds = 2")).contents(), 3)
    assert whole is not None
    assert whole.edge_count == 3
