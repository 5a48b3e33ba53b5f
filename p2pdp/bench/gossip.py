"""`bench gossip`: rounds of gossip a second, among real processes, with encryption and ledgers.

The graph is regular, so every user has the same work. Rounds last from the first user's GO until the last user's
result, by the clock that all processes of one machine share; starting and ending the run is reported beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import Any

from p2pdp.bench.harness import cpu_s, local_run, require, require_degree, require_transport, spec_text
from p2pdp.cluster.launcher import Cluster
from p2pdp.core import messages
from p2pdp.core.errors import RunFailed
from p2pdp.core.ids import is_user
from p2pdp.ledger.records import OWN, RECEIVED, SENT, Record, carries_value, public_message


def bench_gossip(nodes: int = 16, degree: int = 4, rounds: int = 2000, transport: str = "tcp") -> dict[str, Any]:
    require(rounds >= 1, f"--rounds {rounds}", "at least 1")
    require_degree(nodes, degree, 2)
    require_transport(transport)
    run = {"nodes": nodes, "transport": transport, "patience_s": 60}
    graph = {"kind": "regular", "degree": degree}
    measured = measure_gossip(spec_text("gossip", run=run, graph=graph, gossip={"rounds": rounds}))
    seconds = measured["seconds"]
    return {
        "transport": transport,
        "nodes": nodes,
        "degree": degree,
        "rounds": rounds,
        "rounds_per_second": rounds / seconds,
        "messages_per_second": measured["exchanges"] / seconds,
        "cpu_us_per_message": 1e6 * measured["cpu_seconds"] / measured["exchanges"],
        **{name: measured[name] for name in ("seconds", "seconds_until_enrolled", "seconds_in_all")},
    }


def measure_gossip(text: str) -> dict[str, Any]:
    """Return the seconds of the rounds, of enrolment and of everything, the exchanges and the processor time."""
    began_s = monotonic()
    measured: dict[str, Any] = {}

    def on_event(event: dict[str, Any]) -> None:
        if event["event"] == "enrolled":
            measured["seconds_until_enrolled"] = monotonic() - began_s

    with local_run(text) as (folder, job):
        before_s = cpu_s()
        Cluster(job, on_event).run()
        measured["seconds_in_all"] = monotonic() - began_s
        measured["cpu_seconds"] = cpu_s() - before_s
        evidence = folder.evidence(folder.roster())
    users = [evidence.contents(peer).records for peer in evidence.begun if is_user(peer)]
    measured["seconds"] = seconds_between(users)
    measured["exchanges"] = sum(is_exchange(record) for records in users for record in records)
    return measured


def seconds_between(users: Sequence[Sequence[Record]]) -> float:
    """Return the seconds from the first GO until the last result in `users`' ledgers."""
    taken = [
        (public_message(one).type, one.body.now_s)
        for records in users
        for one in records
        if one.kind in (RECEIVED, OWN)
    ]
    began = [at_s for kind, at_s in taken if kind == messages.GO]
    ended = [at_s for kind, at_s in taken if kind == messages.FINAL]
    if len(ended) != len(users):
        raise RunFailed(f"{len(users) - len(ended)} users did not come to a result")
    return float(max(ended) - min(began))


def is_exchange(record: Record) -> bool:
    """Return whether a user sent a value to another user."""
    return record.kind == SENT and is_user(record.body.receiver) and carries_value(record)
