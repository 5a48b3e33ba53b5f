from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hypothesis import example, given
from hypothesis import strategies as st

from p2pdp.core.ids import CURATOR, Peer
from p2pdp.node.clock import BEAT_S, OnTime
from p2pdp.peer.watch import ANSWER_TIMES, POKES_MAX, STRETCH_MAX, Watch
from tests.support.toys import link_to

if TYPE_CHECKING:
    import pytest

PATIENCE_S = 8.0


class Watched:
    def __init__(self, *peers: Peer) -> None:
        self.watched = set(peers)
        self.links = {peer: link_to(peer) for peer in peers}
        self.watch = Watch(self, self.links.__getitem__, PATIENCE_S)
        self.now_s = 0.0
        self.watch.wake_at_s(0.0)
        self.poked: list[Peer] = []
        self.back: list[Peer] = []

    def pass_time(self, until_s: float, *there: Peer) -> list[Peer]:
        """Looks whenever that is due; those who are there answer what they are asked. Gives who fell silent."""
        found = []
        while (at_s := self.watch.wake_at_s(self.now_s)) is not None and at_s <= until_s:
            self.now_s = at_s
            assert not self.watch.was_away(at_s)
            silent, back, poked = self.watch.look(at_s)
            found += silent
            self.poked += poked
            self.back += back
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
    assert watched.back == []
    assert watched.pass_time(40.0, 0, 1) == []
    assert watched.back == [1]
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
    assert watch.look(100.0) == ([], [], [])
    watched.now_s = 100.0
    assert watched.pass_time(100.0 + PATIENCE_S - 0.1, 0) == []
    assert watched.pass_time(120.0, 0) == [1]


def test_nothing_is_due_while_nobody_is_watched() -> None:
    watched = Watched(0, 1)
    watched.watched.clear()
    assert watched.watch.wake_at_s(50.0) is None
    assert watched.watch.look(50.0) == ([], [], [])
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


def test_away_is_who_was_asked_and_has_not_answered_by_the_next_look() -> None:
    watched = Watched(0, 1, 2)
    assert watched.watch.away is None
    watched.pass_time(PATIENCE_S / 2 + 1.0, 0, 2)
    assert (set(watched.poked), watched.watch.away) == ({0, 1, 2}, set()), "asked just now"
    watched.pass_time(PATIENCE_S / 2 + 1.0 + PATIENCE_S / 8, 0, 2)
    assert watched.watch.away == {1}
    watched.pass_time(PATIENCE_S, 0, 1, 2)
    watched.pass_time(PATIENCE_S + PATIENCE_S / 8, 0, 1, 2)
    assert watched.watch.away == set()
    watched.pass_time(4 * PATIENCE_S, 0, 2)
    assert watched.watch.away == {1}
    watched.watch.begin_anew()
    assert watched.watch.away is None, "our own absence is nobody's silence"
    watched.pass_time(5 * PATIENCE_S, 0, 2)
    assert watched.watch.away == {1}
    watched.watched.clear()
    watched.watch.wake_at_s(watched.now_s)
    assert watched.watch.away is None


class Simulated:
    """A watcher whose loop stands still at times, and peers that answer after delays, in steps of a steady clock."""

    STEP_S = 0.05

    def __init__(
        self,
        delays_s: Mapping[Peer, float],
        stalls: Sequence[tuple[float, float]] = (),
        gone_s: Mapping[Peer, float] | None = None,
        slowness: float = 1.0,
        whole: bool = False,
    ) -> None:
        """Let the loop stand still from each first to each second, or the `whole` machine and with it the peers.

        Who is gone answers nothing after that time.
        """
        self.links = {peer: link_to(peer) for peer in delays_s}
        self.watched = set(delays_s)
        self.watch = Watch(self, self.links.__getitem__, PATIENCE_S)
        self.delays_s, self.stalls, self.gone_s, self.slowness = delays_s, stalls, gone_s or {}, slowness
        self.whole = whole
        self.silent: dict[Peer, float] = {}

    def answers_at_s(self, peer: Peer, asked_s: float) -> float:
        at_s = asked_s + self.delays_s[peer]
        for begin_s, end_s in sorted(self.stalls) if self.whole else ():
            if asked_s <= begin_s <= at_s:
                at_s += end_s - begin_s
        return at_s

    def run(self, until_s: float) -> dict[Peer, float]:
        """Return who was silent, and when in the watcher's own time."""
        clock, steps, beat_at_s, asked = OnTime(0.0, 0.0), 0, BEAT_S, set[tuple[float, Peer]]()
        self.watch.wake_at_s(0.0)
        while (steady_s := steps * self.STEP_S) < until_s:
            steps += 1
            if any(begin_s <= steady_s < end_s for begin_s, end_s in self.stalls):
                continue
            if steady_s >= beat_at_s:  # as in a loop that looks at its timers before its sockets
                clock.beat(steady_s)
                beat_at_s = steady_s + BEAT_S
            now_s = clock.at(steady_s)
            for answer in sorted(one for one in asked if one[0] <= steady_s):
                asked.discard(answer)
                self.links[answer[1]].last_heard_s = now_s
            at_s = self.watch.wake_at_s(now_s)
            if at_s is not None and now_s >= at_s:
                assert not self.watch.was_away(now_s)
                look = self.watch.look(now_s, self.slowness)
                for peer in look.silent:
                    self.silent.setdefault(peer, now_s)
                for peer in look.quiet:
                    if steady_s < self.gone_s.get(peer, until_s):
                        asked.add((self.answers_at_s(peer, steady_s), peer))
        return self.silent


delays = st.lists(st.floats(0.0, 0.3 * PATIENCE_S), min_size=3, max_size=6).map(lambda some: dict(enumerate(some)))
stalls = st.lists(st.tuples(st.floats(0.0, 80.0), st.floats(0.0, 60.0)), max_size=4).map(
    lambda some: [(begin_s, begin_s + lasts_s) for begin_s, lasts_s in some]
)


@given(delays, stalls, st.booleans())
def test_nobody_is_silent_because_the_watcher_is_late(
    delays_s: dict[Peer, float], late: list[tuple[float, float]], whole: bool
) -> None:
    assert Simulated(delays_s, late, whole=whole).run(160.0) == {}


def test_the_clock_is_what_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it peers would be silent that answer within 2.4 seconds, on a machine that stops once."""
    delays_s = {0: 0.1, 1: 2.4, 2: 1.0, 3: 2.0}
    stops = [[(tenth / 10, 60.0)] for tenth in range(50, 300, 3)]
    assert not any(Simulated(delays_s, stop, whole=True).run(90.0) for stop in stops)
    monkeypatch.setattr("p2pdp.node.clock.LATE_S", 1e9)
    monkeypatch.setattr(Watch, "was_away", lambda _self, _now_s: False)
    assert any(Simulated(delays_s, stop, whole=True).run(90.0) for stop in stops)


@example({0: 1.0738, 1: 0.14986, 2: 1.2, 3: 1.2, 4: 1.2}, 2.7, 1)
@example({0: 0.3513, 1: 0.1656, 2: 1.1321, 3: 0.6131}, 33.2097, 2)
@given(delays, st.floats(0.0, 40.0), st.integers(0, 2))
def test_who_is_gone_is_found_within_the_stated_bound(delays_s: dict[Peer, float], at_s: float, gone: Peer) -> None:
    """One patience after it was last heard, and an eighth for each of the two looks: when asked, and when found.

    The question waits longer where answers take long, where others owe one that takes longer than to the next look, and
    for a witness: all others may have answered just after the question, and are asked again half a patience later.
    """
    found = Simulated(delays_s, (), {gone: at_s}).run(120.0)
    assert found.keys() == {gone}
    next_look_s = PATIENCE_S / 8 - Simulated.STEP_S
    others_s = [delay_s for peer, delay_s in delays_s.items() if peer != gone]
    owing = 1 + sum(delay_s > next_look_s for delay_s in others_s)
    witness_s = PATIENCE_S / 4 + PATIENCE_S / 2 + PATIENCE_S / 8 + min(others_s)
    waits_s = max(PATIENCE_S / 2 * min(STRETCH_MAX, owing), ANSWER_TIMES * max(delays_s.values()), witness_s)
    assert at_s < found[gone] <= at_s + delays_s[gone] + PATIENCE_S / 2 + waits_s + PATIENCE_S / 4 + 1.0


@given(delays, st.floats(0.0, 40.0), st.floats(1.0, 50.0), st.sets(st.integers(0, 1)))
def test_who_is_gone_is_found_in_the_end_however_busy_all_is(
    delays_s: dict[Peer, float], at_s: float, slowness: float, gone: set[Peer]
) -> None:
    found = Simulated(delays_s, (), dict.fromkeys(gone, at_s), slowness).run(160.0)
    assert found.keys() == gone
    bound_s = (1 + STRETCH_MAX) / 2 * PATIENCE_S + PATIENCE_S / 4 + 1.0
    assert all(silent_s <= at_s + delays_s[peer] + bound_s for peer, silent_s in found.items())


@given(st.floats(0.0, 0.49 * STRETCH_MAX * PATIENCE_S), st.integers(3, 8), stalls)
def test_nobody_is_silent_where_everybody_answers_late(
    late_s: float, count: int, stalled: list[tuple[float, float]]
) -> None:
    assert Simulated(dict.fromkeys(range(count), late_s), stalled).run(200.0) == {}


def test_a_pack_that_comes_back_late_is_not_silent_and_a_user_of_its_own_is() -> None:
    """Six users of one process answer again after its restart, which took one patience and a quarter."""
    pack = dict.fromkeys(range(6), 1.24 * PATIENCE_S)
    assert Simulated({**pack, 6: 0.1, 7: 0.1}).run(100.0) == {}
    assert Simulated({0: 1.24 * PATIENCE_S, 6: 0.1, 7: 0.1}).run(100.0).keys() == {0}


def test_a_peer_whose_answers_take_long_is_given_longer_the_next_time() -> None:
    watched = Watched(0, 1, 2)
    watched.pass_time(PATIENCE_S / 2 + 1.0, 0, 1)
    watched.links[2].last_heard_s = watched.now_s + 0.3 * PATIENCE_S
    assert watched.pass_time(2.0 * PATIENCE_S, 0, 1) == []
    assert watched.pass_time(4.0 * PATIENCE_S, 0, 1) == [2]
