"""How many edges lie between nodes."""

from __future__ import annotations

from collections import deque

from p2pdp.topology.graphs import Graph

UNREACHED = -1


def distances_from(graph: Graph, node: int) -> list[int]:
    """To every node, by breadth-first search; `UNREACHED` where there is no path."""
    found = [UNREACHED] * graph.n
    found[node] = 0
    queue = deque([node])
    while queue:
        near = queue.popleft()
        for far in graph.neighbours[near]:
            if found[far] == UNREACHED:
                found[far] = found[near] + 1
                queue.append(far)
    return found
