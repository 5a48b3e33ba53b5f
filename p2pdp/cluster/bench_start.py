"""The processes of `bench start`: a real local run, which is ended once all users are enrolled.

What is measured then is private memory (USS): what a process does not share with any other, as Linux counts
it. `seconds` last until every user listens and has its seat. In that moment all processes are stopped, since
the walk begins.
"""

from __future__ import annotations

import os
import re
import resource
import signal
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, Final

from p2pdp.cluster.folder import RunFolder
from p2pdp.cluster.jobs import job_of
from p2pdp.cluster.launcher import Cluster
from p2pdp.cluster.layout import ROLES, Packing
from p2pdp.core.errors import NotReady, RunFailed

PROCESSES: Final = Path("/proc")
_PRIVATE: Final = re.compile(r"^Private_(?:Clean|Dirty): +(\d+) kB$", re.MULTILINE)


class _EnoughError(Exception):
    """Everybody is enrolled."""


def measure_start(spec_text: str, packing: Packing, *, whole_process: bool) -> dict[str, Any]:
    if not (PROCESSES / "self" / "smaps_rollup").is_file():
        raise NotReady("private memory is counted on Linux only, from release 4.14")
    began_s = monotonic() - (_age_s() if whole_process else 0.0)
    measured: dict[str, Any] = {}
    with TemporaryDirectory(prefix="p2pdp-bench-") as name:
        folder = RunFolder.make(Path(name) / "run", spec_text, packing)
        job = job_of(folder)
        job.plan(job.slots)
        if not packing.spawn:
            job.warm_up()

        def on_event(event: dict[str, Any]) -> None:
            if event["event"] in ("started", "roster"):
                measured[f"{event['event']}_s"] = monotonic() - began_s
            elif event["event"] == "enrolled":
                measured["seconds"] = monotonic() - began_s
                measured["private_mib"] = _measured(cluster.processes)
                raise _EnoughError

        cluster = Cluster(job, on_event, packing)
        try:
            cluster.run()
        except _EnoughError:
            pass
        else:
            raise RunFailed("the run was over before everybody was seen to be enrolled")
    return _document(measured, job.slots)


def _measured(processes: dict[int, int]) -> dict[int, float]:
    for child in processes:
        os.kill(child, signal.SIGSTOP)
    try:
        return {who: private_mib(child) for child, who in processes.items()}
    finally:
        for child in processes:
            os.kill(child, signal.SIGCONT)


def _document(measured: dict[str, Any], nodes: int) -> dict[str, Any]:
    private_mib = measured["private_mib"]
    roles_mib = private_mib.pop(ROLES)
    usage = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "seconds": measured["seconds"],
        "private_mib_per_node": sum(private_mib.values()) / nodes,
        "private_mib_of_roles": roles_mib,
        "processes": len(private_mib) + 1,
        "seconds_until_started": measured["started_s"],
        "seconds_until_roster": measured["roster_s"],
        "cpu_seconds": sum(used.ru_utime + used.ru_stime for used in usage),  # from the first to the last
    }


def private_mib(process: int) -> float:
    try:
        text = (PROCESSES / str(process) / "smaps_rollup").read_text()
    except OSError as error:
        raise NotReady(f"the memory of process {process} cannot be read: {error.strerror}") from None
    return sum(int(kibibytes) for kibibytes in _PRIVATE.findall(text)) / 1024


def _age_s() -> float:
    """How long ago this process was started: to a hundredth of a second."""
    fields = (PROCESSES / "self" / "stat").read_text().rpartition(")")[2].split()
    since_boot_s = float((PROCESSES / "uptime").read_text().split()[0])
    return since_boot_s - int(fields[19]) / os.sysconf("SC_CLK_TCK")
