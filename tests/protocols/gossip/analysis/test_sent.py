from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_array

from p2pdp.protocols.gossip.analysis import sent
from p2pdp.protocols.gossip.analysis.sent import Sent, edges_of

N = 7


def rounds(seed: int) -> list[csr_array]:
    """Weights of rounds on graphs that chance draws; some are the same matrix as the one before."""
    chance = np.random.default_rng(seed)
    found: list[csr_array] = []
    for _ in range(6):
        if found and chance.random() < 0.3:
            found.append(found[-1])
            continue
        weights = np.eye(N)
        for one, other in combinations(range(N), 2):
            if chance.random() < 0.4:
                weights[one, other] = weights[other, one] = 0.1
        found.append(csr_array(weights))
    return found


@pytest.mark.parametrize("table_max", [0, 8192])
@pytest.mark.parametrize("seed", range(5))
def test_each_round_counts_its_edges_both_ways_and_each_pair_that_met_once_more(
    seed: int, table_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sent, "_TABLE_MAX", table_max)
    counted, met, expected = Sent(N), set[tuple[int, int]](), 0
    for matrix in rounds(seed):
        counted.add(matrix)
        pairs = {(one, other) for one, other in combinations(range(N), 2) if matrix[one, other]}
        met |= pairs
        expected += 2 * len(pairs)
    assert counted.messages == expected + len(met)


def test_rounds_on_one_graph_are_counted_at_once() -> None:
    (matrix, *_) = rounds(1)
    once, often = Sent(N), Sent(N)
    once.add(matrix, 5)
    for _ in range(5):
        often.add(matrix)
    assert once.messages == often.messages


def test_edges_are_directed_and_leave_out_what_users_keep() -> None:
    to, sender, across = edges_of(csr_array([[0.5, 0.5, 0.0], [0.5, 0.25, 0.25], [0.0, 0.25, 0.75]]))
    found = sorted(zip(to.tolist(), sender.tolist(), across.tolist(), strict=True))
    assert found == [(0, 1, 0.5), (1, 0, 0.5), (1, 2, 0.25), (2, 1, 0.25)]
