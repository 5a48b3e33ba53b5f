"""`bench gossip` and `bench vectors`: rounds of gossip a second, among real processes, with encryption and ledgers.

The graph is regular, so every user has the same work. Rounds last from the first user's GO until the last user's
result, by the clock that all processes of one machine share; starting and ending the run is reported beside them. Real
rounds and bare ones (`bare_gossip.py`) take turns; rates wander with the machine, so the median of the pairs' ratios is
what counts. Processor time a message is that of all processes from start to end, of both kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import numpy as np

from p2pdp.assembly.outcome import numbers_frame
from p2pdp.bench.bare_gossip import bare_rounds
from p2pdp.bench.harness import cpu_s, local_run, require, require_degree, require_transport, spec_text
from p2pdp.cluster.launcher import Cluster
from p2pdp.core import messages
from p2pdp.core.errors import RunFailed
from p2pdp.core.ids import is_user
from p2pdp.core.spec import GraphPart
from p2pdp.files.spec import parse_spec
from p2pdp.ledger.records import OWN, RECEIVED, SENT, Record, carries_value, public_message
from p2pdp.topology.graphs import make_graph


def bench_gossip(
    nodes: int = 16, degree: int = 4, rounds: int = 2000, pairs: int = 3, transport: str = "tcp"
) -> dict[str, Any]:
    """Measure gossip of one number."""
    _check(nodes, degree, rounds, pairs, transport)
    text = spec_text("gossip", **_sections(nodes, degree, rounds, transport))
    return _measured(text, nodes, degree, rounds, pairs, 1)


def bench_vectors(
    nodes: int = 16, degree: int = 4, numbers: int = 10_000, rounds: int = 30, pairs: int = 3, transport: str = "tcp"
) -> dict[str, Any]:
    """Measure gossip of vectors; their values are zeros, since no step depends on values."""
    _check(nodes, degree, rounds, pairs, transport)
    require(numbers >= 1, f"--numbers {numbers}", "at least 1")
    numbers_frame(numbers)  # refuses what fits into no frame
    with TemporaryDirectory(prefix="p2pdp-bench-") as place:
        file = Path(place) / "vectors.npy"
        np.save(file, np.zeros((nodes, numbers)))
        data = {"path": str(file)}
        text = spec_text("vectors", data=data, **_sections(nodes, degree, rounds, transport))
        return _measured(text, nodes, degree, rounds, pairs, numbers)


def _check(nodes: int, degree: int, rounds: int, pairs: int, transport: str) -> None:
    for name, value in (("rounds", rounds), ("pairs", pairs)):
        require(value >= 1, f"--{name} {value}", "at least 1")
    require_degree(nodes, degree, 2)
    require_transport(transport)


def _sections(nodes: int, degree: int, rounds: int, transport: str) -> dict[str, dict[str, Any]]:
    run = {"nodes": nodes, "transport": transport, "patience_s": 60}
    return {"run": run, "graph": {"kind": "regular", "degree": degree}, "gossip": {"rounds": rounds}}


def _measured(text: str, nodes: int, degree: int, rounds: int, pairs: int, numbers: int) -> dict[str, Any]:
    """Return medians over pairs of a real run and a bare one, and the pairs themselves."""
    graph = make_graph(GraphPart("regular", degree=degree), nodes, 1).neighbours
    measured = []
    for pair in range(pairs):
        real: dict[str, Any] = {}
        bare_s = bare_cpu_s = 0.0
        for kind in ("real", "bare") if pair % 2 else ("bare", "real"):  # neither always comes first
            if kind == "real":
                real = measure_gossip(text)
            else:
                before_s = cpu_s()
                bare_s = bare_rounds(graph, numbers_frame(numbers), rounds)
                bare_cpu_s = cpu_s() - before_s
        measured.append(
            {
                "rounds_per_second": rounds / real["seconds"],
                "bare_rounds_per_second": rounds / bare_s,
                "ratio": bare_s / real["seconds"],
                "messages_per_second": real["exchanges"] / real["seconds"],
                "cpu_us_per_message": 1e6 * real["cpu_seconds"] / real["exchanges"],
                "bare_cpu_us_per_message": 1e6 * bare_cpu_s / (nodes * degree * rounds),
                **{name: real[name] for name in ("seconds", "seconds_until_enrolled", "seconds_in_all")},
            }
        )
    about = {"transport": parse_spec(text, None).run.transport, "nodes": nodes, "degree": degree, "rounds": rounds}
    rates = {name: median(pair[name] for pair in measured) for name in measured[0]}
    return about | {"numbers": numbers} | rates | {"pairs": measured}


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
