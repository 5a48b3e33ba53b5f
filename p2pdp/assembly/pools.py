"""The quality of models on the examples of several users together, and the names of what they are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from p2pdp.assembly.curves import Curve
from p2pdp.core.arrays import Floats
from p2pdp.protocols.learning import PUBLIC_SCORES, SCORES, public_scores, scores_of
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.tasks.examples import Examples, examples_of
from p2pdp.tasks.objectives import Objective

LOCAL: Final = "local"
CENTRAL: Final = "central"
NONE: Final = "none"
RUN: Final = "run"


class Scored(NamedTuple):
    """The scores of what was learned, the baselines with theirs, and the curves of both, by name."""

    scores: dict[str, Any]
    baselines: dict[str, dict[str, Any]]
    curves: Mapping[str, Curve | None] = {}


class Pool:
    """The examples of some users together, and those that were kept out of learning."""

    def __init__(self, run: RunPlan, users: Sequence[Examples]) -> None:
        self._objective: Objective = run.plan.descent.objective
        self._learned = _together(users)
        self._tested = _together([user.test for user in users if user.test is not None])
        self._public = run.public

    def scores(self, model: Floats) -> dict[str, float | None]:
        """Return loss and score on the rows that were learned from, on test rows, and on public rows if there are any.

        A model that is not known or not finite has none.
        """
        found = scores_of(self._objective, self._learned, self._tested, model)
        if self._public is not None:
            found |= public_scores(self._objective, self._public, model)
        return found

    @property
    def unknown(self) -> dict[str, float | None]:
        """Return the scores of a model that is not known."""
        return dict.fromkeys(SCORES if self._public is None else (*SCORES, *PUBLIC_SCORES))

    @property
    def score_name(self) -> str | None:
        return self._objective.score_name


def _together(parts: Sequence[Examples]) -> Examples | None:
    if not parts:
        return None
    features = np.concatenate([part.features for part in parts])
    return examples_of(features, np.concatenate([part.targets for part in parts]), None)
