from __future__ import annotations

import numpy as np
import pytest

from p2pdp.core.errors import UsageError
from p2pdp.tasks.examples import Examples, examples_of


def test_examples_are_copies_that_nobody_can_change() -> None:
    table, targets = np.ones((2, 3)), np.zeros(2)
    made = examples_of(table, targets, 2.0)
    table[0, 0] = targets[0] = 7.0
    assert made.features[0, 0] == 1.0
    assert made.targets[0] == 0.0
    assert len(made) == 2
    assert made.rows is made.features
    for part in (made.features, made.targets):
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 1.0


@pytest.mark.parametrize(
    ("table", "targets"),
    [([[1.0, np.nan]], [0.0]), ([[1.0, 2.0]], [np.inf]), ([[1.0, 2.0]], [0.0, 1.0]), ([1.0, 2.0], [0.0, 1.0])],
)
def test_what_is_no_table_of_finite_numbers_is_refused(table: list[object], targets: list[float]) -> None:
    with pytest.raises(UsageError, match="Examples must"):
        examples_of(table, targets, None)


def test_rows_beyond_the_declared_length_are_refused() -> None:
    assert len(examples_of([[0.6, 0.8]], [1.0], 1.0)) == 1
    with pytest.raises(UsageError, match="longer"):
        examples_of([[0.6, 0.9]], [1.0], 1.0)


def test_what_could_be_changed_is_refused() -> None:
    with pytest.raises(UsageError, match="read-only"):
        Examples(np.ones((1, 1)), np.ones(1), None)


def test_no_text_shows_a_value() -> None:
    made = examples_of([[31.4159]], [2.71828], None)
    assert "31" not in repr(made)
    assert repr(made) == "Examples(shape=(1, 1))"
