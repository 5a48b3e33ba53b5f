from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.ids import CURATOR, Peer
from p2pdp.peer.link import Link
from p2pdp.peer.watch import POKES_MAX, Watch

PATIENCE_S = 8.0


class Watched:
    def __init__(self, *peers: Peer) -> None:
        self.watched = set(peers)
        self.links = {peer: Link(peer) for peer in peers}
        self.watch = Watch(self, self.links.__getitem__, PATIENCE_S)
        self.now_s = 0.0
        self.watch.wake_at_s(0.0)
        self.poked: list[Peer] = []

    def pass_time(self, until_s: float, *there: Peer) -> list[Peer]:
        """Looks whenever that is due; those who are there answer what they are asked. Gives who fell silent."""
        found = []
        while (at_s := self.watch.wake_at_s(self.now_s)) is not None and at_s <= until_s:
            self.now_s = at_s
            assert not self.watch.was_away(at_s)
            silent, poked = self.watch.look(at_s)
            found += silent
            self.poked += poked
            for peer in set(poked) & set(there):
                self.links[peer].last_heard_s = at_s
        return found


def test_who_answers_is_never_silent_and_who_does_not_is_told_of_once() -> None:
    watched = Watched(CURATOR, 0, 1, 2)
    assert watched.pass_time(PATIENCE_S - 0.1, CURATOR, 0, 2) == []
    assert watched.pass_time(1.5 * PATIENCE_S, CURATOR, 0, 2) == [1]
    assert watched.pass_time(10 * PATIENCE_S, CURATOR, 0, 2) == []


def test_who_comes_back_may_fall_silent_again() -> None:
    watched = Watched(0, 1)
    assert watched.pass_time(20.0, 0) == [1]
    assert watched.pass_time(40.0, 0, 1) == []
    assert watched.pass_time(60.0, 0) == [1]


def test_nobody_is_asked_who_was_heard_lately() -> None:
    watched = Watched(0, 1)
    watched.pass_time(PATIENCE_S / 2 - 0.1)
    assert watched.poked == []
    watched.links[0].last_heard_s = watched.now_s
    watched.pass_time(PATIENCE_S / 2 + 1.0)
    assert set(watched.poked) == {1}


def test_where_no_user_is_heard_it_is_we_who_are_cut_off() -> None:
    watched = Watched(CURATOR, 0, 1, 2)
    watched.pass_time(20.0, CURATOR, 0, 1, 2)
    assert watched.pass_time(200.0, CURATOR) == []
    assert watched.pass_time(203.0, CURATOR, 0, 1, 2) == []
    assert watched.pass_time(220.0, CURATOR, 0, 1) == [2]


def test_the_only_user_is_silent_if_the_curator_is_heard_and_the_other_way_round() -> None:
    assert Watched(CURATOR, 0).pass_time(20.0, CURATOR) == [0]
    assert Watched(CURATOR, 0).pass_time(20.0, 0) == [CURATOR]
    assert Watched(CURATOR, 0).pass_time(200.0) == []


def test_our_own_absence_is_not_the_silence_of_others() -> None:
    watched = Watched(0, 1)
    watched.pass_time(10.0, 0, 1)
    watch = watched.watch
    assert watch.was_away(100.0)
    assert watch.look(100.0) == ([], [])
    watched.now_s = 100.0
    assert watched.pass_time(100.0 + PATIENCE_S - 0.1, 0) == []
    assert watched.pass_time(120.0, 0) == [1]


def test_nothing_is_due_while_nobody_is_watched() -> None:
    watched = Watched(0, 1)
    watched.watched.clear()
    assert watched.watch.wake_at_s(50.0) is None
    assert watched.watch.look(50.0) == ([], [])
    assert not watched.watch.was_away(500.0)


def test_of_many_a_part_is_asked_at_a_time_and_nobody_is_silent_who_was_not_asked() -> None:
    peers = range(5 * POKES_MAX)
    watched = Watched(*peers)
    watched.pass_time(PATIENCE_S / 2 + PATIENCE_S / 8)
    assert len(watched.poked) == POKES_MAX
    assert watched.pass_time(10 * PATIENCE_S, *peers) == []
    assert set(watched.poked) == set(peers)
    assert watched.pass_time(20 * PATIENCE_S, *peers[1:]) == [0]


@given(st.sets(st.integers(0, 5), min_size=1, max_size=5), st.floats(0.0, 30.0))
def test_only_those_are_silent_who_are_gone(gone: set[Peer], at_s: float) -> None:
    peers = set(range(6))
    watched = Watched(CURATOR, *peers)
    assert watched.pass_time(at_s, CURATOR, *peers) == []
    assert set(watched.pass_time(at_s + 3 * PATIENCE_S, CURATOR, *(peers - gone))) == gone
