"""Bootstrap's watch over all peers: which to ask for a sign of life, and which have been silent for too long.

All peers are watched alike, whatever they hold, so neither who is asked nor who is excluded tells where a token or a
report is. A peer that its link has not heard for half of the patience is asked by control frames, which no ledger
records. It is silent when it was not heard for the whole patience, a question has been waiting for half of that, and
some other user was heard meanwhile: where nobody is heard, it is we who are cut off. Our own absence (a restart, a
process that was stopped) is not the silence of others either: then everybody's patience begins anew.

At most `POKES_MAX` peers are asked for the first time at one look, those who were not heard for longest, so that
connections that were let go are not all made at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from p2pdp.core.events import Watcher
from p2pdp.core.ids import Peer, is_user
from p2pdp.peer.link import Link

POKES_MAX: Final = 128


class Watch:
    def __init__(self, watcher: Watcher, link: Callable[[Peer], Link], patience_s: float) -> None:
        self._watcher = watcher
        self._link = link
        self._patience_s = patience_s
        self._every_s = patience_s / 8
        self._since_s: dict[Peer, float] = {}  # from when on silence counts, whatever was heard before
        self._asked_s: dict[Peer, float] = {}  # of those who have not answered: since when
        self._complained: set[Peer] = set()
        self._look_at_s: float | None = None

    def wake_at_s(self, now_s: float) -> float | None:
        """Return when `look` is due; None while nobody is watched."""
        if not self._watcher.watched:
            self._look_at_s = None
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
        self._since_s.clear()
        self._asked_s.clear()

    def look(self, now_s: float) -> tuple[list[Peer], list[Peer]]:
        """Return who has fallen silent, each once, and whom to poke; nothing before it is due."""
        if self._look_at_s is None or now_s < self._look_at_s:
            return [], []
        self._look_at_s = now_s + self._every_s
        watched = sorted(self._watcher.watched)
        heard_s = {peer: max(self._link(peer).last_heard_s, self._since_s.setdefault(peer, now_s)) for peer in watched}
        silent = []
        for peer in watched:
            if now_s - heard_s[peer] < self._patience_s / 2:
                self._asked_s.pop(peer, None)
                self._complained.discard(peer)
            elif peer not in self._complained and self._is_silent(peer, heard_s, now_s):
                self._complained.add(peer)
                silent.append(peer)
        quiet = [peer for peer in watched if now_s - heard_s[peer] >= self._patience_s / 2]
        new = [peer for peer in quiet if peer not in self._asked_s]
        later = set(sorted(new, key=heard_s.__getitem__)[POKES_MAX:])
        self._asked_s.update(dict.fromkeys(set(new) - later, now_s))
        return silent, [peer for peer in quiet if peer not in later]

    def _is_silent(self, peer: Peer, heard_s: dict[Peer, float], now_s: float) -> bool:
        asked_s = self._asked_s.get(peer, now_s)
        if now_s - heard_s[peer] < self._patience_s or now_s - asked_s < self._patience_s / 2:
            return False
        others = [other for other in heard_s if other != peer]
        witnesses = _users(others) or others
        return any(heard_s[other] >= asked_s + self._patience_s / 4 for other in witnesses)


def _users(peers: Collection[Peer]) -> list[Peer]:
    return [peer for peer in peers if is_user(peer)]
