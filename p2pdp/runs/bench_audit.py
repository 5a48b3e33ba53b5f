"""`bench audit`: how long the exact leaks of all pairs of a run of gossip take, and how much memory.

The run is simulated first, which is not counted. What is counted is the whole command `p2pdp audit`: ledgers are
read and verified, the run is replayed over symbols, and each user's view is accounted for.
"""

from __future__ import annotations

from typing import Any, Final

from p2pdp.cluster.bench_audit import measure_audit
from p2pdp.core.errors import UsageError

GRAPHS: Final = ("hypercube", "ring", "complete", "erdos_renyi")
_SPEC: Final = """[run]
protocol = "gossip.average"
nodes = {nodes}
seed = 1
audit = false
[graph]
kind = "{graph}"
[gossip]
rounds = {rounds}
[noise]
mechanism = "gaussian"
sigma = 1.0
[data]
kind = "uniform"
clip = [0.0, 1.0]
[privacy]
delta = 1e-6
"""


def bench_audit(nodes: int = 256, rounds: int = 16, graph: str = "hypercube") -> dict[str, Any]:
    if nodes < 2 or rounds < 1:
        raise UsageError("--nodes must be at least 2, and --rounds at least 1")
    if graph not in GRAPHS:
        raise UsageError(f"--graph {graph}: must be one of {', '.join(GRAPHS)}")
    if graph == "hypercube" and nodes & (nodes - 1):
        raise UsageError(f"--nodes {nodes}: a hypercube has a power of two of them")
    measured = measure_audit(_SPEC.format(nodes=nodes, rounds=rounds, graph=graph))
    return {"nodes": nodes, "pairs": nodes * (nodes - 1), **measured, "graph": graph, "rounds": rounds}
