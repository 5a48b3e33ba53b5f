from __future__ import annotations

import json

import numpy as np
import pytest

from p2pdp.report.own_results import OwnResults, of_users


def test_users_own_results_have_a_mean_and_one_that_is_furthest_from_it() -> None:
    numbers = [{"user": user, "value": value} for user, value in enumerate([1.0, 2.0, 6.0])]
    assert of_users(numbers) == (3.0, 3.0)
    vectors = [{"user": user, "value": value} for user, value in enumerate([[1.0, 0.0], [3.0, 0.0]])]
    assert of_users(vectors) == ([2.0, 0.0], [1.0, 0.0])
    assert of_users([]) is None


def test_results_of_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="length"):
        of_users([{"user": 0, "value": [1.0, 2.0]}, {"user": 1, "value": [1.0]}])


def test_items_are_plain_lists_in_the_order_of_users() -> None:
    results = OwnResults({3: np.array([0.5, 1.5]), 1: np.array([2.0, 4.0])})
    plain = [
        {"user": 1, "value": [2.0, 4.0], "collected_by_launcher": True},
        {"user": 3, "value": [0.5, 1.5], "collected_by_launcher": True},
    ]
    assert len(results) == 2
    assert results == plain
    assert json.loads(json.dumps([*results])) == plain
    assert results[-1] == plain[1]
    assert results[:1] == plain[:1]
    assert results != plain[:1]
    assert OwnResults({}) == []
    assert "0.5" not in repr(results)


def test_values_of_many_numbers_stay_arrays_until_they_are_asked_for() -> None:
    kept = np.arange(5000.0)
    vectors, number = OwnResults({0: kept, 1: kept + 2.0}), OwnResults({0: np.float64(1.5)})
    assert vectors.as_arrays()[0]["value"] is kept
    assert type(number.as_arrays()[0]["value"]) is float
    told = of_users(vectors)
    assert told == of_users([*vectors])
    assert told == ((kept + 1.0).tolist(), [1.0] * 5000)
