"""What tables give beside plain columns; cells and errors are in `test_data.py`."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import DataPart
from p2pdp.files.tables import place_of, read_table, refuse_cells


def csv(folder: Path, text: str, **keys: object) -> DataPart:
    (folder / "table.csv").write_text(text, encoding="utf-8")
    return DataPart("csv", path=str(folder / "table.csv"), **keys)  # type: ignore[arg-type]


def test_columns_are_chosen_in_the_order_that_is_asked_for(tmp_path: Path) -> None:
    data = csv(tmp_path, "a,b,c\n1,2,3\n4,5,6\n")
    found = read_table(data, lambda names: (list(names).index("c"), list(names).index("a")))
    assert found.columns == ("c", "a")
    assert found.rows.tolist() == [[3, 1], [6, 4]]
    assert read_table(csv(tmp_path, "a,b,c\n1,2,3\n", columns=("b",))).rows.tolist() == [[2]]


def test_columns_that_are_not_chosen_may_hold_anything(tmp_path: Path) -> None:
    data = csv(tmp_path, "name,age\nAnna,31\nBert,41\n", split_by="name")
    found = read_table(data, lambda _: (1,))
    assert found.rows.tolist() == [[31], [41]]
    assert found.groups == ("Anna", "Bert")


def test_packed_npy_files_split_by_a_number(tmp_path: Path) -> None:
    np.save(tmp_path / "table.npy", np.array([[1.0, 2.0], [3.0, 4.0]]))
    (tmp_path / "table.npy.gz").write_bytes(gzip.compress((tmp_path / "table.npy").read_bytes()))
    found = read_table(DataPart("npy", path=str(tmp_path / "table.npy.gz"), split_by=0), lambda _: (1,))
    assert found.rows.tolist() == [[2], [4]]
    assert found.groups == (1.0, 3.0)


def test_errors_name_the_key_that_named_the_column() -> None:
    for column, words in (("x", "no column"), (7, "there is no 7"), ("twice", "several")):
        with pytest.raises(UsageError, match=rf"\[data\] target: t.csv has .*{words}|\[data\] target.*{words}"):
            place_of(column, ("a", "twice", "twice"), "t.csv", "target")
    with pytest.raises(UsageError, match="no header line"):
        place_of("a", (0, 1), "t.csv", "split_by")


def test_cells_are_refused_by_their_place(tmp_path: Path) -> None:
    found = read_table(csv(tmp_path, "a,b\n1,2\n3,4\n"))
    with pytest.raises(UsageError, match="line 3 column b: is odd"):
        refuse_cells(found, found.rows == 4, "is odd")
    refuse_cells(found, found.rows == 9, "is odd")
