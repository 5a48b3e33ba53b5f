"""Rows become features and targets in the order that the module says, and each mistake is one clear error."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import DataPart, GraphPart, NoisePart, RunPart, Spec, TaskPart
from p2pdp.files.data import DataSet, load_data
from p2pdp.files.spec import parse_spec
from p2pdp.files.tables import Moved
from p2pdp.protocols.walk.options import WalkPart
from tests.support.learners import learning

HEADER = "age,dose,sick\n"
ROWS = "20,0,0\n40,5,1\n60,10,1\n30,2.5,0\n"


def load(folder: Path, rows: str, n: int = 1, task: dict[str, Any] | None = None, **keys: Any) -> DataSet:
    (folder / "table.csv").write_text(HEADER + rows, encoding="utf-8")
    given = {"kind": "logistic_regression", "clip": 1.0, **(task or {})}
    spec = Spec(
        run=RunPart("walk.sgd", n),
        graph=GraphPart("complete"),
        noise=NoisePart("none"),
        data=DataPart("csv", path=str(folder / "table.csv"), **{"target": "sick", **keys}),
        task=TaskPart(**given),
        options=WalkPart("random", hops=3),
    )
    return load_data(spec, n)


def test_features_are_all_other_columns_with_an_intercept(tmp_path: Path) -> None:
    data = load(tmp_path, ROWS)
    assert data.dimensions == 3
    assert data.user(0).features.tolist() == [[20, 0, 1], [40, 5, 1], [60, 10, 1], [30, 2.5, 1]]
    assert data.user(0).targets.tolist() == [-1, 1, 1, -1]
    plain = load(tmp_path, ROWS, task={"intercept": False}, columns=("dose",))
    assert plain.user(0).features.tolist() == [[0], [5], [10], [2.5]]


def test_public_ranges_become_minus_one_and_one_and_the_rest_is_moved_in(tmp_path: Path) -> None:
    data = load(tmp_path, ROWS, standardize={"low": [30.0, 0.0], "high": [50.0, 10.0]})
    assert data.user(0).features.tolist() == [[-1, -1, 1], [0, 0, 1], [1, 1, 1], [-1, -0.5, 1]]
    assert data.user(0).clipped == 2
    assert data.user(0).norm_max == pytest.approx(math.sqrt(3))


def test_private_estimates_standardize_and_bounds_come_after(tmp_path: Path) -> None:
    told = {"mean": [40.0, 5.0], "deviation": [10.0, 2.5], "epsilon": 1.0, "delta": 1e-6}
    data = load(tmp_path, ROWS, standardize=told, clip=(-1.0, 1.5))
    assert data.user(0).features[:, :2].tolist() == [[-1, -1], [0, 0], [1.5, 1.5], [-1, -1]]
    assert data.user(0).clipped == 4
    assert load(tmp_path, ROWS, standardize=told).user(0).norm_max is None


def test_unit_norm_comes_before_the_intercept_and_leaves_zeros(tmp_path: Path) -> None:
    ranges = {"low": [20.0, -10.0], "high": [60.0, 10.0]}
    data = load(tmp_path, "40,0,0\n60,10,1\n", standardize=ranges, unit_norm=True)
    assert data.user(0).features.tolist() == [[0, 0, 1], [pytest.approx(0.5**0.5), pytest.approx(0.5**0.5), 1]]
    assert data.user(0).norm_max == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize(
    ("rule", "labels"),
    [("< 30", [1, -1, -1, -1]), ("<= 30", [1, -1, -1, 1]), ("> 30", [-1, 1, 1, -1]), (">=40", [-1, 1, 1, -1]),
     ("== 4e1", [-1, 1, -1, -1])],
)  # fmt: skip
def test_a_rule_makes_classes_of_numbers(tmp_path: Path, rule: str, labels: list[int]) -> None:
    data = load(tmp_path, ROWS, target="age", rule=rule, columns=("dose",))
    assert data.user(0).targets.tolist() == labels


def test_classes_may_be_signs_already(tmp_path: Path) -> None:
    assert load(tmp_path, "1,2,-1\n2,3,1\n").user(0).targets.tolist() == [-1, 1]
    with pytest.raises(UsageError, match="line 3 column sick: is no class"):
        load(tmp_path, "1,2,-1\n2,3,2\n3,1,1\n")


def test_numeric_targets_have_a_public_range_or_none(tmp_path: Path) -> None:
    linear = {"kind": "linear_regression"}
    assert load(tmp_path, ROWS, task=linear, target="age", columns=("dose",)).user(0).targets.tolist() == [
        20,
        40,
        60,
        30,
    ]
    ranged = load(tmp_path, ROWS, task=linear, target="age", columns=("dose",), target_range=(30.0, 50.0))
    assert ranged.user(0).targets.tolist() == [-1, 0, 1, -1]


def test_users_have_equal_parts_or_what_a_column_says(tmp_path: Path) -> None:
    data = load(tmp_path, ROWS, n=2)
    assert [data.user(i).features[:, 0].tolist() for i in range(2)] == [[20, 40], [60, 30]]
    by_column = load(tmp_path, "9,1,0\n10,2,1\n9,3,1\n", n=2, split_by="age", columns=("dose",))
    assert [by_column.user(i).features[:, 0].tolist() for i in range(2)] == [[1, 3], [2]]  # 9 is below 10
    with pytest.raises(UsageError, match="2 kinds of rows for 3 users"):
        load(tmp_path, "9,1,0\n10,2,1\n9,3,1\n", n=3, split_by="age")


def test_a_share_of_each_users_rows_is_kept_for_a_test(tmp_path: Path) -> None:
    rows = "".join(f"{number},{number % 7},{number % 2}\n" for number in range(20))
    data = load(tmp_path, rows, n=2, task={"test": 0.2})
    for user in range(2):
        examples = data.user(user)
        assert (len(examples), len(examples.test or ())) == (8, 2)
        assert examples.test.features[:, 0].tolist() == [10 * user + 4, 10 * user + 9]
    assert load(tmp_path, rows, n=2).user(0).test is None
    with pytest.raises(UsageError, match="no user has so many rows"):
        load(tmp_path, rows, n=10, task={"test": 0.3})


def test_the_mean_takes_made_up_values_too() -> None:
    text = learning(3, task='kind = "mean"\nclip = 0.5\nrate = 0.3').split("[data]")[0]
    spec = parse_spec(
        text + '[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n[task]\nkind = "mean"\nclip = 0.5\nrate = 0.3\n', None
    )
    data = load_data(spec, 3)
    assert data.dimensions == 1
    assert data.user(1).features.shape == (1, 1)
    again = load_data(replace(spec, run=replace(spec.run, seed=4)), 3)
    assert not np.array_equal(again.user(1).features, data.user(1).features)


@pytest.mark.parametrize(
    ("rows", "n", "keys", "words"),
    [
        ("20,nan,0\n30,1,1\n", 2, {}, "line 2 column dose: is not a finite number"),
        ("20,1,0\n30,2,1\n", 3, {}, "2 rows for 3 users"),
        ("20,1,0\n30,2,1\n", 2, {"columns": ("age", "sick")}, "cannot be a feature"),
        ("20,1,0\n30,2,1\n", 2, {"target": "ill"}, r"\[data\] target: .* has no column \"ill\""),
        ("20,1,0\n1e14,2,1\n", 2, {}, "line 3 column age: is beyond"),
        ("20,1,0\n30,2,1\n", 2, {"standardize": {"low": [0.0], "high": [1.0]}}, "1 entries for 2 columns: age, dose"),
    ],
)
def test_what_cannot_be_learned_from_is_one_clear_error(
    tmp_path: Path, rows: str, n: int, keys: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        load(tmp_path, rows, n=n, **keys)


@pytest.mark.parametrize("rows", ["20,1,1\n30,2,1\n", "20,1,0\n30,1,1\n", "20,1,-1\n30,2,0\n"])
def test_no_answer_depends_on_what_all_users_have_in_common(tmp_path: Path, rows: str) -> None:
    """One class, a column that is the same for all, classes written in two ways: one user's row would decide."""
    data = load(tmp_path, rows, n=2)
    assert [len(data.user(user)) for user in range(2)] == [1, 1]


def test_whoever_owns_the_file_learns_what_was_moved(tmp_path: Path) -> None:
    data = load(tmp_path, ROWS, standardize={"low": [30.0, 0.0], "high": [50.0, 10.0]})
    assert data.moved == (Moved("age", 2, 4),)
    assert "age" not in repr(data)
    narrow = load(
        tmp_path, ROWS, target="age", columns=("dose",), target_range=(25.0, 45.0), task={"kind": "linear_regression"}
    )
    assert narrow.moved == (Moved("age", 2, 4),)
    assert load(tmp_path, ROWS).moved == ()


def test_a_single_users_own_file_may_hold_one_class(tmp_path: Path) -> None:
    assert load(tmp_path, "20,1,1\n30,2,1\n", n=1).user(0).targets.tolist() == [1, 1]


def test_errors_never_show_a_value(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, "20,1,31415\n30,2,1\n", n=2)
    assert "31415" not in str(caught.value)
