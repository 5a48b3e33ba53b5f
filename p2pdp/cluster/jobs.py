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
from p2pdp.core.claims import Unit
from p2pdp.core.draws import Sampler
from p2pdp.core.ids import Peer
from p2pdp.core.rows import Rows
from p2pdp.core.spec import Spec
from p2pdp.files.data import load_data
from p2pdp.files.spec import spec_digest
from p2pdp.files.tables import Moved, edges_of
from p2pdp.mechanisms.sampler import ExactSampler, FastSampler, warm
from p2pdp.node.measuring import with_measures
from p2pdp.protocols.run_plan import Planner, RunPlan, plan_run


@dataclass(frozen=True)
class Job:
    """One local run. `secrets` are those of join tokens; `plan(n, rows)` makes the plan for so many users."""

    spec: Spec
    folder: Path
    run_id: bytes
    text: str
    digest: bytes
    bootstrap_public: bytes
    secrets: Sequence[bytes] = field(repr=False)
    plan: Planner
    rows: Callable[[int, Peer], Any] = field(repr=False)
    trace_wire: bool = False
    moved: tuple[Moved, ...] = field(default=(), repr=False)  # for whoever launches it, and owns the data

    @property
    def slots(self) -> int:
        return self.spec.run.nodes

    @property
    def states_rows(self) -> bool:
        return self.spec.privacy.unit == Unit.RECORD

    @property
    def stated(self) -> Rows | None:
        """Return how many rows each slot states; None where that is not asked."""
        if not self.states_rows:
            return None
        return tuple(len(self.rows(self.slots, slot)) for slot in range(self.slots))

    def own_rows(self, n: int, user: Peer, slot: int) -> Any:
        """Return the rows of a user of n with this slot: what it has stated is settled before n is known."""
        return self.rows(self.slots, slot) if self.states_rows else self.rows(n, user)

    def sampler(self) -> Sampler:
        return ExactSampler() if self.spec.noise.sampler == "exact" else FastSampler()

    def warm_up(self) -> None:
        """Load what nodes will need, once in a process that will fork instead of in each child."""
        if self.spec.noise.sampler != "exact":
            return
        for mechanism in self.plan(self.slots, self.stated).plan.mechanisms:
            warm(mechanism)


def job_of(folder: RunFolder, own: Any = None, data: Any = None) -> Job:
    """Read a run from its folder; forked processes inherit `own` and `data`, the caller's objective and rows."""
    read = folder.spec
    given = replace(read, task=replace(read.task, own=own), data=replace(read.data, own=data))
    spec = with_measures(given, folder.path)
    loaded = load_data(spec, spec.run.nodes)

    @cache
    def plan(n: int, rows: Rows | None = None, /) -> RunPlan:
        return plan_run(spec, n, loaded.dimensions, edges_of(spec.graph, folder.path), rows=rows)

    @cache
    def data_of(n: int) -> Any:
        return loaded if n == spec.run.nodes else load_data(spec, n)

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
        moved=loaded.moved,
        trace_wire=folder.packing.trace_wire,
    )
