"""An observer of a token's walk knows some of the stretches that it does not see, from its own visits alone.

Between two visits of a token to the observer lies a stretch of contributions by others, in slots one after another.
The observer knows how many they are, for tokens count their steps; who had the first slot, for it chose its
successor; and who had the last, who sent it the token. Before the first visit the first slot is known where it is
public who starts, and after the last visit the last one where it is published who handed the total in.

When messages arrive shows how many of the steps of a stretch were moves from one user to another, for a token that
stays takes no time on the network. `moves` counts those between the stretch's slots; the move that brings the token to
the observer is always one. Several tokens on the complete graph begin with user 0's drawing who has the first slot,
itself included: for all others that stretch has one more slot at its beginning, the `origin`, without a contribution.

What is seen of a stretch is one sum. Only the sum of all totals is published, so what follows the last visits
of several tokens is a single observation too: a `Gap` is the stretches whose contributions are seen as one sum. And it
is published when the last total is there: then nobody knows how often each token moved after its last visit, but that
none moved more often than the last one had time for, and one just as often. `Until` says what is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from p2pdp.core.errors import UsageError
from p2pdp.core.ids import Peer


class Until(IntEnum):
    """The meaning of `moves` for the stretches of a gap: how many there were, or the most there can have been.

    `REACHED`: in one of the stretches, or more, there were as many.
    """

    EXACT = 0
    REACHED = 1
    MOST = 2


class Stretch(NamedTuple):
    """Contributions by others in a row; who made the first and the last, where that is known.

    `moves` is None where every step is a move, or where nobody asks.
    """

    length: int
    first: Peer | None
    last: Peer | None
    moves: int | None = None
    origin: Peer | None = None
    until: Until = Until.EXACT

    @property
    def known(self) -> tuple[Peer, ...]:
        """Return the users whose slots are known, one entry each."""
        ends = {0: self.first, self.length - 1: self.last}
        if self.length == 1 and self.first is not None:
            ends = {0: self.first}
        return tuple(user for user in ends.values() if user is not None)


Gap = tuple[Stretch, ...]
Visit = tuple[int, Peer | None, Peer | None]  # the step, who had the token before, and who after; None: no user


def gaps_of(
    visits: Sequence[Sequence[Visit]],
    steps: int,
    starters: Sequence[Peer | None],
    publisher: Peer | None = None,
    moves: Sequence[Sequence[int]] | None = None,
    origin: Peer | None = None,
    *,
    ends_seen: bool = True,
) -> list[Gap]:
    """Return the gaps of one observer; `visits` and `starters` have an entry for each token, visits in order of steps.

    `publisher` is who handed in the total, where the observer is told; of several tokens nobody is named. `moves[i][t]`
    is how often token i has moved before its contribution at step t, with entries from 0 on; that from `origin` to the
    first holder is one, where it is not to itself. Without `ends_seen` only when the last total was there shows.
    """
    if len(visits) != len(starters) or (publisher is not None and len(visits) > 1):
        raise UsageError("Each token has visits and a starter, and a publisher is named for a single token only.")
    gaps: list[Gap] = []
    unseen: list[Stretch] = []

    latest = None if ends_seen or moves is None else max(moved[steps] for moved in moves)

    def stretch(item: int, before: int, at: int, first: Peer | None, last: Peer | None) -> Stretch:
        """Return the stretch between two visits, or between a visit and an end of the walk."""
        silent = origin if before == 0 and first is None else None
        length = at - before - 1
        if moves is None or length == 0:
            return Stretch(length, first, last)
        begin = before + 1 if silent is None else 0
        if at > steps and latest is not None:
            return Stretch(length, first, last, latest - moves[item][begin], silent, until)
        return Stretch(length, first, last, moves[item][at - 1] - moves[item][begin], silent)

    known = [bool(seen) and seen[-1][0] == steps for seen in visits]
    until = Until.REACHED
    if moves is not None and any(sure and moved[steps] == latest for sure, moved in zip(known, moves, strict=True)):
        until = Until.MOST

    for item, (seen, starter) in enumerate(zip(visits, starters, strict=True)):
        first, before = starter, 0
        for step, came_from, went_to in seen:
            if not before < step <= steps:
                raise UsageError(f"The visits of a token have ascending steps from 1 to {steps}.")
            gaps.append((stretch(item, before, step, first, came_from),))
            first, before = went_to, step
        unseen.append(stretch(item, before, steps + 1, first, publisher))
    gaps.append(tuple(unseen))
    kept = [tuple(stretch for stretch in gap if stretch.length > 0) for gap in gaps]
    return [gap for gap in kept if gap]
