"""The questions about users who are out: who was asked, who has still to answer, and who withholds an answer.

Whoever lives answers as soon as it is told that somebody is out, so an answer is missing for one of two reasons: frames
get lost or are late, or it is withheld. To tell them apart, who owes an answer for two patiences is *pressed*: it is
sent a probe, which comes after the question on its link. If it answers the probe and has not answered the question, it
withholds the answer, since links keep the order. If it answers neither within a patience, it is gone, or acts so. In
both cases the caller puts it out: within three patiences of the question, and by then a frame that is lost was sent
again some ten times.

A user that is not ready yet owes nothing: it may not even have begun. Its time counts from when it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final

from p2pdp.core.ids import Peer, is_user

NEVER: Final = float("inf")  # for roles, and for users who are not ready


class Inquiries:
    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._owed_s: dict[Peer, dict[Peer, float]] = {}  # who is out -> who has still to answer: since when
        self._pressed: dict[Peer, set[Peer]] = {}  # who is pressed -> about whom it was asked before and owes an answer
        self._probes: Counter[Peer] = Counter()  # that were sent and not answered

    @property
    def open(self) -> bool:
        """Return whether anybody has still to answer."""
        return any(self._owed_s.values())

    def ask(self, about: Peer, whom: Collection[Peer], ready: Collection[Peer], now_s: float) -> None:
        """Take note that they were asked about a user that is out, and has to answer nothing any more itself."""
        self.forget(about)
        self._owed_s[about] = {who: now_s if is_user(who) and who in ready else NEVER for who in whom}

    def ready(self, user: Peer, now_s: float) -> None:
        """Take note that a user is there: what it was asked before counts from now on."""
        for owing in self._owed_s.values():
            if owing.get(user) == NEVER:
                owing[user] = now_s

    def answered(self, who: Peer, about: Peer) -> bool:
        """Take note of an answer; return whether it was asked for."""
        if self._owed_s.get(about, {}).pop(who, None) is None:
            return False
        self._let_be(who, about)
        return True

    def forget(self, peer: Peer) -> None:
        """Wait for nothing of a user that is out."""
        for owing in self._owed_s.values():
            owing.pop(peer, None)
        self._pressed.pop(peer, None)

    def clear(self) -> None:
        self._owed_s.clear()
        self._pressed.clear()

    def probed(self, peer: Peer) -> None:
        self._probes[peer] += 1

    def withholds(self, peer: Peer) -> bool:
        """Take note that a peer answered a probe; return whether that shows that it withholds an answer."""
        self._probes[peer] = max(0, self._probes[peer] - 1)
        return peer in self._pressed and not self._probes[peer]

    def presses(self, peer: Peer) -> bool:
        return peer in self._pressed

    def press(self, now_s: float) -> list[Peer]:
        """Return who is to be sent a probe by now; they are pressed from then on."""
        late = sorted({user for user, at_s in self._due_s() if now_s >= at_s})
        for user in late:
            self._pressed[user] = {about for about, owing in self._owed_s.items() if user in owing}
        return late

    @property
    def press_at_s(self) -> float | None:
        at_s = min((at_s for _, at_s in self._due_s()), default=NEVER)
        return None if at_s == NEVER else at_s

    def _due_s(self) -> Iterator[tuple[Peer, float]]:
        for owing in self._owed_s.values():
            for user, since_s in owing.items():
                if user not in self._pressed:
                    yield user, since_s + 2 * self._patience_s

    def _let_be(self, who: Peer, about: Peer) -> None:
        pressed = self._pressed.get(who, set())
        pressed.discard(about)
        if not pressed:
            self._pressed.pop(who, None)
