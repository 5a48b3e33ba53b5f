"""A spec with all that a simulation of it needs (data, plan, effective text, run id), and the model that a run learned.

An objective of the caller's own comes from Python only, and only where all users are on this machine.

`model.npz` stands beside `result.json`, for numpy to load:

    model          all numbers, as `estimate` in result.json has them
    weights        those that are multiplied with the features, in the order of the columns
    intercept      the one that is added to the product, 0 where the model has none
    low, high      what features are standardized by (value to 2 (value - low)/(high - low) - 1, with what lies outside
                   moved to the ends), or mean, deviation (value to (value - mean)/deviation); absent if they are not
    clip           the bounds into which features are moved after that; absent if they are not
    unit_norm      whether features are scaled to length 1 after that
    task           what was learned
    users          the users whose models these are, if gossip learned them and none was published. `model`, `weights`
                   and `intercept` have a row for each then; the launcher has them, for the users' folders are its own

`state_dict.npz` beside it has the same numbers as one array for each parameter, by its name in the module, where the
model is a torch module; `users`, and a row for each, as above. `p2pdp.load_state_dict` reads it.

The prediction for a row of features that went through all that is `features @ weights + intercept`, in logistic
regression its sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import numpy as np

from p2pdp.assembly.outcome import Outcome
from p2pdp.auditor.context import sensitivity_of
from p2pdp.auditor.headline import Verdict
from p2pdp.core.claims import Unit
from p2pdp.core.endings import Stopped
from p2pdp.core.errors import UsageError
from p2pdp.core.ids import Peer
from p2pdp.core.spec import REAL_DATA, Spec
from p2pdp.files.checks import learns, takers
from p2pdp.files.data import load_data, public_examples
from p2pdp.files.folder import write_arrays
from p2pdp.files.models import STATE_FILE
from p2pdp.files.spec import spec_digest, spec_to_toml
from p2pdp.files.tables import edges_of
from p2pdp.protocols import protocol
from p2pdp.protocols.learning import OWN, has_intercept, objective_of, with_objective
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.report.result import FIRST, Again, Circumstances, Result, make_result, stopped_result
from p2pdp.sim.world import run_id_of
from p2pdp.tasks.objectives import Objective

_SEEDS: Final = 2**128  # the name of a run has room for as many


@dataclass(frozen=True)
class Prepared:
    """A spec ready to run, with its seed (0 where it came without one); `rows` returns a user's bounded data."""

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
        """Return whether neither data nor graph follow from the seed."""
        random = self.spec.graph.kind in ("regular", "erdos_renyi", "geometric")
        random = random or self.spec.data.partition == "dirichlet"
        return self.spec.data.kind in REAL_DATA and not random

    def result(
        self,
        outcome: Outcome,
        verdict: Verdict | None = None,
        *,
        sent_bytes: int = 0,
        missing: list[Peer] | None = None,
        faults: dict[str, int] | None = None,
        private_kept: bool = False,
        traced: bool = False,
        audited: bool = True,
        stopped: Stopped | None = None,
        again: Again = FIRST,
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
        if stopped is not None and not outcome.over:
            return stopped_result(self.run, outcome, around, stopped)
        return make_result(self.run, outcome, around, self.rows, sensitivity(self.run), verdict, again)


def on_seed(spec: Spec, seed: int) -> Spec:
    if seed >= _SEEDS:
        raise UsageError("[run] seed: must be below 2**128, and that of the last trial too")
    return replace(spec, run=replace(spec.run, seed=seed))


def run_id(spec: Spec, *, fast: bool) -> bytes:
    """Name a simulated run after its spec and seed; the fast path's result is another and has another name."""
    named = run_id_of(spec.run.seed or 0, spec_digest(spec))
    return blake2b(named, digest_size=16, person=b"p2pdp fast").digest() if fast else named


def prepare(spec: Spec, *, fast: bool = False) -> Prepared:
    """Read data and edge list and make the graph. What cannot be run is refused before anything is read."""
    protocol(spec.run.protocol)
    n, spec = spec.run.nodes, with_objective(spec)
    data = load_data(spec, n)
    rows = data.stated if spec.privacy.unit == Unit.RECORD else None
    run = plan_run(spec, n, data.dimensions, edges_of(spec.graph), rows=rows, sampler="seeded")
    run = replace(run, public=public_examples(spec, data.dimensions))
    return Prepared(spec, cache(data.user), run, spec_to_toml(spec), run_id(spec, fast=fast))


def sensitivity(run: RunPlan) -> float | None:
    """Return the sensitivity of one contribution in data units, where contributions are numbers."""
    if run.spec.data.clip is None and run.plan.sensitivity is None:
        return None
    return math.ldexp(sensitivity_of(run), run.plan.grid_exponent)


def with_task(spec: Spec, task: Any) -> Spec:
    """Return the spec with this objective in place of its own; refuse one that is useless or missing."""
    if task is None:
        if spec.task.kind == OWN:
            raise UsageError(
                '[task] kind: "own" stands for an objective of yours; pass it from Python: p2pdp.run(spec, task=...)'
            )
        return spec
    if not learns(spec):
        learning = takers("task.clip")
        raise UsageError(f"task: {spec.run.protocol} learns nothing; only {learning} can take an objective")
    if not isinstance(task, Objective):
        raise UsageError("task: must be an object of a class that is derived from p2pdp.Objective")
    return replace(spec, task=replace(spec.task, kind=OWN, own=task))


MODEL_FILE: Final = "model.npz"


def save_model(place: Path, run: RunPlan, result: Result) -> None:
    """Save the model, if one was learned and is at hand."""
    if not run.protocol.name.endswith(".sgd"):
        return
    if isinstance(result.estimate, list):
        model, of_users = np.array(result.estimate), {}
    elif result.outputs:
        model = np.array([output["value"] for output in result.outputs])
        of_users = {"users": np.array([output["user"] for output in result.outputs])}
    else:
        return
    data, split = run.spec.data, model.shape[-1] - has_intercept(run.spec)
    arrays: dict[str, Any] = {
        **of_users,
        "model": model,
        "weights": model[..., :split],
        "intercept": model[..., split] if split < model.shape[-1] else np.zeros(model.shape[:-1])[()],
        "unit_norm": np.bool_(data.unit_norm),
        "task": np.array(run.spec.task.kind),
    }
    if data.standardize is not None:
        arrays |= {name: np.array(value) for name, value in data.standardize.items() if isinstance(value, list)}
    if data.clip is not None:
        arrays["clip"] = np.array(data.clip)
    write_arrays(place / MODEL_FILE, arrays)
    named = objective_of(run.spec).arrays(model)
    if named:
        write_arrays(place / STATE_FILE, {**of_users, **named})
