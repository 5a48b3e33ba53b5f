"""Claims and receipts, checked against a model that knows where each item really is."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.services.settlement import Lost, Settlement


def test_an_item_that_nobody_alive_received_is_lost() -> None:
    settlement = Settlement()
    settlement.claim(0, 5, 3)
    assert settlement.lost([1]) == [Lost(0, 5, 3)]
    assert settlement.lost([1]) == []  # said once


def test_an_item_that_went_on_is_not() -> None:
    settlement = Settlement()
    settlement.claim(0, 5, 3)
    settlement.receipt(2, 5, 4, 5)
    assert settlement.lost([1]) == []


def test_a_receipt_of_somebody_who_is_out_by_now_does_not_count() -> None:
    settlement = Settlement()
    settlement.claim(0, 5, 3)
    settlement.receipt(2, 5, 4, 5)
    assert settlement.lost([1]) == []
    assert settlement.lost([1, 2]) == [Lost(0, 5, 3)]


def test_only_the_last_live_claimant_may_send_again() -> None:
    settlement = Settlement()
    settlement.claim(BOOTSTRAP, 5, 0)
    settlement.claim(0, 5, 3)
    settlement.claim(2, 5, 6)
    settlement.receipt(2, 5, 5, 5)
    assert settlement.lost([1]) == [Lost(2, 5, 6)]


def test_a_receipt_of_the_curator_counts() -> None:
    settlement = Settlement()
    settlement.claim(0, 5, 8)
    settlement.receipt(CURATOR, 5, 9, 5)
    assert settlement.lost([1]) == []


def test_a_report_is_followed_through_the_numbers_of_its_hops() -> None:
    """0 passed it on as 71, 1 as 72, 2 as 73, 3 has it; 1 and 2 are out."""
    settlement = Settlement()
    settlement.claim(0, 71, 3)
    settlement.receipt(2, 72, 4, 71)
    assert settlement.lost([1]) == []
    settlement.receipt(3, 73, 5, 72)
    assert settlement.lost([1, 2]) == []
    assert settlement.lost([1, 2, 3]) == [Lost(0, 71, 3)]


def test_the_last_live_claimant_is_told_the_number_that_it_knows() -> None:
    settlement = Settlement()
    settlement.claim(0, 71, 3)
    settlement.claim(2, 73, 5)
    settlement.receipt(2, 72, 4, 71)
    settlement.receipt(3, 73, 5, 72)
    assert settlement.lost([1, 3]) == [Lost(2, 73, 5)]


def test_what_nobody_who_answered_can_connect_counts_as_another_report() -> None:
    settlement = Settlement()
    settlement.claim(0, 71, 3)
    settlement.receipt(3, 73, 5, 72)
    assert settlement.lost([1, 2]) == [Lost(0, 71, 3)]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)), max_size=12))
def test_whatever_peers_say_it_comes_to_an_end(receipts: list[tuple[int, int, int]]) -> None:
    settlement = Settlement()
    for before, item, step in receipts:
        settlement.claim(0, item, step)
        settlement.receipt(2, item, step, before)
    assert len(settlement.lost([1, 2])) <= 6


class Over(Exception):
    """Nothing can get lost any more."""


class Model:
    """One item among n users, every one a neighbour of all; knows the whole path, and so what is right."""

    def __init__(self, n: int) -> None:
        self.live = list(range(n))
        self.out: list[int] = []
        self.settlement = Settlement()
        self.path = [(0, BOOTSTRAP), (1, 0)]  # step at which it was passed on, and who held it until then
        self.passed: dict[int, tuple[int, int]] = {}
        self.got: dict[int, dict[int, int]] = {}

    @property
    def holder(self) -> int:
        return self.path[-1][1]

    def hand_over(self, to: int) -> None:
        """The holder, if it lives, passes the item on."""
        if self.holder in self.live and to in self.live:
            step = len(self.path)
            if to != self.holder:
                self.passed[self.holder] = (to, step)
                self.got.setdefault(to, {})[self.holder] = step
            self.path.append((step, to))

    def exclude(self, peer: int) -> None:
        if peer not in self.live or len(self.live) == 1:
            return
        self.live.remove(peer)
        self.out.append(peer)
        if peer == 0:
            self.settlement.claim(BOOTSTRAP, 0, 0)
        for other in self.live:
            if peer in self.got.get(other, {}):
                self.settlement.receipt(other, 0, self.got[other][peer], 0)
            if other in self.passed and self.passed[other][0] in self.out:
                self.settlement.claim(other, 0, self.passed[other][1])
        self.check(self.settlement.lost(self.out))

    def check(self, lost: list[Lost]) -> None:
        if self.holder in self.live:
            assert lost == []
            return
        while self.holder in self.out:
            self.path.pop()
        step = len(self.path)
        assert lost == [Lost(self.holder, 0, step if self.holder != BOOTSTRAP else 0)]
        others = [peer for peer in self.live if peer != self.holder]
        if self.holder == BOOTSTRAP or not others:
            raise Over  # it begins again elsewhere, or stays with the only one left until its last step
        self.hand_over(others[0])


def play(n: int, actions: list[tuple[bool, int]]) -> None:
    model = Model(n)
    for exclude, peer in actions:
        try:
            (model.exclude if exclude else model.hand_over)(peer)
        except Over:
            return


def test_every_short_history_among_three() -> None:
    choices = list(product((False, True), range(3)))
    for actions in product(choices, repeat=5):
        play(3, list(actions))


ACTIONS = st.tuples(st.sampled_from((True, False, False, False)), st.integers(0, 5))


@given(st.integers(2, 6), st.lists(ACTIONS, max_size=60))
def test_any_history(n: int, actions: list[tuple[bool, int]]) -> None:
    play(n, actions)
