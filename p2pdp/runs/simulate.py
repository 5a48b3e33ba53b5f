"""`simulate`: a spec in, a simulated world, and the same folder out that a live run leaves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from p2pdp.assembly.outcome import Outcome, outcome
from p2pdp.audit.auditor import sensitivity_of
from p2pdp.core.errors import UsageError
from p2pdp.core.spec import Spec
from p2pdp.files import folder as folders
from p2pdp.files.data import DataSet, load_data
from p2pdp.files.edges import read_edge_list
from p2pdp.files.spec import spec_digest, spec_to_toml
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.report.result import Circumstances, Result, Trial, make_result
from p2pdp.runs.audit import audit
from p2pdp.sim.faults import NO_FAULTS, Faults
from p2pdp.sim.world import World, run_id_of

Progress = Callable[[int, int], None]


def simulate_spec(
    spec: Spec, out: Path | None, trials: int | None, *, faults: Faults | None, progress: Progress | None
) -> Result:
    if trials is not None and trials < 1:
        raise UsageError("--trials: at least one")
    seed = spec.run.seed or 0
    first = _Simulated(_on_seed(spec, seed), faults or NO_FAULTS, progress)
    place = None if out is None else folders.make_folder(out)
    first.run_to_end()
    result = first.result(None)
    if place is not None:
        result = first.write(place)
    if trials is None:
        return result
    made = [Trial(result.estimate, result.truth, result.error)]
    for number in range(1, trials):
        again = _Simulated(_on_seed(spec, seed + number), faults or NO_FAULTS, None)
        again.run_to_end()
        one = again.result(None)
        made.append(Trial(one.estimate, one.truth, one.error))
    result = replace(result, trials=made)
    if place is not None:
        folders.write_json(place / folders.RESULT_FILE, replace(result, folder=None).to_json())
    return result


def default_folder(spec: Spec) -> Path:
    """Where a run goes that was given no place: named after its run id."""
    seeded = _on_seed(spec, spec.run.seed or 0)
    return Path(f"p2pdp-{run_id_of(spec.run.seed or 0, spec_digest(seeded)).hex()}")


def _on_seed(spec: Spec, seed: int) -> Spec:
    return replace(spec, run=replace(spec.run, seed=seed))


class _Simulated:
    """One world, from its spec to its documents."""

    def __init__(self, spec: Spec, faults: Faults, progress: Progress | None) -> None:
        self._progress = progress
        n = spec.run.nodes
        edges = read_edge_list(Path(spec.graph.path)) if spec.graph.kind == "file" and spec.graph.path else None
        self._data: DataSet = load_data(spec, n)
        self._run: RunPlan = plan_run(spec, n, self._data.dimensions, edges, sampler="seeded")
        self._text = spec_to_toml(spec)
        self._world = World(self._run, self._data.user, self._text, spec_digest(spec), spec.run.seed or 0, faults)
        self._found: Outcome | None = None

    def run_to_end(self) -> None:
        self._world.run_to_end(self._progress)

    def result(self, epsilon: float | None) -> Result:
        world = self._world
        views = {peer: bytes(process.disk.view) for peer, process in world.processes.items()}
        self._found = self._found or outcome(self._run, views, world.out)
        around = Circumstances(
            run_id=world.run_id.hex(),
            seeded=True,
            seed=self._run.spec.run.seed,
            started=None,
            bytes=world.network.bytes,
            missing=world.out,
            faults=world.fault_counts(),
            private_kept=True,
        )
        return make_result(self._run, self._found, around, self._data.user, _sensitivity(self._run), epsilon)

    def write(self, place: Path) -> Result:
        """Fills the folder, audits it if the spec says so, and writes the result last."""
        folders.write_text(place / folders.SPEC_FILE, self._text)
        folders.write_json(place / folders.ROSTER_FILE, self._world.roster.to_json())
        for peer, process in self._world.processes.items():
            folders.write_ledgers(place, peer, bytes(process.disk.view), bytes(process.disk.private))
        epsilon = None
        if self._run.spec.run.audit:
            audited = audit(place, None, None, allow_missing=False)
            folders.write_json(place / folders.AUDIT_FILE, audited.to_json())
            epsilon = headline(audited.claims)
        result = self.result(epsilon)
        folders.write_json(place / folders.RESULT_FILE, result.to_json())
        return replace(result, folder=str(place))


def _sensitivity(run: RunPlan) -> float | None:
    """That of one contribution in data units, where contributions are numbers."""
    return None if run.spec.data.clip is None else math.ldexp(sensitivity_of(run), run.plan.grid_exponent)


def headline(claims: list[Any]) -> float | None:
    """The epsilon of the first claim: what one other node could have learned, if there is such a claim."""
    return claims[0].epsilon_max if claims else None
