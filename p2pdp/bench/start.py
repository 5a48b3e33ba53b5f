"""`bench start`: the time until all users of a local run are enrolled, and the memory of each.

The graph is regular of degree 10, as users would choose for a thousand nodes; a node learns its own neighbours only.
Connections between neighbours are made when first needed, and so are not counted. `seconds` last until every user
listens and has its seat; in that moment all processes are stopped and their private memory is read.
"""

from __future__ import annotations

import os
import signal
from time import monotonic
from typing import Any, Final

from p2pdp.bench.harness import PROCESSES, counts_private_memory, cpu_s, local_run, private_mib, require, spec_text
from p2pdp.cluster.launcher import Cluster
from p2pdp.cluster.layout import Packing
from p2pdp.core.errors import NotReady, RunFailed
from p2pdp.node.hardening import stay_open
from p2pdp.transports.contract import ROLES

DEGREE: Final = 10
_HOPS: Final = 1_000_000  # more than any walk makes before it is stopped


class _EnrolledError(Exception):
    """All users are enrolled, and the run is no longer needed."""


def bench_start(
    nodes: int, nodes_per_process: int = 1, *, spawn: bool = False, whole_process: bool = False
) -> dict[str, Any]:
    """Measure a start. Time counts from this call or, with `whole_process`, from the start of this process."""
    require(nodes > DEGREE, f"--nodes {nodes}", f"more than {DEGREE}, the degree of the graph")
    packing = Packing(nodes_per_process, spawn)
    graph = {"kind": "regular", "degree": DEGREE}
    text = spec_text("walk", run={"nodes": nodes}, graph=graph, walk={"hops": _HOPS})
    with stay_open():  # their memory is measured from here
        measured = measure_start(text, packing, whole_process=whole_process)
    around = {"nodes_per_process": nodes_per_process, "spawn": spawn, "graph": "regular", "degree": DEGREE}
    return {"nodes": nodes, **measured, **around}


def measure_start(text: str, packing: Packing, *, whole_process: bool) -> dict[str, Any]:
    if not counts_private_memory():
        raise NotReady("private memory is counted on Linux only, from release 4.14")
    began_s = monotonic() - (_age_s() if whole_process else 0.0)
    at_s: dict[str, float] = {}
    memory: dict[int, float] = {}

    def on_event(event: dict[str, Any]) -> None:
        at_s[event["event"]] = monotonic() - began_s
        if event["event"] == "enrolled":
            memory.update(_memory(cluster.processes))
            raise _EnrolledError

    with local_run(text, packing) as (_, job):
        cluster = Cluster(job, on_event, packing)
        try:
            cluster.run()
        except _EnrolledError:
            pass
        else:
            raise RunFailed("the run was over before all users were enrolled")
    roles_mib = memory.pop(ROLES)
    return {
        "seconds": at_s["enrolled"],
        "private_mib_per_node": sum(memory.values()) / job.slots,
        "private_mib_of_roles": roles_mib,
        "processes": len(memory) + 1,
        "seconds_until_started": at_s["started"],
        "seconds_until_roster": at_s["roster"],
        "cpu_seconds": cpu_s(),
    }


def _memory(processes: dict[int, int]) -> dict[int, float]:
    """Return the private memory of each process, in MiB, with all of them stopped meanwhile."""
    for child in processes:
        os.kill(child, signal.SIGSTOP)
    try:
        return {who: private_mib(child) for child, who in processes.items()}
    finally:
        for child in processes:
            os.kill(child, signal.SIGCONT)


def _age_s() -> float:
    """Return the age of this process, to a hundredth of a second."""
    fields = (PROCESSES / "self" / "stat").read_text().rpartition(")")[2].split()
    since_boot_s = float((PROCESSES / "uptime").read_text().split()[0])
    return since_boot_s - int(fields[19]) / os.sysconf("SC_CLK_TCK")
