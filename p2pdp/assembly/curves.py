"""Learning curves: loss and score of models on public rows, in the course of a run.

Models are looked at after numbers of steps that follow from the plan alone (`places`). A `Look` scores what it is
shown there and keeps nothing else, so that models of any size can be looked at. Of several models at once, those of
tokens or of users, a curve has the mean of their scores.

Who may see a curve is not decided here. That of a model which only its holder knows is the holder's, or the launcher's
who collected it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.protocols.learning import loss_and_score
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.tasks.examples import Examples
from p2pdp.tasks.objectives import Objective

PLACES_MAX: Final = 33
USERS_MAX: Final = 16  # whose own models are looked at, evenly spread over the users' numbers

Score = float | None


def places(steps: int) -> list[int]:
    """Return after how many steps models are looked at: before the first, after the last, and evenly in between."""
    even = np.linspace(0, steps, min(PLACES_MAX, steps + 1))
    return sorted({round(place) for place in even.tolist()})


def looked_at(users: int) -> list[int]:
    """Return the users whose own models are looked at."""
    return sorted({int(user) for user in np.linspace(0, users - 1, min(users, USERS_MAX)).tolist()})


@dataclass(frozen=True)
class Curve:
    """A loss and a score for each place; None where there is no model, or the task has no score."""

    loss: tuple[Score, ...]
    score: tuple[Score, ...]

    def to_json(self) -> dict[str, Any]:
        return {"loss": list(self.loss), "score": list(self.score)}


class Look:
    """One curve in the making."""

    def __init__(self, objective: Objective, public: Examples, steps: int) -> None:
        self._objective, self._public = objective, public
        self._found: dict[int, tuple[Score, Score]] = dict.fromkeys(places(steps), (None, None))

    def wants(self, step: int) -> bool:
        return step in self._found

    def at(self, step: int, models: Floats) -> None:
        """Look at the models, [model, number], after so many steps."""
        if self.wants(step) and len(models):
            each = [loss_and_score(self._objective, self._public, model) for model in models]
            self._found[step] = (_mean([loss for loss, _ in each]), _mean([score for _, score in each]))

    def curve(self) -> Curve:
        losses, scores = zip(*self._found.values(), strict=True)
        return Curve(losses, scores)


def look_of(run: RunPlan, steps: int) -> Look | None:
    """Return a new look at a run, which has seen where learning starts; None where no public rows are at hand."""
    if run.public is None:
        return None
    look = Look(run.plan.descent.objective, run.public, steps)
    look.at(0, run.plan.descent.start()[None])
    return look


def _mean(values: Sequence[Score]) -> Score:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None


def curves_document(run: RunPlan, step: str, steps: int, lines: Mapping[str, Curve | None]) -> dict[str, Any] | None:
    """Return the curves as a document for the launcher, who collected the models; `step` says what is counted."""
    known = {name: line.to_json() for name, line in lines.items() if line is not None}
    if run.public is None or not known:
        return None
    return {
        "rows": len(run.public),
        "step": step,
        "at": places(steps),
        "score_name": run.plan.descent.objective.score_name,
        "collected_by_launcher": True,
        "of": known,
    }
