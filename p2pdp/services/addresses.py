"""The addresses of users: the newest statement of each, and the users who are to receive a new one.

A node keeps an `AddressBook` of its neighbours. Bootstrap's `Directory` keeps one of all users and passes a
newer statement on to the user's neighbours (all users, on a complete graph) who said themselves where they are;
whoever makes one gets those of its neighbours.

Guarantee: what stands here was signed by the user it names, and its counter never falls, in whatever order
statements come and however often they are repeated. One statement a user is kept. Forged and older ones are
counted and change nothing; to an older one of its own a user is answered with the newer, so that a node whose
clock went back can go on from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from p2pdp.core.addresses import AddressError
from p2pdp.core.ids import Peer
from p2pdp.crypto.addresses import Statement, read_statement, statement_frame
from p2pdp.crypto.roster import Roster

FORGED: Final = "bad_address"
OUTDATED: Final = "old_address"


class News(Enum):
    NEWER = "newer"
    KNOWN = "known"
    OLDER = "older"


class AddressBook:
    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._newest: dict[Peer, Statement] = {}
        self.faults: Counter[str] = Counter()

    def take(self, frame: bytes) -> tuple[Statement, News] | None:
        """Return the statement and whether it is news; None for one that is not authentic."""
        try:
            statement = read_statement(frame, self._roster)
        except AddressError:
            self.faults[FORGED] += 1
            return None
        known = self._newest.get(statement.user)
        if known is None or statement.counter > known.counter:
            self._newest[statement.user] = statement
            return statement, News.NEWER
        if statement.counter < known.counter:
            self.faults[OUTDATED] += 1
            return statement, News.OLDER
        if statement.address != known.address:  # its own user contradicts itself
            self.faults[FORGED] += 1
        return statement, News.KNOWN

    def where(self, user: Peer) -> str | None:
        known = self._newest.get(user)
        return None if known is None else known.address

    def lacks(self, users: Iterable[Peer]) -> bool:
        return any(user not in self._newest for user in users)

    def frames(self, users: Iterable[Peer]) -> list[bytes]:
        """Return the statements of those of these users who made one."""
        return [statement_frame(self._newest[user]) for user in users if user in self._newest]


@dataclass(frozen=True, slots=True)
class Told:
    """Frames that go back to where a statement came from, and frames for other users."""

    answers: Sequence[bytes] = ()
    onward: Sequence[tuple[Peer, bytes]] = ()


class Directory:
    """Bootstrap's address book. `neighbours` returns None for a user who may talk to everybody."""

    def __init__(self, roster: Roster, neighbours: Callable[[Peer], Sequence[Peer] | None]) -> None:
        self._n = roster.n
        self._neighbours = neighbours
        self._book = AddressBook(roster)

    @property
    def faults(self) -> Counter[str]:
        return self._book.faults

    def where(self, user: Peer) -> str | None:
        return self._book.where(user)

    def hear(self, frame: bytes) -> Told:
        taken = self._book.take(frame)
        if taken is None:
            return Told()
        statement, news = taken
        user = statement.user
        if news is News.OLDER:
            return Told(self._book.frames([user]))
        answers = self.for_user(user)
        if news is News.KNOWN:
            return Told(answers)
        others = [other for other in self._around(user) if not self._book.lacks([other])]
        return Told(answers, [(other, statement_frame(statement)) for other in others])

    def for_user(self, user: Peer) -> list[bytes]:
        """Return the statements of a user's neighbours."""
        return self._book.frames(self._around(user))

    def _around(self, user: Peer) -> list[Peer]:
        around = self._neighbours(user)
        return [other for other in (range(self._n) if around is None else around) if other != user]
