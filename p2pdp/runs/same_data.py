"""Check that the data of a launcher are those that a run was begun with.

Each user's private ledger holds its inputs, for its owner only (mode 0600). What a launcher reads again when it
continues a run, or compares a result with, must give the same ones: otherwise some users would contribute other values
than the rest, and the truth beside the result would be that of other data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from p2pdp.cluster.jobs import Job
from p2pdp.core.errors import P2pdpError, UsageError
from p2pdp.core.ids import Peer
from p2pdp.core.spec import REAL_DATA
from p2pdp.files.folder import peer_folder
from p2pdp.files.reading import bytes_in_folder
from p2pdp.ledger.journal import PRIVATE
from p2pdp.ledger.records import ENROLLED, INPUTS, SALT_BYTES, Contents, read, whole_length
from p2pdp.wire.codec import pack_value


def check_same_data(job: Job, slots: Sequence[int]) -> None:
    """Refuse data that are not those in the ledgers of users who have begun; made-up data follow from the spec.

    `slots` are those of the users, in the users' order.
    """
    if job.spec.data.kind not in REAL_DATA and job.spec.data.own is None:
        return
    n = len(slots)
    stated = tuple(len(job.own_rows(n, user, slot)) for user, slot in enumerate(slots)) if job.states_rows else None
    run = job.plan(n, stated)
    for user, slot in enumerate(slots):
        held = _held(job, user)
        if held is not None and pack_value(_values(run.protocol.inputs(run.plan, job.own_rows(n, user, slot)))) != held:
            raise UsageError(
                f"{job.folder}: this run was begun with other data; user {user} has recorded what it contributes. Give "
                "the data that it was begun with, or make a new run"
            )


def slots_in(bootstrap: Contents) -> list[int]:
    """Return the slot of each user, which is the number of its join token, from bootstrap's ledger."""
    return sorted({record.body.token for record in bootstrap.records if record.kind == ENROLLED})


def _values(made: tuple[Any, Any]) -> Any:
    return made[1]


def _held(job: Job, user: Peer) -> bytes | None:
    """Return the inputs that a user has recorded, packed; None before that, or where it can no longer be read."""
    try:
        place = peer_folder(job.folder, user).relative_to(job.folder)
        data = bytes_in_folder(job.folder, place / f"{PRIVATE}.ledger")
        length = whole_length(data) if data else 0
        records = read(data[:length]).records if length else []
    except P2pdpError:  # whoever reads it for the run says what is wrong
        return None
    return next((record.value[SALT_BYTES:] for record in records if record.kind == INPUTS and record.value), None)
