"""The input of a protocol's fast path: trials on consecutive seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from p2pdp.core.ids import Peer
from p2pdp.protocols.run_plan import RunPlan

Rows = Callable[[Peer], Any]
COMPARED_MAX: Final = 30
"""Of the trials of a run so many are compared with baselines and looked at on the way, which takes longer."""


@dataclass(frozen=True)
class Trials:
    """Trials of a run. Trial `number` is on `seed` + number; `rows(user)` returns a user's bounded data.

    `same` says that neither data nor graph follow from the seed, so that all trials are of `run`. Elsewhere `again`
    gives plan and data of a trial. `started` is called with the number of each trial that begins. Before these there
    were `begin` others: what the first trials of a run are asked for beside their results, later ones are not.
    """

    run: RunPlan
    rows: Rows
    seed: int
    count: int
    same: bool
    again: Callable[[int], tuple[RunPlan, Rows]]
    started: Callable[[int], None]
    begin: int = 0
