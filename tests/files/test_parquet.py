from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import DataPart
from p2pdp.files.parquet import read_parquet
from p2pdp.files.tables import read_table
from tests.support.missing import missing


def written(place: Path, **columns: Any) -> str:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        missing("pyarrow is not installed")
    parquet.write_table(pa.table(columns), place / "rows.parquet")
    return str(place / "rows.parquet")


def test_columns_are_read_as_numbers_by_their_names(tmp_path: Path) -> None:
    path = written(tmp_path, age=[31, 40], name=["Anna", "Bert"], dose=[0.5, 2.0], ill=[True, False])
    table = read_table(DataPart("parquet", path=path, columns=("ill", "age", 2)))
    assert table.rows.tolist() == [[1.0, 31.0, 0.5], [0.0, 40.0, 2.0]]
    assert table.columns == ("ill", "age", "dose")
    assert table.place(1, 2) == f"{path} row 1 column dose"
    grouped = read_table(DataPart("parquet", path=path, columns=("age",), partition="by", column="name"))
    assert grouped.groups == ("Anna", "Bert")


def test_cells_that_are_missing_or_no_numbers_are_named_without_their_value(tmp_path: Path) -> None:
    path = written(tmp_path, age=[31, None], name=["Anna", "Bert"])
    with pytest.raises(UsageError, match="row 1 column age: is missing or not a number"):
        read_table(DataPart("parquet", path=path, columns=("age",)))
    with pytest.raises(UsageError, match="row 0 column name") as caught:
        read_table(DataPart("parquet", path=path, columns=("name",)))
    assert "Anna" not in str(caught.value)
    nans = read_parquet(written(tmp_path, age=[1.0, float("nan")]))
    assert np.isnan(nans.columns[0][1]), "it is the reader's to refuse"


def test_what_is_no_file_of_the_kind_is_refused(tmp_path: Path) -> None:
    written(tmp_path, age=[1])
    (tmp_path / "rows.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(UsageError, match="whole Parquet file"):
        read_parquet(str(tmp_path / "rows.parquet"))
    with pytest.raises(UsageError, match="nothing"):
        read_parquet(str(tmp_path / "nothing.parquet"))
