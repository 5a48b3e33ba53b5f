"""Find out whether ledgers are in order, for commands that do not verify a run: they show, export or attack it."""

from __future__ import annotations

from collections.abc import Callable

from p2pdp.auditor.verify import Verification, verify
from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import peer_name
from p2pdp.replay.evidence import Evidence

OnLack = Callable[[str], None] | None  # is told what a run lacks that is not over, or whose ledgers are not all there


def first_problem(checked: Verification) -> str:
    first = checked.problems[0]
    place = peer_name(first.peer) if first.index is None else f"{peer_name(first.peer)}, record {first.index}"
    more = f" (and {len(checked.problems) - 1} more: p2pdp verify lists them)" if len(checked.problems) > 1 else ""
    return f"node {place}: {first.what}{more}"


def check_in_order(evidence: Evidence, on_lack: OnLack = None) -> None:
    """Refuse ledgers that verification finds wrong; those that are absent or were never closed are told."""
    checked = verify(evidence)
    if not checked.only_missing:
        raise VerificationFailed(first_problem(checked))
    if on_lack is not None and checked.verified is None:
        on_lack(first_problem(checked))
