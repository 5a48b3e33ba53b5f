"""The memory that an audit takes, said before it begins; what cannot fit is refused instead of being killed.

An audit holds the records of all ledgers with what replaying them gives, what belongs to each user, and some arrays
with a number for each pair of users, or of a block of them where there are many users. Large values are not held. How
many records there are is told by a few ledgers: the others are taken to have as many a byte. Processes share all of
that, but for what each computes itself and for pages that it touches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from p2pdp.auditor.pairs import BLOCK_PAIRS, HELD_MAX
from p2pdp.core.errors import NotReady
from p2pdp.core.ids import is_user
from p2pdp.files.memory import free_bytes
from p2pdp.ledger.journal import PRIVATE, VIEW
from p2pdp.ledger.records import LedgerError
from p2pdp.ledger.stored import size_of
from p2pdp.protocols import protocol
from p2pdp.replay.evidence import Evidence

Notice = Callable[[str], None]
PROCESS_BYTES: Final = 100 * 1024**2  # of the program and its libraries
OWN_SHARE: Final = 1.2  # of what is held, that each process comes to have of its own: its family says how much at most
RECORD_BYTES: Final = 1600  # parsed, and replayed
USER_BYTES: Final = 100 * 1024  # of each user: its machine, and what is gathered about it
PAIR_BYTES: Final = 12 * 8  # of each pair, in all arrays together
_LOOKED_AT: Final = 16  # users whose ledgers tell how many records there are
_SAID_FROM: Final = 1024**3
_GIB: Final = 1024**3


def unnoticed(_text: str) -> None:
    """Tell nobody."""


def in_blocks(evidence: Evidence, *, pairs: bool) -> bool:
    """Return whether an audit looks at pairs in blocks of observers; with `pairs` it is asked for all of them."""
    analysis = protocol(evidence.spec.run.protocol).analysis()
    return evidence.roster.n > HELD_MAX and not pairs and analysis.looks_in_blocks(evidence.run)


def audit_bytes(evidence: Evidence, processes: int, *, pairs: bool = False) -> int:
    """Return about how much memory an audit takes, all processes together."""
    analysis = protocol(evidence.spec.run.protocol).analysis()
    held = RECORD_BYTES * (_records(evidence, VIEW) + _records(evidence, PRIVATE))
    held += USER_BYTES * evidence.roster.n
    numbers = BLOCK_PAIRS if in_blocks(evidence, pairs=pairs) else evidence.roster.n**2
    held += PAIR_BYTES * numbers if analysis.tells_pairs else 0
    return PROCESS_BYTES + held + processes * min(analysis.worker_bytes, int(OWN_SHARE * held))


def _records(evidence: Evidence, role: str) -> int:
    """Return about how many records there are in all ledgers of a role."""
    ledgers = evidence.views if role == VIEW else evidence.private
    users = [peer for peer in sorted(ledgers) if is_user(peer)]
    looked_at = {*users[:: max(1, len(users) // _LOOKED_AT)], *(ledgers.keys() - set(users))}
    found = of_bytes = 0
    for peer in looked_at:
        try:
            found += len(evidence.contents(peer, role).records)
            of_bytes += size_of(ledgers[peer])
        except LedgerError:  # which verification says
            continue
    return found * sum(map(size_of, ledgers.values())) // max(1, of_bytes)


def check_memory(evidence: Evidence, processes: int, notice: Notice = unnoticed, *, pairs: bool = False) -> None:
    """Tell how much memory an audit takes if it is much, and refuse one that does not fit."""
    needed = audit_bytes(evidence, processes, pairs=pairs)
    if needed < _SAID_FROM:
        return  # an estimate of so little is too rough to refuse anything
    notice(f"this audit takes about {needed / _GIB:.1f} GiB of memory")
    free = free_bytes()
    if free is not None and needed > free:
        fewer = ", or --workers 1" if processes > 1 else ""
        raise NotReady(
            f"an audit of these ledgers takes about {needed / _GIB:.1f} GiB of memory, and {free / _GIB:.1f} GiB are "
            f"free: audit an exported file on a larger machine{fewer}"
        )
