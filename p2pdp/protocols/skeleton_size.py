"""The size to which a user's skeleton is padded before it is sealed to the auditor.

The number of records of a skeleton tells how often its user was visited, or how many reports it passed on, which the
curator is not to know. So the size follows from what bootstrap knows anyway: the plan and the user's number of
neighbours. It has room for a count that all users together exceed with a probability of at most `EXCESS`:

* on a ring the schedule fixes the count, and gossip follows a schedule that bootstrap knows;
* visits of a random walk on the complete graph are independent draws, each with probability 1/n;
* in each round of shuffling reports are at independent places, and the mean of those at one user is 1 on a regular
  graph and at most its number of neighbours on any other. Chernoff's bound serves both.

On other graphs the visits of a walk depend on each other, so there the bound is a rule only. Where a skeleton does not
fit, its size doubles; the auditor sees that, and then refuses claims that rest on a hidden count.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from p2pdp.protocols.run_plan import RunPlan


EXCESS: Final = 1e-15
_UNIT: Final = 4096  # sizes are multiples of this
_LIFE_BYTES: Final = 8192  # what a ledger holds beside visits, reports and marks
VISIT_BYTES: Final = 360
MARK_BYTES: Final = 80


def skeleton_size(run: RunPlan, degree: int) -> int:
    """Bytes for a user with this many neighbours."""
    return -(-(_LIFE_BYTES + run.protocol.records_bytes(run, degree)) // _UNIT) * _UNIT


def at_most(mean: float, probability: float) -> int:
    """A count that a sum of independent indicators with this mean exceeds with at most this probability."""
    count = math.ceil(mean) + 1
    while count - mean - count * math.log(count / mean) > math.log(probability):
        count += 1
    return count
