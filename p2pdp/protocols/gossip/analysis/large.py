"""Shares and standard errors of gossip among more users than a table of all users' values in all results has room for.

They are those of `outcome.py` except for rounding. The time is that of the rounds where results are published. Where
none are, that is for each user, so above `_WORK_MAX` the standard error is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from p2pdp.core.arrays import Floats
from p2pdp.protocols.gossip.analysis.fast import Rounds, deviation_of, of_all, shares_and_error
from p2pdp.protocols.run_plan import RunPlan

_WORK_MAX: Final = 2**36  # about a minute, after a run that took several


def of_rounds(run: RunPlan, matrices: Sequence[Any]) -> tuple[Floats | None, float | None]:
    """Return them for a run with the weights of these rounds, in which nobody was gone and states were sent clean."""
    rounds = Rounds(run, matrices)
    shares, error = shares_and_error(run, rounds)
    if error is None and run.n * sum(matrix.nnz for matrix in matrices) <= _WORK_MAX:
        own, _ = of_all(run.n, rounds.shares)
        error = math.sqrt(own) * deviation_of(run.plan.noise, run.plan.step)
    return shares, error
