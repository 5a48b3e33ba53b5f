"""What a run is found to have computed: filled by `outcome.py` for walks and by `averages.py` for gossip."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from p2pdp.core.ids import Peer

Number = float | list[float] | None


@dataclass
class Outcome:
    """`counted` says per user how often each of its values (reports: visits) is in the published result.

    Of gossip: `finals` are the users' own results, `rows` what they are made of (`assembly/averages.py`) and
    `variances` the covariance of their noise; None where that was not worked out.
    """

    published: Any = None
    counted: dict[Peer, dict[int, int]] = field(default_factory=dict)
    messages: int = 0
    go_s: float = 0.0
    published_s: float = 0.0
    over: bool = False  # the curator has published, be it nothing
    finals: dict[Peer, Any] = field(default_factory=dict)
    rows: Any = None
    variances: Any = None

    @property
    def contributions(self) -> int:
        return sum(sum(values.values()) for values in self.counted.values())
