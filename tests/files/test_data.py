"""What each user holds, from every kind of data, and the errors that name a place."""

from __future__ import annotations

import dataclasses
import gzip
import io
import math
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import DataPart, GraphPart, NoisePart, RunPart, Spec, TaskPart
from p2pdp.files.data import Categories, DataSet, load_data
from p2pdp.files.spec import load_spec, parse_spec
from p2pdp.files.tables import Moved
from p2pdp.mechanisms.clipping import Bounded
from p2pdp.protocols.walk.options import WalkPart
from tests.support.learners import learning

SAMPLES = Path(__file__).parents[2] / "deploy" / "samples"


def spec_of(data: DataPart, categories: int | None = None, seed: int | None = 1) -> Spec:
    return Spec(
        run=RunPart("walk.sum", 1, seed=seed),
        graph=GraphPart("complete"),
        noise=NoisePart("none"),
        data=data,
        task=TaskPart("sum") if categories is None else TaskPart("histogram", categories=categories),
    )


def csv_data(folder: Path, content: str, n: int = 1, categories: int | None = None, **keys: Any) -> DataSet:
    (folder / "table.csv").write_text(content, encoding="utf-8")
    clip = None if categories else (-9000.0, 9000.0)
    return load_data(spec_of(DataPart("csv", path=str(folder / "table.csv"), clip=clip, **keys), categories), n)


def npy_data(folder: Path, array: Any, n: int = 1, categories: int | None = None, **keys: Any) -> DataSet:
    np.save(folder / "table.npy", array)
    clip = None if categories else (-9000.0, 9000.0)
    return load_data(spec_of(DataPart("npy", path=str(folder / "table.npy"), clip=clip, **keys), categories), n)


def rows(data: DataSet, i: int = 0) -> Any:
    return data.user(i).rows.tolist()


def test_uniform_values_lie_in_the_bounds_and_fill_them() -> None:
    data = load_data(spec_of(DataPart("uniform", clip=(-2.0, 6.0))), 4000)
    values = np.concatenate([data.user(i).rows for i in range(data.n)])
    assert values.shape == (4000,)
    assert data.dimensions == 1
    assert -2 <= values.min() < -1.98
    assert 5.98 < values.max() <= 6
    assert abs(values.mean() - 2) < 6 * 8 / math.sqrt(12 * 4000)
    assert np.histogram(values, bins=10, range=(-2, 6))[0].min() > 300


def test_normal_values_are_standard_and_clipped() -> None:
    wide = load_data(spec_of(DataPart("normal", clip=(-10.0, 10.0))), 4000)
    values = np.concatenate([wide.user(i).rows for i in range(wide.n)])
    assert abs(values.mean()) < 6 / math.sqrt(4000)
    assert abs(values.std() - 1) < 6 / math.sqrt(8000)
    assert abs(np.mean(np.abs(values) < 1) - 0.6827) < 0.05
    narrow = load_data(spec_of(DataPart("normal", clip=(-0.5, 0.5))), 4000)
    assert rows(narrow, 7) == [min(max(values[7], -0.5), 0.5)]
    assert sum(user.clipped for user in map(narrow.user, range(4000)) if isinstance(user, Bounded)) > 2000


def test_categories_are_skewed_and_all_possible() -> None:
    data = load_data(spec_of(DataPart("categories"), categories=5), 5000)
    users = [data.user(i) for i in range(data.n)]
    assert all(isinstance(user, Categories) and len(user) == 1 and user.categories == 5 for user in users)
    counts = np.bincount(np.concatenate([user.rows for user in users]), minlength=5)
    expected = 5000 / np.arange(1, 6) / sum(1 / k for k in range(1, 6))
    assert len(counts) == 5
    assert np.all(np.abs(counts - expected) < 6 * np.sqrt(expected))


@pytest.mark.parametrize("data", [DataPart("uniform", clip=(0.0, 1.0)), DataPart("normal", clip=(-9.0, 9.0))])
def test_a_users_value_depends_on_the_seed_and_nothing_else(data: DataPart) -> None:
    few, many = load_data(spec_of(data), 3), load_data(spec_of(data), 3000)
    assert [rows(few, i) for i in range(3)] == [rows(many, i) for i in range(3)]
    assert rows(few, 0) != rows(few, 1)
    assert rows(load_data(spec_of(data, seed=2), 3)) != rows(few)
    assert rows(load_data(spec_of(data, seed=None), 3)) == rows(load_data(spec_of(data, seed=0), 3))


@given(st.integers(1, 40), st.integers(0, 200))
def test_users_rows_are_slices_that_partition_the_table(n: int, more: int) -> None:
    total = n + more
    buffer = io.BytesIO()
    np.save(buffer, np.arange(total))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda _: buffer.getvalue())
        data = load_data(spec_of(DataPart("npy", path="table.npy", clip=(0.0, 1000.0))), n)
    held = [rows(data, i) for i in range(n)]
    assert [value for user in held for value in user] == list(range(total))
    assert [user[0] for user in held] == [i * total // n for i in range(n)]
    assert {len(user) for user in held} <= {total // n, -(-total // n)}


def test_a_header_is_found_or_said(tmp_path: Path) -> None:
    assert rows(csv_data(tmp_path, "a,b\n1,2\n3,4\n")) == [[1, 2], [3, 4]]
    assert rows(csv_data(tmp_path, "1,2\n3,4\n")) == [[1, 2], [3, 4]]
    assert rows(csv_data(tmp_path, "1990,2000\n3,4\n", header=True, columns=("2000",))) == [4]
    assert rows(csv_data(tmp_path, "1990,2000\n3,4\n", header=False)) == [[1990, 2000], [3, 4]]
    with pytest.raises(UsageError, match=r"line 1 column 0: is not a number; if this line is a header, say"):
        csv_data(tmp_path, "year,2000\n3,4\n")
    with pytest.raises(UsageError, match=r"line 1 column 1: is not a number\.$"):
        csv_data(tmp_path, "1,b\n3,4\n", header=False)


def test_columns_are_chosen_by_name_or_number(tmp_path: Path) -> None:
    table = "day,km,h\nmon,1.5,2\ntue,-3e2,0\n"
    assert rows(csv_data(tmp_path, table, columns=("h", "km"))) == [[2, 1.5], [0, -300]]
    assert rows(csv_data(tmp_path, table, columns=(1,))) == [1.5, -300]
    assert csv_data(tmp_path, table, columns=("h", "km")).dimensions == 2
    assert csv_data(tmp_path, table, columns=(1,)).dimensions == 1
    for column, error in (
        ("kn", 'has no column "kn"; did you mean "km"'),
        (3, "has 3 columns, counted from 0; there is no 3"),
    ):
        with pytest.raises(UsageError, match=error):
            csv_data(tmp_path, table, columns=(column,))
    with pytest.raises(UsageError, match='no header line to find "km" in'):
        csv_data(tmp_path, "1,2\n", columns=("km",))
    with pytest.raises(UsageError, match='several columns "km"'):
        csv_data(tmp_path, "km,km\n1,2\n", columns=("km",))


def test_separators_line_ends_quotes_and_packing(tmp_path: Path) -> None:
    assert rows(csv_data(tmp_path, 'a;b\r\n1;"2"\r\n\r\n3; 4 \r\n', separator=";")) == [[1, 2], [3, 4]]
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"1\n2\n"))
    packed = DataPart("csv", path=str(tmp_path / "t.csv.gz"), clip=(0.0, 1.5))
    assert rows(load_data(spec_of(packed), 1)) == [1, 1.5]
    with gzip.open(tmp_path / "t.npy.gz", "wb") as file:
        np.save(file, np.array([[1, 2]]))
    packed = DataPart("npy", path=str(tmp_path / "t.npy.gz"), clip=(0.0, 1.5))
    assert rows(load_data(spec_of(packed), 1)) == [[1, 1.5]]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("a,b\n1,2\n3,\n", r"table\.csv line 3 column b: is missing\.$"),
        ("a,b\n1,x17\n", r"table\.csv line 2 column b: is not a number\.$"),
        ("a,b\n1,1_000\n", r"table\.csv line 2 column b: is not a number\.$"),
        ("1,2\n3,nan\n", r"table\.csv line 2 column 1: is not a finite number\.$"),
        ("1,2\n-inf,4\n", r"table\.csv line 2 column 0: is not a finite number\.$"),
        ("1,2\n\n3\n", r"table\.csv line 3: has 1 columns, the first line has 2\.$"),
        ('1,2\n3,"4\n', r"table\.csv line \d: cannot be split into columns"),
        ("1\n", r"table\.csv: has 1 rows for 2 users"),
        ("", r"table\.csv: has 0 rows for 2 users"),
        ("a,b\n", r"table\.csv: has 0 rows for 2 users"),
    ],
)
def test_bad_tables_are_named_by_file_line_and_column(tmp_path: Path, content: str, error: str) -> None:
    with pytest.raises(UsageError, match=error) as caught:
        csv_data(tmp_path, content, n=2)
    assert "x17" not in str(caught.value)


def test_npy_tables(tmp_path: Path) -> None:
    assert rows(npy_data(tmp_path, np.array([3, 4], dtype=np.uint8), n=2), 1) == [4]
    table = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert rows(npy_data(tmp_path, table, columns=(2, 0))) == [[2, 0], [5, 3]]
    with pytest.raises(UsageError, match="there is no 3"):
        npy_data(tmp_path, table, columns=(3,))
    with pytest.raises(UsageError, match=r"row 1 column 2: is not a finite number"):
        npy_data(tmp_path, np.array([[1, 2, 3], [4, 5, np.nan]]))
    for array in (np.zeros((2, 2, 2)), np.array(1.0), np.array(["1"]), np.array([1j]), np.array([True])):
        with pytest.raises(UsageError, match="a list or a table of plain numbers"):
            npy_data(tmp_path, array)
    for array in (np.empty((0, 3)), np.empty(0)):
        with pytest.raises(UsageError, match="has 0 rows"):
            npy_data(tmp_path, array)


def test_objects_and_torn_npy_files_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.save(tmp_path / "torn.npy", np.arange(100))
    (tmp_path / "torn.npy").write_bytes((tmp_path / "torn.npy").read_bytes()[:-8])
    (tmp_path / "text.npy").write_bytes(b"1,2\n")
    (tmp_path / "none.npy").write_bytes(b"")
    for name in ("objects", "torn", "text", "none"):
        with pytest.raises(UsageError, match="is not a whole npy file of numbers"):
            load_data(spec_of(DataPart("npy", path=str(tmp_path / f"{name}.npy"), clip=(0.0, 1.0))), 1)


def test_category_columns(tmp_path: Path) -> None:
    data = csv_data(tmp_path, "id,choice\n7,0\n8,2\n9,1.0\n", n=2, categories=3, columns=("choice",))
    assert (rows(data, 0), rows(data, 1), data.dimensions) == ([0], [2, 1], 1)
    assert isinstance(data.user(0), Categories)
    assert data.user(1).rows.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        data.user(1).rows[0] = 0
    for cell in ("3", "-1", "0.5"):
        with pytest.raises(UsageError, match=r"line 3 column choice: is not a whole number from 0 to 2\.$"):
            csv_data(tmp_path, f"choice\n1\n{cell}\n", categories=3)
    with pytest.raises(UsageError, match="categories are in one column of these 2"):
        csv_data(tmp_path, "1,2\n", categories=3)
    assert rows(npy_data(tmp_path, np.array([1, 0]), categories=2)) == [1, 0]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("target", 0),
        ("target", "price"),
        ("rule", "< 1"),
        ("standardize", {"low": [0.0], "high": [1.0]}),
        ("unit_norm", True),
        ("split_by", "id"),
    ],
)
def test_keys_of_learning_are_refused(key: str, value: Any) -> None:
    data = dataclasses.replace(DataPart("csv", path="absent.csv", clip=(0.0, 1.0)), **{key: value})
    with pytest.raises(UsageError, match=rf"\[data\] {key}: comes with learning tasks"):
        load_data(spec_of(data), 1)


DIRECTIONS = """
[run]
protocol = "shuffle.all"
nodes = 4
seed = 3
[graph]
kind = "complete"
[shuffle]
rounds = 2
[noise]
mechanism = "privunit"
epsilon = 2.0
[task]
kind = "mean"
[data]
"""


def test_a_mixture_of_directions_of_two_kinds() -> None:
    spec = parse_spec(DIRECTIONS + 'kind = "unit_mixture"\n', None)
    data = load_data(spec, 4)
    assert data.dimensions == 200
    values = np.array([data.user(user).rows[0] for user in range(4)])
    np.testing.assert_allclose(np.linalg.norm(values, axis=1), 1.0)
    assert np.all((values.sum(axis=1) > 0.98 * 200**0.5) == [False, False, True, True])
    np.testing.assert_array_equal(load_data(spec, 4).user(3).rows[0], values[3])
    np.testing.assert_array_equal(load_data(spec, 6).user(1).rows[0], values[1])
    other = load_data(parse_spec(DIRECTIONS + 'kind = "unit_mixture"\n', None, ["run.seed=4"]), 4)
    assert not np.allclose(other.user(3).rows[0], values[3])


def test_rows_become_directions(tmp_path: Path) -> None:
    place = tmp_path / "rows.csv"

    def load(text: str) -> DataSet:
        place.write_text(text)
        return load_data(parse_spec(f"{DIRECTIONS}kind = 'csv'\npath = '{place}'\nunit_norm = true\n", None), 2)

    data = load("3,4\n1e-200,0\n0,-1e200\n")
    assert data.dimensions == 2
    np.testing.assert_allclose(np.concatenate([data.user(0).rows, data.user(1).rows]), [[0.6, 0.8], [1, 0], [0, -1]])
    with pytest.raises(UsageError, match=r"rows\.csv line 2: is all zeros, and so has no direction"):
        load("3,4\n0,0\n")
    with pytest.raises(UsageError, match=r"\[data\] columns: .* two dimensions"):
        load("3\n4\n")


def test_values_are_never_shown(tmp_path: Path) -> None:
    numbers = csv_data(tmp_path, "123.25\n")
    choice = csv_data(tmp_path, "77\n", categories=100)
    assert rows(numbers) == [123.25]
    assert rows(choice) == [77]
    for shown in (numbers, numbers.user(0), choice, choice.user(0)):
        assert "123" not in repr(shown)
        assert "77" not in repr(shown)


def test_users_outside_the_run_and_missing_bounds_are_refused() -> None:
    data = load_data(spec_of(DataPart("uniform", clip=(0.0, 1.0))), 3)
    for i in (-1, 3):
        with pytest.raises(UsageError, match="numbered from 0 to 2"):
            data.user(i)
    with pytest.raises(UsageError, match=r"\[data\] clip: missing"):
        load_data(spec_of(DataPart("uniform")), 3).user(0)
    with pytest.raises(UsageError, match=r"absent\.csv: cannot be read"):
        load_data(spec_of(DataPart("csv", path="absent.csv", clip=(0.0, 1.0))), 1)


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_sample_has_data_for_its_users(sample: Path) -> None:
    spec = load_spec(sample)
    data = load_data(spec, spec.run.nodes)
    assert all(len(data.user(i).rows) >= 1 for i in range(spec.run.nodes))


@pytest.mark.parametrize(
    ("name", "separator", "shape"),
    [
        ("cal_housing.csv.gz", ",", (20_640, 9)),
        ("spambase.data.gz", ",", (4_601, 58)),
        ("cardio_train.csv.gz", ";", (70_000, 13)),
    ],
)
def test_published_tables(data_dir: Path, name: str, separator: str, shape: tuple[int, int]) -> None:
    data = DataPart("csv", path=str(data_dir / name), separator=separator, clip=(-1e9, 1e9))
    loaded = load_data(spec_of(data), 7)
    assert sum(len(loaded.user(i).rows) for i in range(7)) == shape[0]
    assert loaded.dimensions == shape[1]


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


def test_rows_are_divided_by_a_column_or_by_classes(tmp_path: Path) -> None:
    by = load(tmp_path, "9,1,0\n10,2,1\n9,3,1\n", n=2, partition="by", column="age", columns=("dose",))
    assert [by.user(i).features[:, 0].tolist() for i in range(2)] == [[1, 3], [2]]
    with pytest.raises(UsageError, match=r"\[data\] column: .* 2 kinds"):
        load(tmp_path, "9,1,0\n10,2,1\n9,3,1\n", n=3, partition="by", column="age")
    rows = "".join(f"{number},1,{number % 2}\n" for number in range(60))
    dealt = load(tmp_path, rows, n=5, partition="dirichlet", alpha=0.1)
    ages = [dealt.user(i).features[:, 0].tolist() for i in range(5)]
    assert sorted(age for own in ages for age in own) == list(range(60))
    again = load(tmp_path, rows, n=5, partition="dirichlet", alpha=0.1)
    assert [again.user(i).features[:, 0].tolist() for i in range(5)] == ages
    with pytest.raises(UsageError, match="3 rows for 5 users"):
        load(tmp_path, "9,1,0\n10,2,1\n9,3,1\n", n=5, partition="dirichlet", alpha=0.1)


@pytest.mark.parametrize("division", [{}, {"split_by": "age", "columns": ("dose",)}])
def test_the_memory_of_a_divided_table_does_not_grow_with_users_times_rows(
    tmp_path: Path, division: dict[str, Any]
) -> None:
    users = 2000
    rows = "".join(f"{number},{number % 7},{number % 2}\n" for number in range(users))
    tracemalloc.start()
    try:
        data = load(tmp_path, rows, n=users, **division)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [float(data.user(user).features[0, 0 if not division else -2]) for user in (0, 9, 1999)] == (
        [0.0, 9.0, 1999.0] if not division else [0.0, 2.0, 4.0]
    )
    assert peak < users**2  # bytes; an index of all rows for each user would take eight times that


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
