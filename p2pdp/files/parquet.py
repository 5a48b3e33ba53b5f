"""Tables from Parquet files, read by pyarrow, which comes with the extra `tables` and is imported when one is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from p2pdp.core.errors import UsageError
from p2pdp.files.given import Given
from p2pdp.files.reading import read_bytes


def read_parquet(path: str) -> Given:
    """Return the file's columns: arrays of numbers, or lists where a cell is missing or holds something else."""
    content = read_bytes(Path(path))
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise UsageError(f"{path}: pyarrow is not installed here; pip install 'p2pdp[tables]' installs it") from None
    try:
        table = parquet.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError, ValueError):
        raise UsageError(f"{path}: is not a whole Parquet file.") from None
    columns = tuple(_column(pa, one) for one in table.columns)
    return Given(tuple(table.column_names), columns, table.num_rows)


def _column(pa: Any, column: Any) -> Any:
    kind = column.type
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if plain and not column.null_count:
        return np.array([*column.to_pylist()] if pa.types.is_boolean(kind) else column.to_numpy(), dtype=np.float64)
    return [_cell(cell) for cell in column.to_pylist()]


def _cell(cell: Any) -> float | str | None:
    if isinstance(cell, int | float):
        return float(cell)
    return cell if isinstance(cell, str) else None
