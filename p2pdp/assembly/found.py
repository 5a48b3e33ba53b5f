"""What a run is found to have computed: filled by `outcome.py` and those it asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from p2pdp.core.ids import Peer
from p2pdp.core.values import Source

Number = float | list[float] | None
Path = list[tuple[Peer, int]]  # of a token: at each step the user, and how often it had contributed before


@dataclass
class Outcome:
    """`counted` says per user how often each of its values (reports: visits) is in the published result.

    Of gossip: `finals` are the users' own results, `rows` what they are made of (`gossip/analysis/outcome.py`) and
    `variances` the covariance of their noise, `shares` what the mean of those published is made of, and
    `deviation` that of its noise, or of a user's own result if none is; None where that was not worked out.
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
    shares: Any = None
    deviation: float | None = None
    forms: list[list[dict[Source, float]]] | None = None  # by result, what each value in it is made of (`linear.py`)
    paths: list[Path] | None = None  # of descent; None where they cannot be told
    course: Any = None  # of learning by gossip (`outcome_descent.py`); None where it cannot be told
    truth: Number = None  # where it is known already
    traffic: dict[str, Any] | None = None  # of shuffling: what each user sent (`shuffle/analysis/traffic.py`)
    excluded: Sequence[Peer] = ()  # who was gone round

    @property
    def contributions(self) -> int:
        return sum(sum(values.values()) for values in self.counted.values())


def difference(estimate: Number, truth: Number) -> Number:
    if estimate is None or truth is None:
        return None
    if isinstance(estimate, list) and isinstance(truth, list):
        return [mine - theirs for mine, theirs in zip(estimate, truth, strict=True)]
    assert not isinstance(estimate, list)
    assert not isinstance(truth, list)
    return estimate - truth
