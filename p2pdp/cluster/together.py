"""Large ledgers of one run are parsed on several threads.

To read, check and hash large values takes nearly all of the time then, and other threads go on meanwhile.

Guarantee: nothing is read that would not have been read anyway, and what is wrong with a ledger is for those to find
who ask for it. When this returns its threads are gone, so processes may be forked. Of each ledger one entry is in
memory at a time.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from p2pdp.cluster.processes import give_memory_back
from p2pdp.core.ids import Peer
from p2pdp.ledger.journal import PRIVATE, VIEW
from p2pdp.ledger.records import LedgerError
from p2pdp.ledger.stored import size_of
from p2pdp.replay.evidence import Evidence

LARGE_BYTES: Final = 16 << 20  # a smaller ledger is read soon, or has small values, which leave threads no room


def read_together(evidence: Evidence, threads: int) -> None:
    """Parse the large ledgers at hand, which `evidence` keeps."""
    large = [
        (peer, role)
        for role, ledgers in ((VIEW, evidence.views), (PRIVATE, evidence.private))
        for peer, ledger in ledgers.items()
        if size_of(ledger) >= LARGE_BYTES
    ]
    if threads < 2 or len(large) < 2:
        return

    def parse(place: tuple[Peer, str]) -> None:
        with suppress(LedgerError):
            evidence.contents(*place)

    with ThreadPoolExecutor(threads, thread_name_prefix="ledgers") as pool:
        for _ in pool.map(parse, large):
            pass
    give_memory_back()  # each thread keeps what it had for entries
