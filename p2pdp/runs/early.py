"""Other cores begin what an audit is likely to ask for while this process still reads and verifies the ledgers.

What is begun follows from what it is about, so it is right whatever is found; an audit that asks for something else, or
for nothing, loses time only. The processes are forked before ledgers are read, and so share little memory with this.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from p2pdp.auditor.context import Taking, nothing_ahead
from p2pdp.cluster.begun import Begun
from p2pdp.cluster.blocks import Cores
from p2pdp.core.arrays import Floats
from p2pdp.core.errors import VerificationFailed
from p2pdp.replay.evidence import Evidence


@contextmanager
def begun_early(evidence: Evidence, each: Cores) -> Iterator[Taking]:
    """Begin what the run's family proposes; what nobody took is ended when this is left."""
    ahead = None
    with suppress(VerificationFailed):  # which is said when that is verified
        ahead = evidence.run.protocol.analysis().ahead(evidence)
    begun = None if ahead is None else each.begin(evidence.roster.n, ahead.row)
    if ahead is None or begun is None:
        yield nothing_ahead
        return

    left: list[Begun] = [begun]  # to be taken once

    def taking(about: Any) -> list[Floats] | None:
        if not left:
            return None
        if about == ahead.about:
            return left.pop().take()
        left.pop().close()
        return None

    with begun:
        yield taking
