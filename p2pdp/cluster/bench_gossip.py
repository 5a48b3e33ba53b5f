"""The processes of `bench gossip`: a real local run, from its start to its end, whose times are in its ledgers.

Rounds last from the moment that the first user goes until the last one has come to its result, by the clock that
all processes of one machine have in common. Every message is boxed and recorded by both ends, as in any run.
"""

from __future__ import annotations

import resource
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from p2pdp.cluster.folder import RunFolder
from p2pdp.cluster.jobs import job_of
from p2pdp.cluster.launcher import Cluster
from p2pdp.core import messages
from p2pdp.core.errors import RunFailed
from p2pdp.core.ids import is_user
from p2pdp.crypto.roster import Roster
from p2pdp.files.folder import ROSTER_FILE, read_json
from p2pdp.ledger.messages import carries_message, public_message
from p2pdp.ledger.records import OWN, RECEIVED, SENT, Record, read


def measure_gossip(spec_text: str) -> dict[str, Any]:
    """Seconds of the rounds, until all are enrolled and in all; exchanges between users; and processor time."""
    began_s = monotonic()
    measured: dict[str, Any] = {}
    with TemporaryDirectory(prefix="p2pdp-bench-") as name:
        folder = RunFolder.make(Path(name) / "run", spec_text)
        job = job_of(folder)
        job.plan(job.slots)
        job.warm_up()

        def on_event(event: dict[str, Any]) -> None:
            if event["event"] == "enrolled":
                measured["seconds_until_enrolled"] = monotonic() - began_s

        before_s = _cpu_s()
        Cluster(job, on_event).run()
        measured["seconds_in_all"] = monotonic() - began_s
        measured["cpu_seconds"] = _cpu_s() - before_s
        views = folder.views(Roster.from_json(read_json(folder.path / ROSTER_FILE)))
    users = [read(view).records for peer, view in views.items() if is_user(peer)]
    measured["seconds"] = seconds_between(users)
    measured["exchanges"] = sum(is_exchange(record) for records in users for record in records)
    return measured


def seconds_between(users: Sequence[Sequence[Record]]) -> float:
    """From the first word to go until the last result."""
    taken = [
        (public_message(one).type, one.body[0]) for records in users for one in records if one.kind in (RECEIVED, OWN)
    ]
    began = [at_s for kind, at_s in taken if kind == messages.GO]
    ended = [at_s for kind, at_s in taken if kind == messages.FINAL]
    if len(ended) != len(users):
        raise RunFailed(f"{len(users) - len(ended)} users did not come to a result")
    return float(max(ended) - min(began))


def is_exchange(record: Record) -> bool:
    return record.kind == SENT and carries_message(record) and public_message(record).type == messages.EXCHANGE


def _cpu_s() -> float:
    """Of this process and all that have ended."""
    usage = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(used.ru_utime + used.ru_stime for used in usage)
