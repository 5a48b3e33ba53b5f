from __future__ import annotations

import math

from p2pdp.crypto.pair_coins import PairCoins

USERS = 60


def secret(one: int, other: int) -> bytes:
    return bytes(sorted((one, other))) * 16


def everybody() -> list[PairCoins]:
    return [PairCoins({peer: secret(me, peer) for peer in range(USERS) if peer != me}) for me in range(USERS)]


def test_both_ends_see_the_same_coin_in_whatever_order_they_ask() -> None:
    ends = everybody()
    forth = [[end.neighbours_in(number, 0.2) for number in range(1, 30)] for end in ends]
    back = [[end.neighbours_in(number, 0.2) for number in range(29, 0, -1)][::-1] for end in everybody()]
    assert forth == back
    for me, rounds in enumerate(forth):
        for number, met in enumerate(rounds):
            assert me not in met
            assert met == sorted(met)
            assert all(me in forth[peer][number] for peer in met)


def test_each_round_and_each_pair_has_a_coin_of_its_own() -> None:
    ends = everybody()
    graphs = [tuple(tuple(end.neighbours_in(number, 0.5)) for end in ends) for number in range(40)]
    assert len(set(graphs)) == 40
    assert PairCoins({1: b"s" * 32}).neighbours_in(3, 0.5) == PairCoins({1: b"s" * 32}).neighbours_in(3, 0.5)


def test_so_many_are_neighbours_as_the_probability_says() -> None:
    end = everybody()[0]
    met = sum(len(end.neighbours_in(number, 0.1)) for number in range(400))
    expected = 0.1 * 400 * (USERS - 1)
    assert abs(met - expected) < 6 * math.sqrt(expected)


def test_the_ends_of_the_scale() -> None:
    end = everybody()[7]
    assert end.neighbours_in(1, 0.0) == []
    assert end.neighbours_in(1, 1.0) == [peer for peer in range(USERS) if peer != 7]
