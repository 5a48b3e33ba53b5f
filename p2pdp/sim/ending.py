"""Why a simulated run did not come to its end, in one sentence that names who is missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, peer_name
from p2pdp.services.desk import Desk
from p2pdp.sim.process import Process


def why_not(
    processes: Mapping[Peer, Process], out: Collection[Peer], blocked: Peer | None, desk: Desk | None, reroutes: bool
) -> str:
    """`blocked` is whom bootstrap said the run is waiting for; who is `out` is missed by nobody."""
    stopped = [peer for peer, process in processes.items() if process.host is not None and process.host.stopped]
    if desk is not None and desk.roster is None and processes[CURATOR].seat is not None:
        stopped.append(BOOTSTRAP)  # it gave out seats that it does not remember
    if stopped:
        return f"the run stopped: the disk of {_names(stopped)} was rolled back"
    gone = [peer for peer, process in processes.items() if not process.returns and peer not in out]
    if blocked is not None and blocked in gone:
        name = peer_name(blocked)
        why = "" if reroutes else ", and a ring cannot go round"
        return f"the run is blocked: {name} is gone{why}; it goes on when {name} is back"
    return f"the run came to a standstill; gone: {_names(gone) or 'nobody'}"


def _names(peers: Iterable[Peer]) -> str:
    return ", ".join(str(peer_name(peer)) for peer in peers)
