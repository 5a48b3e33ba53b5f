from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.arrays import Floats
from p2pdp.tasks.examples import Examples, examples_of
from p2pdp.tasks.objectives import PER_EXAMPLE, Guarantees, Objective, clipped_sum, shortened, why_not_contracting

SOUND = Guarantees(convex=True, lipschitz=1.0, smoothness=0.5, clipping=PER_EXAMPLE, convex_projection=True)


def test_an_objective_promises_nothing_unless_it_says_so() -> None:
    mine = Objective()
    assert mine.dimension(3) == 3
    assert why_not_contracting(mine.guarantees(1.0), 1.0, 0.0, 0.1) is not None
    examples = examples_of([[1.0]], [1.0], None)
    with pytest.raises(NotImplementedError):
        mine.gradient(np.zeros(1), examples)
    with pytest.raises(NotImplementedError):
        mine.loss(np.zeros(1), examples)
    assert mine.score(np.zeros(1), examples) is None
    assert mine.project(np.ones(1)) == np.ones(1)


def test_a_gradient_step_contracts_only_if_all_conditions_hold() -> None:
    assert why_not_contracting(SOUND, 0.3, 0.0, 4.0) is None
    for change, words in (
        ({"convex": False}, "convex"),
        ({"convex_projection": False}, "convex set"),
        ({"smoothness": None}, "no bound"),
        ({"clipping": "whole"}, "as a whole"),
    ):
        assert words in (why_not_contracting(replace(SOUND, **change), 0.3, 0.0, 4.0) or "")
    assert "2/smoothness = 4" in (why_not_contracting(SOUND, 0.3, 0.0, 4.0001) or "")
    assert "2/smoothness = 2" in (why_not_contracting(SOUND, 0.3, 0.5, 2.1) or ""), "regularization is steep too"


def test_a_clip_that_is_never_active_may_be_of_the_whole() -> None:
    whole = replace(SOUND, clipping="whole")
    assert why_not_contracting(whole, 1.0, 0.0, 1.0) is None
    assert why_not_contracting(whole, 0.99, 0.0, 1.0) is not None


@given(st.lists(st.floats(-1e200, 1e200), min_size=1, max_size=5), st.floats(1e-3, 1e3))
def test_vectors_are_shortened_to_the_clip_and_keep_their_direction(numbers: list[float], clip: float) -> None:
    vector = np.array(numbers)
    with np.errstate(over="ignore"):
        found = shortened(vector, clip)
    assert np.sqrt(found @ found) <= clip * (1 + 1e-12)
    largest = np.abs(vector).max()
    if np.sqrt(((vector / max(largest, 1e-300)) ** 2).sum()) * largest <= clip * 0.999:
        assert found is vector
    assert np.all(found * vector >= 0.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_gradients_that_are_not_finite_count_as_zero(bad: float) -> None:
    assert shortened(np.array([1.0, bad]), 1.0).tolist() == [0.0, 0.0]


class Boundless(Objective):
    """Breaks the promise of `clipped_sum`."""

    def gradient(self, model: Floats, examples: Examples) -> Floats:
        return np.full(len(model), 1e9)

    def clipped_sum(self, model: Floats, examples: Examples, clip: float, chosen: Any = None) -> Floats:
        return np.full(len(model), 1e9)


def test_objectives_of_others_are_clipped_row_by_row_whatever_they_promise() -> None:
    examples = examples_of(np.zeros((3, 2)), np.zeros(3), None)
    found = clipped_sum(Boundless(), np.zeros(2), examples, 1.0)
    assert np.sqrt(found @ found) == pytest.approx(3.0)
    some = clipped_sum(Boundless(), np.zeros(2), examples, 1.0, np.array([True, False, True]))
    assert np.sqrt(some @ some) == pytest.approx(2.0)
