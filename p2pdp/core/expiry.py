"""The end of a run's time: `[run] expires`, a moment that is part of the signed spec, so all peers have the same.

A run that has not ended by then is given up by each of its processes, by the clock that it has: it draws, records
and sends nothing more, and its run key is unlinked. So what was still under way can neither be gone on with nor be
read later by whoever gets hold of a machine. The simulator's clock begins at 1970-01-01T00:00:00Z.
"""

from __future__ import annotations

from datetime import datetime

from p2pdp.core.errors import RunFailed
from p2pdp.core.spec import RunPart


class Expired(RunFailed):
    """The time of a run is over; its folder cannot be resumed."""


def expires_s(run: RunPart) -> float | None:
    """Return when a run expires, in seconds since the epoch; None if it does not."""
    return None if run.expires is None else datetime.fromisoformat(run.expires).timestamp()


def expired(run: RunPart) -> Expired:
    return Expired(f"the run expired at {run.expires} ([run] expires) before it had ended; it cannot be resumed")


def check_not_expired(run: RunPart, now_s: float) -> None:
    at_s = expires_s(run)
    if at_s is not None and now_s >= at_s:
        raise expired(run)
