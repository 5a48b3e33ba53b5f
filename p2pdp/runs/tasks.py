"""The caller's own objective, from Python only and only where all users are on this machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import Spec
from p2pdp.files.combinations import learns, takers
from p2pdp.protocols.learning import OWN
from p2pdp.tasks.objectives import Objective


def with_task(spec: Spec, task: Any) -> Spec:
    """Return the spec with this objective in place of its own; refuse one that is useless or missing."""
    if task is None:
        if spec.task.kind == OWN:
            raise UsageError(
                '[task] kind: "own" is an objective of yours: p2pdp.run(spec, task=...) takes it from Python'
            )
        return spec
    if not learns(spec):
        learning = takers("task.clip")
        raise UsageError(f"task: {spec.run.protocol} learns nothing; only {learning} can take an objective")
    if not isinstance(task, Objective):
        raise UsageError("task: must be an object of a class that is derived from p2pdp.Objective")
    return replace(spec, task=replace(spec.task, kind=OWN, own=task))
