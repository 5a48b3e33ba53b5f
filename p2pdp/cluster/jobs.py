"""A local run as each of its processes sees it, made from its folder alone.

So a fresh interpreter knows of a run what a forked one is born with. What cannot be run raises here, before
anything is started.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from p2pdp.cluster.folder import RunFolder
from p2pdp.core.draws import Sampler
from p2pdp.core.ids import Peer
from p2pdp.core.spec import Spec
from p2pdp.files.data import load_data
from p2pdp.files.spec import spec_digest
from p2pdp.files.tables import Moved, read_edge_list
from p2pdp.mechanisms.sampler import ExactSampler, FastSampler, warm
from p2pdp.protocols.run_plan import RunPlan, plan_run


@dataclass(frozen=True)
class Job:
    """One local run. `secrets` are those of join tokens; `plan(n)` makes the plan for the real number of users."""

    spec: Spec
    folder: Path
    run_id: bytes
    text: str
    digest: bytes
    bootstrap_public: bytes
    secrets: Sequence[bytes] = field(repr=False)
    plan: Callable[[int], RunPlan]
    rows: Callable[[int, Peer], Any] = field(repr=False)
    trace_wire: bool = False
    moved: tuple[Moved, ...] = field(default=(), repr=False)  # for whoever launches it, and owns the data

    @property
    def slots(self) -> int:
        return self.spec.run.nodes

    def sampler(self) -> Sampler:
        return ExactSampler() if self.spec.noise.sampler == "exact" else FastSampler()

    def warm_up(self) -> None:
        """Load what nodes will need, once in a process that will fork instead of in each child."""
        if self.spec.noise.sampler != "exact":
            return
        for mechanism in self.plan(self.slots).plan.mechanisms:
            warm(mechanism)


def job_of(folder: RunFolder, own: Any = None) -> Job:
    """Read a run from its folder; `own` is the caller's objective, which forked processes inherit."""
    spec = replace(folder.spec, task=replace(folder.spec.task, own=own))
    data = load_data(spec, spec.run.nodes)

    @cache
    def plan(n: int) -> RunPlan:
        edges = read_edge_list(Path(spec.graph.path)) if spec.graph.kind == "file" and spec.graph.path else None
        return plan_run(spec, n, data.dimensions, edges)

    @cache
    def data_of(n: int) -> Any:
        return data if n == spec.run.nodes else load_data(spec, n)

    return Job(
        spec=spec,
        folder=folder.path,
        run_id=folder.run_id,
        text=folder.spec_text,
        digest=spec_digest(spec),
        bootstrap_public=folder.bootstrap_public(),
        secrets=folder.tokens(spec.run.nodes),
        plan=plan,
        rows=lambda n, user: data_of(n).user(user),
        moved=data.moved,
        trace_wire=folder.packing.trace_wire,
    )
