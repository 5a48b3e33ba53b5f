"""What ledgers say a run came to, from their bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from p2pdp.assembly import outcome as room
from p2pdp.assembly.outcome import Outcome
from p2pdp.core.ids import Peer
from p2pdp.ledger.records import read, whole_length
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Recorded


def outcome(run: RunPlan, views: Mapping[Peer, bytes], excluded: Sequence[Peer]) -> Outcome:
    """Return the outcome by all ledgers that have begun."""
    return room.outcome(run, recorded(run, views), excluded)


def recorded(run: RunPlan, views: Mapping[Peer, bytes]) -> Recorded:
    """Return the ledgers that have begun, parsed."""
    return Recorded(run, {peer: read(data) for peer, data in views.items() if whole_length(data)})
