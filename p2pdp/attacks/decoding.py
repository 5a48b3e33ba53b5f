"""The attack of one user: values of others that it can read from its own `view.ledger` alone.

A `Reading` is the sum of one user's contributions with that user's noise, or of several users' contributions without
any noise. The reader knows whose it is from the public schedule and from whom it dealt with. A protocol's analysis has
its decoder.

Values are in the units of the machines (grid units). The caller owes records that it trusts, with values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from p2pdp.core.ids import Peer
from p2pdp.ledger.records import Contents
from p2pdp.protocols.run_plan import RunPlan

Place = tuple[int, int]  # item and step at which a contribution was made


@dataclass
class Reading:
    """A sum, `total`, of the contributions at `places`; each of the `users` made equally many of them."""

    users: tuple[Peer, ...]
    total: Any = 0
    places: list[Place] = field(default_factory=list)

    @property
    def times(self) -> int:
        """Return how many contributions of each user the total holds."""
        return len(self.places) // len(self.users)


def readings_of(run: RunPlan, observer: Peer, contents: Contents) -> list[Reading]:
    """Return all that the observer can read, in the order of the users' numbers; single users come before sums."""
    readings: dict[tuple[Peer, ...], Reading] = {}
    for users, total, places in run.protocol.analysis().read(run, observer, contents):
        reading = readings.setdefault(users, Reading(users))
        reading.total = reading.total + total
        reading.places += places
    return sorted(readings.values(), key=lambda reading: (len(reading.users), reading.users))
