from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.files.partition import _log_gamma_variable, dealt_out

TARGETS = np.repeat(np.arange(10.0), 100)


@given(n=st.integers(1, 30), alpha=st.sampled_from([0.01, 0.1, 1.0, 50.0]), seed=st.integers(0, 5))
def test_every_row_is_somebodys_and_nobody_has_none(n: int, alpha: float, seed: int) -> None:
    users = dealt_out(TARGETS, n, alpha, seed)
    assert sorted(np.concatenate(users).tolist()) == list(range(len(TARGETS)))
    assert min(len(rows) for rows in users) >= 1
    assert all((np.diff(rows) > 0).all() for rows in users)


def test_it_follows_from_seed_and_alpha() -> None:
    def told(alpha: float, seed: int) -> list[list[int]]:
        return [rows.tolist() for rows in dealt_out(TARGETS, 7, alpha, seed)]

    assert told(0.5, 1) == told(0.5, 1)
    assert told(0.5, 1) != told(0.5, 2)
    assert told(0.5, 1) != told(0.6, 1)
    assert [rows.tolist() for rows in dealt_out(np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0]), 2, 0.5, 0)] == [
        [0, 1, 2, 3, 5], [4]
    ]  # fmt: skip


def test_a_small_alpha_leaves_users_with_few_classes_and_a_large_one_with_all() -> None:
    def largest(alpha: float) -> float:
        """The mean share of a user's most frequent class."""
        users = dealt_out(TARGETS, 10, alpha, 3)
        return float(np.mean([np.bincount(TARGETS[rows].astype(int)).max() / len(rows) for rows in users]))

    assert largest(0.05) > 0.6
    assert largest(1000.0) < 0.2


@pytest.mark.parametrize("alpha", [0.2, 1.0, 4.0])
def test_the_variables_have_the_moments_of_a_gamma_distribution(alpha: float) -> None:
    random = np.random.Generator(np.random.Philox(key=3))
    drawn = np.exp([_log_gamma_variable(alpha, random) for _ in range(20_000)])
    assert drawn.mean() == pytest.approx(alpha, rel=0.05)
    assert drawn.var() == pytest.approx(alpha, rel=0.1)


def test_a_target_of_no_classes_is_refused() -> None:
    with pytest.raises(UsageError, match="partition"):
        dealt_out(np.arange(50.0), 3, 0.5, 0)
