"""What a node hands in of its ledger once that is closed: its skeleton, sealed to the auditor where there is one."""

from __future__ import annotations

from collections.abc import Callable

from p2pdp.crypto.sealed_skeleton import seal_skeleton
from p2pdp.ledger.journal import VIEW
from p2pdp.ledger.records import to_skeleton
from p2pdp.peer.credentials import Credentials
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.skeleton_size import skeleton_size


def handed_in(read: Callable[[str], bytes], run: RunPlan, credentials: Credentials) -> Callable[[], bytes]:
    """`read` gives a ledger by its name, when it is closed.

    What is returned gives the same bytes each time, so that they can be handed in again after a restart.
    """
    auditor = run.spec.audit.key
    if auditor is None:
        return lambda: to_skeleton(read(VIEW))
    size = skeleton_size(run, run.n - 1 if credentials.neighbours is None else len(credentials.neighbours))
    return lambda: seal_skeleton(to_skeleton(read(VIEW)), bytes.fromhex(auditor), credentials.run_key.secret, size)
