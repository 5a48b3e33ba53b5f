"""What an observer of a token's walk knows of the stretches that it does not see, from its own visits alone.

Between two visits of a token to the observer lies a stretch of contributions by others, in slots one after another.
The observer knows how many they are, for tokens count their steps; who had the first slot, for it chose its
successor; and who had the last, who sent it the token. Before the first visit the first slot is known where it is
public who starts, and after the last visit the last one where it is published who handed the total in.

What is seen of a stretch is one sum. Only the sum of all totals is published, so what follows the last visits
of several tokens is a single observation too: a `Gap` is the stretches whose contributions are seen as one sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from p2pdp.core.errors import UsageError
from p2pdp.core.ids import Peer


class Stretch(NamedTuple):
    """So many contributions by others in a row; who made the first and the last, where that is known."""

    length: int
    first: Peer | None
    last: Peer | None

    @property
    def known(self) -> tuple[Peer, ...]:
        """Whose slots are known, one entry each."""
        ends = {0: self.first, self.length - 1: self.last}
        if self.length == 1 and self.first is not None:
            ends = {0: self.first}
        return tuple(user for user in ends.values() if user is not None)


Gap = tuple[Stretch, ...]
Visit = tuple[int, Peer | None, Peer | None]  # the step, who had the token before, and who after; None: no user


def gaps_of(
    visits: Sequence[Sequence[Visit]], steps: int, starters: Sequence[Peer | None], publisher: Peer | None = None
) -> list[Gap]:
    """The gaps of one observer. `visits` and `starters` have an entry for each token, visits in order of their steps.

    `publisher` is who handed in the total, where the observer is told; of several tokens nobody is named.
    """
    if len(visits) != len(starters) or (publisher is not None and len(visits) > 1):
        raise UsageError("Each token has visits and a starter, and a publisher is named for a single token only.")
    gaps: list[Gap] = []
    unseen: list[Stretch] = []
    for seen, starter in zip(visits, starters, strict=True):
        first, before = starter, 0
        for step, came_from, went_to in seen:
            if not before < step <= steps:
                raise UsageError(f"The visits of a token have ascending steps from 1 to {steps}.")
            gaps.append((Stretch(step - before - 1, first, came_from),))
            first, before = went_to, step
        unseen.append(Stretch(steps - before, first, publisher))
    gaps.append(tuple(unseen))
    kept = [tuple(stretch for stretch in gap if stretch.length > 0) for gap in gaps]
    return [gap for gap in kept if gap]
