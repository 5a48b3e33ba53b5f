"""`bench gossip`: how many rounds of gossip a second, among real processes, boxed and with ledgers.

The graph is regular, so every user has as much to do. The run begins as any other, and what that takes is told
beside the rates, which are those of the rounds alone.
"""

from __future__ import annotations

from typing import Any, Final

from p2pdp.cluster.bench_gossip import measure_gossip
from p2pdp.core.errors import UsageError
from p2pdp.runs.bench_hops import TRANSPORTS

_SPEC: Final = """[run]
protocol = "gossip.average"
nodes = {nodes}
seed = 1
transport = "{transport}"
patience_s = 60
enrol_timeout_s = 600
audit = false
[graph]
kind = "regular"
degree = {degree}
[gossip]
rounds = {rounds}
[noise]
mechanism = "gaussian"
sigma = 1.0
[data]
kind = "uniform"
clip = [0.0, 1.0]
"""


def bench_gossip(nodes: int = 16, degree: int = 4, rounds: int = 2000, transport: str = "tcp") -> dict[str, Any]:
    if rounds < 1:
        raise UsageError(f"--rounds {rounds}: must be at least 1")
    if not (1 < degree < nodes and nodes * degree % 2 == 0):
        raise UsageError(f"--degree {degree}: must be at least 2 and below --nodes, and their product even")
    if transport not in TRANSPORTS:
        raise UsageError(f"--transport {transport}: must be {' or '.join(TRANSPORTS)}")
    measured = measure_gossip(_SPEC.format(nodes=nodes, degree=degree, rounds=rounds, transport=transport))
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
