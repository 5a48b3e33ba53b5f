from __future__ import annotations

import numpy as np
import pytest

from p2pdp.core.values import LinearForm, Source
from p2pdp.tasks.inputs import CategoryInputs, NumberInputs, SymbolicInputs

SECRET = 314159


def test_the_kth_contribution_is_the_kth_value_cyclically() -> None:
    inputs = NumberInputs([5, -7, 11], 1)
    assert [inputs.contribution(visit) for visit in range(7)] == [5, -7, 11, 5, -7, 11, 5]


def test_a_token_starts_with_nothing_of_the_right_shape() -> None:
    assert NumberInputs([5], 1).zero() == 0
    assert type(NumberInputs([5], 1).zero()) is int
    for zero, length in ((NumberInputs([np.ones(3)], 3).zero(), 3), (CategoryInputs([1], 4).zero(), 4)):
        assert zero.dtype == np.int64
        assert zero.tolist() == [0] * length


def test_zeros_are_not_shared() -> None:
    inputs = NumberInputs([np.array([1, 2], dtype=np.int64)], 2)
    changed = inputs.zero()
    changed += 1
    assert inputs.zero().tolist() == [0, 0]


def test_adding_to_a_token_leaves_the_inputs_as_they_were() -> None:
    row = np.array([1, 2], dtype=np.int64)
    inputs = NumberInputs([row], 2)
    assert (inputs.zero() + inputs.contribution(0) + inputs.contribution(1)).tolist() == [2, 4]
    assert row.tolist() == [1, 2]


def test_numbers_are_not_answered_at_random() -> None:
    with pytest.raises(TypeError):
        NumberInputs([5], 1).report(0, -1)


def test_a_category_is_a_vector_with_a_single_one() -> None:
    inputs = CategoryInputs([2, 0], 3)
    assert [inputs.contribution(visit).tolist() for visit in range(3)] == [[0, 0, 1], [1, 0, 0], [0, 0, 1]]
    assert inputs.contribution(0).dtype == np.int64


@pytest.mark.parametrize(("response", "expected"), [(-1, 2), (0, 0), (1, 1), (2, 2)])
def test_a_report_is_the_truth_or_the_response(response: int, expected: int) -> None:
    report = CategoryInputs([2], 3).report(0, response)
    assert report.tolist() == [int(category == expected) for category in range(3)]


def test_symbols_name_user_and_value() -> None:
    inputs = SymbolicInputs(7, 2)
    found = [inputs.contribution(visit).expand() for visit in range(3)]
    assert found == [{Source("input", 7, number): 1.0} for number in (0, 1, 0)]
    assert inputs.zero().expand() == {}


def test_each_randomized_report_is_a_source_of_its_own() -> None:
    """A report is not linear in its draw, so neither the draw nor the value it may repeat is in the form."""
    inputs, draw = SymbolicInputs(7, 1), LinearForm.of(Source("draw", 7, 0))
    found = [inputs.report(visit, draw).expand() for visit in range(2)]
    assert found == [{Source("report", 7, visit): 1.0} for visit in range(2)]


@pytest.mark.parametrize("inputs", [NumberInputs([SECRET], 1), CategoryInputs([SECRET], SECRET + 1)])
def test_the_text_of_inputs_shows_no_value(inputs: object) -> None:
    assert str(SECRET) not in repr(inputs)
    assert "1 values" in repr(inputs)


def test_over_symbols_a_gradient_is_new_at_each_visit_and_a_model_is_a_trace() -> None:
    inputs = SymbolicInputs(4, 3)
    model: LinearForm = inputs.zero()
    for visit in range(5):
        noised = inputs.gradient(model, visit) + LinearForm.of(Source("draw", 4, visit)) * 0.25
        model = inputs.moved(model, noised, 0.1)
    expected = {Source("gradient", 4, visit): 1.0 for visit in range(5)}
    assert model.expand() == expected | {Source("draw", 4, visit): 0.25 for visit in range(5)}
