"""Which runs are too large for their costs to be computed beforehand: `plan` and a node refuse them at once.

The limits are such that what is allowed takes minutes at most on one machine. They are no limits of runs: a local run
may be larger.
"""

from __future__ import annotations

from typing import Any, Final

from p2pdp.core.errors import Refused
from p2pdp.core.spec import Spec
from p2pdp.protocols import protocol

USERS_MAX: Final = 200_000


def check_accountable(spec: Spec, plan: Any = None) -> None:
    """`Refused` where computing costs would take too long; with the plan also by what follows from the graph."""
    _check("[run] nodes", "users", spec.run.nodes, USERS_MAX)
    for work in protocol(spec.run.protocol).work(spec, plan):
        _check(work.key, work.what, work.actual, work.most)


def _check(name: str, what: str, actual: int, most: int) -> None:
    if actual > most:
        raise Refused(
            f"{name}: this run has {actual:,} {what}, and what a run costs is computed for at most {most:,} of them"
        )
