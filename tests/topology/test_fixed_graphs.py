"""The kinds without chance, against what their names mean."""

from __future__ import annotations

import math

import networkx as nx
import pytest

from p2pdp.core.errors import RunFailed
from p2pdp.core.spec import GraphPart
from p2pdp.topology.graphs import make_graph


def edges(kind: str, n: int, rows: int | None = None, columns: int | None = None) -> set[tuple[int, int]]:
    return set(make_graph(GraphPart(kind, rows=rows, columns=columns), n, 0).edges())


def of_networkx(graph: nx.Graph) -> set[tuple[int, int]]:
    return {(min(u, v), max(u, v)) for u, v in graph.edges if u != v}


@pytest.mark.parametrize("n", range(1, 41))
def test_ring_path_star_and_complete_are_those_of_networkx(n: int) -> None:
    assert edges("ring", n) == of_networkx(nx.cycle_graph(n))
    assert edges("path", n) == of_networkx(nx.path_graph(n))
    assert edges("star", n) == of_networkx(nx.star_graph(n - 1))
    assert edges("complete", n) == of_networkx(nx.complete_graph(n))


@pytest.mark.parametrize("n", range(1, 41))
@pytest.mark.parametrize("kind", ["grid", "torus"])
def test_lattices_are_those_of_networkx(kind: str, n: int) -> None:
    rows = max(side for side in range(1, math.isqrt(n) + 1) if n % side == 0)
    lattice = nx.grid_2d_graph(rows, n // rows, periodic=kind == "torus")
    numbered = nx.relabel_nodes(lattice, {(r, c): r * (n // rows) + c for r, c in lattice})
    assert edges(kind, n) == of_networkx(numbered)


def test_sides_of_a_lattice_may_be_given_both_or_one() -> None:
    assert edges("grid", 12, rows=2, columns=6) == edges("grid", 12, rows=2) == edges("grid", 12, columns=6)
    assert edges("grid", 12, rows=2) != edges("grid", 12)
    assert edges("torus", 12, rows=1) == edges("ring", 12)
    for rows, columns in ((5, None), (None, 5), (3, 3), (24, None), (None, 24)):
        with pytest.raises(RunFailed, match="12 nodes with"):
            edges("grid", 12, rows=rows, columns=columns)


@pytest.mark.parametrize("n", range(1, 41))
def test_hypercubes_exist_for_powers_of_two_only(n: int) -> None:
    if n.bit_count() == 1:
        near = {(u, v) for v in range(n) for u in range(v) if (u ^ v).bit_count() == 1}
        assert edges("hypercube", n) == near
    else:
        with pytest.raises(RunFailed, match="power of two"):
            edges("hypercube", n)


@pytest.mark.parametrize("n", range(1, 41))
def test_exponential_links_powers_of_two_both_ways(n: int) -> None:
    steps = {(sign * 2**k) % n for k in range(7) if 2**k < n for sign in (1, -1)}
    assert edges("exponential", n) == {(u, v) for u in range(n) for v in range(u + 1, n) if (v - u) % n in steps}
