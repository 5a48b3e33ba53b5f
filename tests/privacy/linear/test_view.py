from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from p2pdp.privacy.linear.view import _summed, disjoint_leaks, general_leaks
from tests.support.leaks import general_leak


def by_pinv(noise: Any, inputs: Any) -> float:
    covariance = noise @ noise.T
    inverse = np.linalg.pinv(covariance, rcond=1e-10, hermitian=True)
    if np.max(np.abs(inputs - covariance @ (inverse @ inputs)), initial=0.0) > 1e-6:
        return math.inf
    gram = inputs.T @ inverse @ inputs
    return float(min(np.abs(gram).sum(), len(gram) * np.linalg.eigvalsh(gram)[-1]))


@given(st.integers(1, 7), st.integers(0, 9), st.integers(1, 3), st.integers(0, 2**32), st.sampled_from([1.0, 0.6, 0.3]))
def test_any_view_is_as_by_the_pseudo_inverse(rows: int, draws: int, inputs: int, seed: int, density: float) -> None:
    random = np.random.default_rng(seed)
    noise = random.integers(-3, 4, (rows, draws)) * (random.random((rows, draws)) < density) * 1.0
    moved = random.integers(-2, 3, (rows, inputs)) * 1.0
    if seed % 2 and draws:  # within the range for certain
        moved = noise @ random.integers(-1, 2, (draws, inputs))
    assume(is_telling(noise))
    expected = by_pinv(noise, moved)
    assert general_leak(noise, moved) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def is_telling(noise: Any) -> bool:
    """No eigenvalue is so small that the pseudo-inverse itself would have too few digits to compare with."""
    values = np.linalg.eigvalsh(noise @ noise.T)
    largest = values.max(initial=0.0)
    return bool(np.all((values > 1e-3 * largest) | (values < 1e-13 * largest)) or largest == 0.0)


def entries(matrix: Any) -> tuple[Any, Any, Any]:
    row, column = np.nonzero(matrix)
    return row, column, matrix[row, column]


@given(st.integers(1, 9), st.integers(0, 9), st.integers(1, 4), st.integers(0, 2**32), st.sampled_from([0.1, 0.3, 0.8]))
def test_blocks_of_rows_that_share_no_draw_add_up(rows: int, draws: int, users: int, seed: int, density: float) -> None:
    """The view of all users at once, in blocks, against one dense matrix a user."""
    random = np.random.default_rng(seed)
    noise = random.integers(1, 4, (rows, draws)) * (random.random((rows, draws)) < density) * 1.0
    numbers = 2
    moved = random.integers(-2, 3, (rows, users * numbers)) * (random.random((rows, users * numbers)) < 0.4) * 1.0
    assume(is_telling(noise))
    noise_row, draw, deviation = entries(noise)
    input_row, column, weight = entries(moved)
    found = general_leaks(
        rows, users, noise_row, draw, deviation, input_row, column // numbers, column % numbers, weight
    )
    for user in range(users):
        own = moved[:, user * numbers : (user + 1) * numbers]
        own = own[:, np.any(own != 0, axis=0)]
        expected = by_pinv(noise, own) if own.size else 0.0
        assert found[user] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_entries_on_one_place_add_up_before_they_are_squared() -> None:
    leaks = general_leaks(
        1,
        2,
        np.array([0, 0]),
        np.array([5, 5]),
        np.array([1.0, 2.0]),
        np.array([0, 0]),
        np.array([1, 1]),
        np.array([0, 0]),
        np.array([1.0, 1.0]),
    )
    np.testing.assert_allclose(leaks, [0.0, 4 / 9])


def test_several_inputs_are_at_most_what_the_notes_say() -> None:
    """min(sum |X_kl|, K lambda_max): the first is smaller here, and the supremum over changes below both."""
    noise, moved = np.eye(2), np.array([[1.0, 1.0], [1.0, -0.5]])
    gram = moved.T @ moved
    assert general_leak(noise, moved) == pytest.approx(min(np.abs(gram).sum(), 2 * np.linalg.eigvalsh(gram)[-1]))
    worst = max(float(np.array(d) @ gram @ np.array(d)) for d in [(1, 1), (1, -1), (1, 0), (0, 1)])
    assert worst <= general_leak(noise, moved) + 1e-12


def test_non_negative_inputs_all_count_together() -> None:
    assert general_leak(np.eye(1), np.array([[1.0, 2.0]])) == pytest.approx(9.0)


def test_no_input_leaks_nothing_and_no_noise_leaks_all() -> None:
    assert general_leak(np.eye(2), np.zeros((2, 1))) == 0.0
    assert general_leak(np.zeros((2, 0)), np.ones((2, 1))) == math.inf
    assert general_leak(np.zeros((2, 3)), np.ones((2, 1))) == math.inf
    assert general_leak(np.zeros((0, 0)), np.zeros((0, 1))) == 0.0


def test_rows_whose_difference_has_no_noise_leak_all() -> None:
    noise = np.array([[1.0, 2.0], [1.0, 2.0]])
    assert general_leak(noise, np.array([[1.0], [0.0]])) == math.inf
    assert general_leak(noise, np.array([[1.0], [1.0]])) == pytest.approx(1 / 5)


@pytest.mark.parametrize("smallest", [1e-3, 1e-5, 1e-6, 1e-7, 1e-9, 1e-12])
def test_rank_decisions_only_raise_a_leak(smallest: float) -> None:
    """A draw too faint to be told from rounding counts as none at all."""
    noise = np.array([[1.0, 0.0], [1.0, smallest]])
    found = general_leak(noise, np.array([[0.0], [1.0]]))
    assert found >= (1 - 1e-9) / smallest**2


@given(st.integers(1, 6), st.integers(1, 8), st.integers(0, 2**32))
def test_disjoint_rows_are_a_case_of_the_general_way(rows: int, users: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    draws, inputs = 2 * rows, 3 * rows
    noise_row, variance = random.integers(0, rows, draws), random.random(draws) + 0.1
    input_row, user = random.integers(0, rows, inputs), random.integers(0, users, inputs)
    weight = random.integers(0, 3, inputs) * 1.0
    fast = disjoint_leaks(rows, users, noise_row, variance, input_row, user, weight)
    slow = general_leaks(
        rows, users, noise_row, np.arange(draws), np.sqrt(variance), input_row, user, np.zeros(inputs, int), weight
    )
    np.testing.assert_allclose(fast, slow, rtol=1e-9)


def test_a_row_without_noise_is_read_in_the_clear() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    leaks = disjoint_leaks(1, 2, nothing, np.zeros(0), np.array([0]), np.array([1]), np.array([1.0]))
    assert leaks.tolist() == [0.0, math.inf]


@given(st.lists(st.tuples(st.integers(0, 40), st.floats(0.0, 1e6)), max_size=40), st.sampled_from([41, 100_000]))
def test_sums_by_key_are_those_of_sorted_keys(entries: list[tuple[int, float]], size: int) -> None:
    keys, weights = np.array([key for key, _ in entries], dtype=np.int64), np.array([one for _, one in entries])
    found, place = np.unique(keys, return_inverse=True)
    summed = np.bincount(place, weights=weights, minlength=len(found))
    told, sums = _summed(keys, weights, size)
    assert {key: one for key, one in zip(told.tolist(), sums.tolist(), strict=True) if one} == {
        key: one for key, one in zip(found.tolist(), summed.tolist(), strict=True) if one
    }  # bit for bit
    assert told.tolist() == sorted(told.tolist())
