from __future__ import annotations

import math

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.topology.pair_coins import are_neighbours, edge_probability, neighbours_in

SECRETS = {peer: bytes([peer]) * 32 for peer in range(1, 60)}


def test_both_ends_toss_the_same_coin_and_each_round_another() -> None:
    secret = b"s" * 32
    tosses = [are_neighbours(secret, number, 0.5) for number in range(400)]
    assert tosses == [are_neighbours(secret, number, 0.5) for number in range(400)]
    assert 120 < sum(tosses) < 280
    assert tosses != [are_neighbours(b"t" * 32, number, 0.5) for number in range(400)]


def test_so_many_are_neighbours_as_the_probability_says() -> None:
    met = sum(len(neighbours_in(SECRETS, number, 0.1)) for number in range(400))
    expected = 0.1 * 400 * len(SECRETS)
    assert abs(met - expected) < 6 * math.sqrt(expected)


def test_the_ends_of_the_scale() -> None:
    assert neighbours_in(SECRETS, 1, 0.0) == []
    assert neighbours_in(SECRETS, 1, 1.0) == sorted(SECRETS)
    assert edge_probability(1, None) == 0.0
    assert edge_probability(2, None) == pytest.approx(math.log(2))
    assert edge_probability(100, None) == pytest.approx(2 * math.log(100) / 100)
    assert edge_probability(100, 0.25) == 0.25
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(UsageError, match="probability"):
            are_neighbours(b"s", 1, wrong)
