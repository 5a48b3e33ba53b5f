"""The quality of models on the examples of several users together, and the names of what they are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from p2pdp.core.arrays import Floats
from p2pdp.protocols.learning import scores_of
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.tasks.examples import Examples, examples_of
from p2pdp.tasks.objectives import Objective

LOCAL: Final = "local"
CENTRAL: Final = "central"
NONE: Final = "none"


class Pool:
    """The examples of some users together, and those that were kept out of learning."""

    def __init__(self, run: RunPlan, users: Sequence[Examples]) -> None:
        self._objective: Objective = run.plan.descent.objective
        self._learned = _together(users)
        self._tested = _together([user.test for user in users if user.test is not None])

    def scores(self, model: Floats) -> dict[str, float | None]:
        return scores_of(self._objective, self._learned, self._tested, model)

    @property
    def score_name(self) -> str | None:
        return self._objective.score_name


def _together(parts: Sequence[Examples]) -> Examples | None:
    if not parts:
        return None
    features = np.concatenate([part.features for part in parts])
    return examples_of(features, np.concatenate([part.targets for part in parts]), None)
