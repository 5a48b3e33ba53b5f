"""A spec with everything that a simulation of it needs: data, plan, effective text, and the name of the run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from p2pdp.assembly.outcome import Outcome
from p2pdp.audit.ground import sensitivity_of
from p2pdp.audit.headline import Verdict
from p2pdp.core.errors import UsageError
from p2pdp.core.ids import Peer
from p2pdp.core.spec import Spec
from p2pdp.files.data import load_data
from p2pdp.files.edges import read_edge_list
from p2pdp.files.spec import spec_digest, spec_to_toml
from p2pdp.protocols import protocol
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.report.result import Circumstances, Result, make_result
from p2pdp.sim.world import run_id_of

_SEEDS: Final = 2**128  # the name of a run has room for as many


@dataclass(frozen=True)
class Prepared:
    """`spec` has its seed, 0 where it came without one; `rows` gives a user's bounded data, read once."""

    spec: Spec
    rows: Callable[[Peer], Any] = field(repr=False)
    run: RunPlan
    text: str
    run_id: bytes

    @property
    def seed(self) -> int:
        return self.spec.run.seed or 0

    @property
    def digest(self) -> bytes:
        return spec_digest(self.spec)

    @property
    def is_same_on_every_seed(self) -> bool:
        """Whether neither data nor graph follow from the seed."""
        random = self.spec.graph.kind in ("regular", "erdos_renyi", "geometric")
        return self.spec.data.kind in ("csv", "npy") and not random

    def result(
        self,
        found: Outcome,
        verdict: Verdict | None = None,
        *,
        sent_bytes: int = 0,
        missing: list[Peer] | None = None,
        faults: dict[str, int] | None = None,
        private_kept: bool = False,
        traced: bool = False,
        audited: bool = True,
    ) -> Result:
        around = Circumstances(
            run_id=self.run_id.hex(),
            seeded=True,
            seed=self.seed,
            started=None,
            bytes=sent_bytes,
            missing=missing or [],
            faults=faults or {},
            private_kept=private_kept,
            traced=traced,
            audited=audited,
        )
        return make_result(self.run, found, around, self.rows, sensitivity(self.run), verdict)


def on_seed(spec: Spec, seed: int) -> Spec:
    if seed >= _SEEDS:
        raise UsageError("[run] seed: must be below 2**128, and that of the last trial too")
    return replace(spec, run=replace(spec.run, seed=seed))


def run_id(spec: Spec, *, fast: bool) -> bytes:
    """A simulated run is named after its spec and seed; the fast path's result is another, and so is its name."""
    named = run_id_of(spec.run.seed or 0, spec_digest(spec))
    return blake2b(named, digest_size=16, person=b"p2pdp fast").digest() if fast else named


def prepare(spec: Spec, *, fast: bool = False) -> Prepared:
    """Reads data and edge list and makes the graph. What cannot be run is refused before anything is read."""
    protocol(spec.run.protocol)
    n = spec.run.nodes
    edges = read_edge_list(Path(spec.graph.path)) if spec.graph.kind == "file" and spec.graph.path else None
    data = load_data(spec, n)
    run = plan_run(spec, n, data.dimensions, edges, sampler="seeded")
    return Prepared(spec, cache(data.user), run, spec_to_toml(spec), run_id(spec, fast=fast))


def sensitivity(run: RunPlan) -> float | None:
    """That of one contribution in data units, where contributions are numbers."""
    if run.spec.data.clip is None and run.plan.sensitivity is None:
        return None
    return math.ldexp(sensitivity_of(run), run.plan.grid_exponent)
