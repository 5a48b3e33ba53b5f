"""What one user can read about others from its own `view.ledger` alone.

A `Reading` is the sum of what one user contributed, noised by that user alone, or of what several users
contributed without any noise; the reader knows from the public schedule and from whom it dealt with whose it
is. Each family of protocols has a decoder of its own, found by the family's name.

Values are in the units of the machines (grid units). The caller owes records that it trusts, with values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from p2pdp.attacks.descent import read_descent
from p2pdp.attacks.gossip import read_gossip
from p2pdp.attacks.shuffling import SEALED
from p2pdp.attacks.walks import gaps_of
from p2pdp.core.errors import Refused
from p2pdp.core.ids import Peer
from p2pdp.ledger.records import Contents
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.shuffling_plan import ShufflePlan
from p2pdp.protocols.walk_sgd import SgdPlan

Place = tuple[int, int]  # item and step at which a contribution was made


@dataclass
class Reading:
    """`total` of the contributions at `places`; each of the `users` made as many of them as the others."""

    users: tuple[Peer, ...]
    total: Any = 0
    places: list[Place] = field(default_factory=list)

    @property
    def times(self) -> int:
        """How many contributions of each user are in it."""
        return len(self.places) // len(self.users)


def readings_of(run: RunPlan, observer: Peer, contents: Contents) -> list[Reading]:
    """All that the observer can read, in the order of the users' numbers; whoever can be told alone comes first."""
    family = run.protocol.name.partition(".")[0]
    if isinstance(run.plan, ShufflePlan):
        raise Refused(SEALED)
    decoder = _DECODERS.get(family)
    if decoder is None:
        raise Refused(f"nobody has written an attack on {run.protocol.name} yet")
    found: dict[tuple[Peer, ...], Reading] = {}
    for users, total, places in decoder(run, observer, contents):
        reading = found.setdefault(users, Reading(users))
        reading.total = reading.total + total
        reading.places += places
    return sorted(found.values(), key=lambda reading: (len(reading.users), reading.users))


def _walk(run: RunPlan, observer: Peer, contents: Contents) -> list[tuple[tuple[Peer, ...], Any, list[Place]]]:
    plan = run.plan
    if isinstance(plan, SgdPlan):
        return read_descent(run, observer, contents)
    found = []
    for gap in gaps_of(plan, observer, contents):
        if gap.holders is None or observer in gap.holders or not gap.holders:
            continue
        steps = [step for _, step in gap.places]
        if plan.dummies and {1, plan.steps} & set(steps):
            continue  # uniform elements that nobody contributed are in it
        users = tuple(sorted(set(gap.holders)))
        noised = plan.noise.name == "randomized_response" or any(plan.draws_at(step) for step in steps)
        if len(users) == 1 or not noised:
            found.append((users, gap.total, gap.places))
    return found


_DECODERS: Final[dict[str, Callable[[RunPlan, Peer, Contents], list[tuple[tuple[Peer, ...], Any, list[Place]]]]]] = {
    "walk": _walk,
    "gossip": read_gossip,
}
