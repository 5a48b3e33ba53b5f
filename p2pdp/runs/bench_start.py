"""`bench start`: how long it takes until all users of a local run are enrolled, and how much memory each has.

The graph is regular of degree 10, a sparse one as users would choose for a thousand nodes; of that a node
learns its own neighbours only. Connections between neighbours are made when first needed, and so not counted.
"""

from __future__ import annotations

from typing import Any

from p2pdp.cluster.bench_start import measure_start
from p2pdp.cluster.layout import Packing
from p2pdp.core.errors import UsageError

DEGREE = 10
_SPEC = f"""[run]
protocol = "walk.sum"
nodes = {{nodes}}
seed = 1
enrol_timeout_s = 600
[graph]
kind = "regular"
degree = {DEGREE}
[walk]
order = "random"
hops = 1000000
[noise]
mechanism = "gaussian"
sigma = 1.0
[data]
kind = "uniform"
clip = [0.0, 1.0]
"""


def bench_start(
    nodes: int, nodes_per_process: int = 1, *, spawn: bool = False, whole_process: bool = False
) -> dict[str, Any]:
    """Time counts from this call or, with `whole_process`, from when this process was started."""
    if nodes <= DEGREE:
        raise UsageError(f"--nodes {nodes}: must be more than {DEGREE}, the degree of the graph")
    packing = Packing(nodes_per_process, spawn)
    measured = measure_start(_SPEC.format(nodes=nodes), packing, whole_process=whole_process)
    around = {"nodes_per_process": nodes_per_process, "spawn": spawn, "graph": "regular", "degree": DEGREE}
    return {"nodes": nodes, **measured, **around}
