"""Bootstrap's watch over all peers: which to ask for a sign of life, and which have been silent for too long.

All peers are watched alike, whatever they hold, so neither who is asked nor who is excluded tells where a token or a
report is. A peer that its link has not heard for half of the patience is asked by control frames, which no ledger
records. It is silent when it was not heard for the whole patience, a question has been waiting for half of that, and
some other user was heard meanwhile: where nobody is heard, it is we who are cut off. Our own absence (a restart, a
process that was stopped) is not the silence of others either: then everybody's patience begins anew.

A question waits longer, up to `STRETCH_MAX` times half of the patience, where silence has a likelier cause than that
the peer is gone:

* this machine is busy: a process gets its turn late, and so may theirs (`slowness`, which the shell measures);
* answers of the peer, or of everybody, have taken long lately (`_Answers`);
* others who were asked are silent too, as users of one process are who restart with it.

So a peer that is gone counts as silent after one patience where all is on time, and after `(1 + STRETCH_MAX) / 2` at
most, each and an eighth until the next look; and up to five eighths later than one patience where all others answered
just after the question, and so are asked anew before any of them is a witness. A peer that is heard again is spared.

The caller owes: a clock that leaves out our own lateness, and looks only once everything that arrived was read.

`away` tells of those who were asked and have not answered by the next look: earlier than they count as silent, and
only for people to see.

At most `POKES_MAX` peers are asked for the first time at one look, those who were not heard for longest, so that
connections that were let go are not all made at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from p2pdp.core.events import Watcher
from p2pdp.core.ids import Peer, is_user
from p2pdp.peer.link import Link

POKES_MAX: Final = 128
STRETCH_MAX: Final = 2.5  # so who is gone is excluded within three patiences, whatever the reason to wait
ANSWER_TIMES: Final = 4.0  # how many times as long as answers take a question waits, at least
_FADES: Final = 0.25  # how much of what is remembered of answers the next one replaces


class Look(NamedTuple):
    """The peers that have fallen silent, those that are heard again, each once, and those to poke."""

    silent: list[Peer]
    back: list[Peer]
    quiet: list[Peer]


class _Answers:
    """The time that answers take: of each peer, which rises at once and falls slowly, and of everybody."""

    def __init__(self) -> None:
        self._own_s: dict[Peer, float] = {}
        self._all_s = 0.0

    def note(self, peer: Peer, took_s: float) -> None:
        self._own_s[peer] = _remembered(self._own_s.get(peer, 0.0), took_s)
        self._all_s += _FADES * (took_s - self._all_s)

    def expected_s(self, peer: Peer) -> float:
        return max(self._own_s.get(peer, 0.0), self._all_s)


def _remembered(before_s: float, took_s: float) -> float:
    return max(took_s, before_s + _FADES * (took_s - before_s))


class Watch:
    def __init__(self, watcher: Watcher, link: Callable[[Peer], Link], patience_s: float) -> None:
        self._watcher = watcher
        self._link = link
        self._patience_s = patience_s
        self._every_s = patience_s / 8
        self._since_s: dict[Peer, float] = {}  # from when on silence counts, whatever was heard before
        self._asked_s: dict[Peer, float] = {}  # of those who have not answered: since when
        self._complained_s: dict[Peer, float] = {}  # of those who are silent: since when
        self._answers = _Answers()
        self._look_at_s: float | None = None
        self.away: frozenset[Peer] | None = None  # None while nobody is watched, and until a look after our own absence

    def wake_at_s(self, now_s: float) -> float | None:
        """Return when `look` is due; None while nobody is watched."""
        if not self._watcher.watched:
            self._look_at_s = self.away = None
        elif self._look_at_s is None:
            self._look_at_s = now_s + self._every_s
        return self._look_at_s

    def was_away(self, now_s: float) -> bool:
        """Return whether a look is overdue by so much that silence may be our own; then patience begins anew."""
        away = self._look_at_s is not None and now_s >= self._look_at_s + self._patience_s / 2
        if away:
            self.begin_anew()
        return away

    def begin_anew(self) -> None:
        self.away = None
        self._since_s.clear()
        self._asked_s.clear()

    def look(self, now_s: float, slowness: float = 1.0) -> Look:
        """Look after everybody; nothing comes of it before it is due.

        `slowness` says how many times as long as on an idle machine work takes here at present.
        """
        if self._look_at_s is None or now_s < self._look_at_s:
            return Look([], [], [])
        self._look_at_s = now_s + self._every_s
        watched = sorted(self._watcher.watched)
        heard_s = {peer: max(self._link(peer).last_heard_s, self._since_s.setdefault(peer, now_s)) for peer in watched}
        self._hear(heard_s)
        back = sorted(peer for peer, since_s in self._complained_s.items() if heard_s.get(peer, 0.0) > since_s)
        for peer in back:
            del self._complained_s[peer]
        stretch = max(slowness, self._unanswered(now_s))
        silent = [
            peer for peer in watched
            if peer not in self._complained_s and self._is_silent(peer, heard_s, now_s, stretch)
        ]  # fmt: skip
        self._complained_s.update(dict.fromkeys(silent, now_s))
        quiet = [peer for peer in watched if now_s - heard_s[peer] >= self._patience_s / 2]
        new = [peer for peer in quiet if peer not in self._asked_s]
        self.away = frozenset(quiet).difference(new)
        later = set(sorted(new, key=heard_s.__getitem__)[POKES_MAX:])
        self._asked_s.update(dict.fromkeys(set(new) - later, now_s))
        return Look(silent, back, [peer for peer in quiet if peer not in later])

    def _hear(self, heard_s: dict[Peer, float]) -> None:
        """Take note of who answered since the last look, and how long that took."""
        for peer, asked_s in list(self._asked_s.items()):
            if peer not in heard_s:
                del self._asked_s[peer]
            elif heard_s[peer] >= asked_s:
                del self._asked_s[peer]
                took_s = heard_s[peer] - asked_s
                if took_s <= STRETCH_MAX * self._patience_s / 2:  # else it was gone, which is not the same as slow
                    self._answers.note(peer, took_s)

    def _unanswered(self, now_s: float) -> float:
        """Return how many owe an answer since an earlier look, but for those who count as silent already."""
        owing = (peer for peer, asked_s in self._asked_s.items() if now_s - asked_s >= self._every_s)
        return float(sum(peer not in self._complained_s for peer in owing))

    def _is_silent(self, peer: Peer, heard_s: dict[Peer, float], now_s: float, stretch: float) -> bool:
        half_s = self._patience_s / 2
        asked_s = self._asked_s.get(peer, now_s)
        wait_s = max(half_s * stretch, ANSWER_TIMES * self._answers.expected_s(peer))
        wait_s = min(wait_s, half_s * STRETCH_MAX)
        if now_s - asked_s < wait_s or now_s - heard_s[peer] < half_s + wait_s:
            return False
        others = [other for other in heard_s if other != peer]
        witnesses = _users(others) or others
        return any(heard_s[other] >= asked_s + half_s / 2 for other in witnesses)


def _users(peers: Collection[Peer]) -> list[Peer]:
    return [peer for peer in peers if is_user(peer)]
