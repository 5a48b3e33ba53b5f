"""Objectives that a spec names: torch models by `module:factory`, and those that installed packages add.

A package adds an objective by an entry point of the group `p2pdp.objectives`, whose name is a `[task] kind` and which
refers to a callable that returns a `p2pdp.Objective`.

`NamedObjective` knows of its objective only what a spec says, so planning, bootstrap and audit load none of its code.
It loads it when it is asked for a gradient, or for a measure that nobody has told it.

Guarantee: importing what a spec names runs code. Across machines a node does so only after its owner accepted that code
by its digest (`files/model_code.py`); on one machine whoever starts a run names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Bools, Floats
from p2pdp.core.errors import UsageError
from p2pdp.core.installed import installed
from p2pdp.core.spec import TaskPart
from p2pdp.tasks.examples import Examples
from p2pdp.tasks.objectives import Guarantees, Objective, clipped_sum, start_digest, start_of
from p2pdp.tasks.torch_objective import CROSS_ENTROPY, TorchObjective, arrays_of, torch_module

TORCH: Final = "torch"
OBJECTIVES: Final = "objectives"
LOSSES: Final = (CROSS_ENTROPY, "mse", "bce")


@dataclass(frozen=True)
class Measures:
    """Public facts of an objective: the length of a model, the digest and reach of its start, and its promises."""

    dimension: int
    start: str
    start_max: float
    guarantees: Guarantees
    score_name: str | None = None
    layout: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(told: Mapping[str, Any]) -> Measures:
        layout = tuple((str(name), tuple(int(side) for side in shape)) for name, shape in told["layout"])
        return Measures(**{**told, "layout": layout, "guarantees": Guarantees(**told["guarantees"])})


Measure = Callable[[int, float | None], Measures]  # of a number of features, and the public bound of their norm


def loaded(task: TaskPart) -> Objective:
    """Import what a spec names, and return the objective."""
    if task.kind != TORCH:
        entry = installed(OBJECTIVES)[task.kind]
        made = entry.load()()
        if not isinstance(made, Objective):
            raise UsageError(f"[task] kind: {entry.value} returns a {type(made).__name__}, which is no p2pdp.Objective")
        if type(made).project is not Objective.project:
            raise UsageError(f"[task] kind: {entry.value} projects, which an objective by name cannot; use radius")
        return made
    assert task.model is not None
    torch = torch_module()
    loss = task.loss or CROSS_ENTROPY
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(task.start or 0)
        module = _named(task.model, "model")()
        return TorchObjective(module, loss if loss in LOSSES else _named(loss, "loss"))


def _named(place: str, key: str) -> Any:
    module, _, name = place.partition(":")
    try:
        found = getattr(import_module(module), name)
    except ImportError as error:
        raise UsageError(
            f"[task] {key}: {place} cannot be imported ({error}); install the package that holds it, or name its "
            "folder in PYTHONPATH"
        ) from None
    except AttributeError:
        raise UsageError(f"[task] {key}: the module {module} has no {name}") from None
    if not callable(found):
        raise UsageError(f"[task] {key}: {place} is of type {type(found).__name__}, and must be callable")
    return found


def measured(objective: Objective, columns: int, norm_max: float | None) -> Measures:
    """Return the measures of an objective that is at hand."""
    dimension = int(objective.dimension(columns))
    start = start_of(objective, dimension)
    return Measures(
        dimension=dimension,
        start=start_digest(start, objective.constants()),
        start_max=float(np.abs(start).max(initial=0.0)),
        guarantees=objective.guarantees(norm_max),
        score_name=objective.score_name,
        layout=tuple(getattr(objective, "layout", ())),
    )


class NamedObjective(Objective):
    """`measure` tells the measures where this process is not to load the objective; `code` is its code's digest."""

    def __init__(self, task: TaskPart, measure: Measure | None = None, code: str | None = None) -> None:
        self.name = task.kind
        self.code = code
        self._task = task
        self._measure = measure
        self._measures: Measures | None = None
        self._real: Objective | None = None

    @property
    def real(self) -> Objective:
        if self._real is None:
            self._real = loaded(self._task)
        return self._real

    def measures(self, columns: int, norm_max: float | None) -> Measures:
        if self._measures is None:
            told = self._measure
            self._measures = measured(self.real, columns, norm_max) if told is None else told(columns, norm_max)
        return self._measures

    @property
    def known(self) -> Measures | None:
        """Return the measures, if they were taken."""
        return self._measures

    @property
    def score_name(self) -> str | None:  # type: ignore[override]
        return self.real.score_name if self._measures is None else self._measures.score_name

    def dimension(self, columns: int) -> int:
        return self.real.dimension(columns) if self._measures is None else self._measures.dimension

    def start(self, dimension: int) -> Floats:
        return self.real.start(dimension)

    def constants(self) -> bytes:
        return self.real.constants()

    def arrays(self, model: Floats) -> Mapping[str, Floats]:
        return self.real.arrays(model) if self._measures is None else arrays_of(self._measures.layout, model)

    def gradient(self, model: Floats, examples: Examples) -> Floats:
        return self.real.gradient(model, examples)

    def clipped_gradient(self, model: Floats, examples: Examples, clip: float) -> Floats:
        return self.real.clipped_gradient(model, examples, clip)

    def clipped_sum(self, model: Floats, examples: Examples, clip: float, chosen: Bools | None = None) -> Floats:
        return clipped_sum(self.real, model, examples, clip, chosen)

    def check(self, examples: Examples) -> None:
        self.real.check(examples)

    def loss(self, model: Floats, examples: Examples) -> float:
        return self.real.loss(model, examples)

    def score(self, model: Floats, examples: Examples) -> float | None:
        return self.real.score(model, examples)

    def guarantees(self, norm_max: float | None) -> Guarantees:
        return self.real.guarantees(norm_max) if self._measures is None else self._measures.guarantees

    def __repr__(self) -> str:
        return f"NamedObjective({self.name})"
