"""The users' data: made up from the seed, or read from a csv or npy file.

`load_data(spec, n)` gives a `DataSet`; `DataSet.user(i)` gives what user i contributes: `Bounded`
rows for numbers, `Categories` for histograms. Everything is checked when it is read: a cell that is
missing, no number, not finite or no category is an error that names file, line (of an npy file:
row) and column, never the value.

Synthetic users have one value each, from a random stream of their own, so that user i's value does
not depend on how many users there are. A spec without a seed has the data of seed 0: the values are
made up and protect nobody, so that is no secret. Of a file with R rows user i of n has the rows
⌊iR/n⌋ to ⌊(i+1)R/n⌋ − 1. A value is one row, or a number where there is one column.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import DataPart, Spec
from p2pdp.files.reading import read_bytes, read_text
from p2pdp.files.schema import suggestion
from p2pdp.mechanisms.clipping import Bounded, Bounds, clip

_LEARNING_KEYS: Final = ("target", "rule", "standardize", "unit_norm", "split_by")


@dataclass(frozen=True, slots=True)
class Categories:
    """One user's values: an int64 array of numbers from 0 to categories - 1."""

    rows: Any = field(repr=False)
    categories: int

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class DataSet:
    """What n users hold; `dimensions` is the number of numbers in one value."""

    n: int
    dimensions: int
    user_rows: Callable[[int], Bounded | Categories] = field(repr=False)

    def user(self, i: int) -> Bounded | Categories:
        if not 0 <= i < self.n:
            raise UsageError(f"There is no user {i}: users are numbered from 0 to {self.n - 1}.")
        return self.user_rows(i)


def load_data(spec: Spec, n: int) -> DataSet:
    """The data of this spec for n users."""
    data = spec.data
    for key in _LEARNING_KEYS:
        value = getattr(data, key)
        if value is not None and value is not False:  # column 0 is a target too
            raise UsageError(f"[data] {key}: comes with learning tasks; {spec.run.protocol} cannot use it.")
    if data.kind not in ("csv", "npy"):
        return DataSet(n, 1, lambda i: _synthetic(spec, i))
    table = _read_csv(data) if data.kind == "csv" else _read_npy(data)
    if len(table.rows) < n:
        raise UsageError(f"{table.path}: has {len(table.rows)} rows for {n} users; every user needs one at least.")
    _refuse_cells(table, ~np.isfinite(table.rows), "is not a finite number")
    if spec.task.kind == "histogram":
        return _categories_of(table, spec.task.categories, n)
    rows = table.rows[:, 0] if len(table.columns) == 1 else table.rows
    bounds = _bounds(data)
    return DataSet(n, len(table.columns), lambda i: clip(rows[_own(i, n, len(rows))], bounds))


def _own(i: int, n: int, rows: int) -> slice:
    return slice(i * rows // n, (i + 1) * rows // n)


def _bounds(data: DataPart) -> Bounds:
    if data.clip is None:
        raise UsageError("[data] clip: missing; numbers need bounds [low, high].")
    return Bounds(*data.clip)


def _checked_categories(categories: int | None) -> int:
    if categories is None:
        raise UsageError("[task] categories: missing; a histogram needs their number.")
    return categories


def _synthetic(spec: Spec, i: int) -> Bounded | Categories:
    """User i's one value; category k is drawn with a probability proportional to 1/(k + 1)."""
    name = f"{spec.data.kind} {spec.run.seed or 0} {i}"
    key = hashlib.blake2b(name.encode(), digest_size=16, person=b"p2pdp data").digest()
    generator = np.random.Generator(np.random.Philox(key=int.from_bytes(key, "big")))
    first, second = generator.random(2).tolist()
    if spec.data.kind == "categories":
        categories = _checked_categories(spec.task.categories)
        shares = np.cumsum(1 / np.arange(1, categories + 1))
        return _frozen_categories(np.searchsorted(shares[:-1], [first * shares[-1]], side="right"), categories)
    bounds = _bounds(spec.data)
    if spec.data.kind == "uniform":
        return clip([bounds.low + (bounds.high - bounds.low) * first], bounds)
    # Box and Muller's method: numpy's own normal draws may change from one release to the next.
    return clip([math.sqrt(-2 * math.log1p(-first)) * math.cos(2 * math.pi * second)], bounds)


def _categories_of(table: _Table, given: int | None, n: int) -> DataSet:
    categories = _checked_categories(given)
    if len(table.columns) != 1:
        raise UsageError(
            f"{table.path}: categories are in one column of these {len(table.columns)}; name it in [data] columns."
        )
    rows = table.rows
    unfit = (rows < 0) | (rows >= categories) | (rows != np.floor(rows))
    _refuse_cells(table, unfit, f"is not a whole number from 0 to {categories - 1}")
    whole = rows[:, 0].astype(np.int64)
    return DataSet(n, 1, lambda i: _frozen_categories(whole[_own(i, n, len(whole))], categories))


def _frozen_categories(values: Any, categories: int) -> Categories:
    rows = np.array(values, dtype=np.int64)
    rows.setflags(write=False)
    return Categories(rows, categories)


@dataclass(frozen=True, slots=True)
class _Table:
    """Numbers, one row a line, and how to name the places they came from."""

    path: str
    rows: Any = field(repr=False)
    unit: str
    lines: Sequence[int]
    columns: tuple[str | int, ...]

    def place(self, row: int, column: int) -> str:
        return f"{self.path} {self.unit} {self.lines[row]} column {self.columns[column]}"


def _refuse_cells(table: _Table, unfit: Any, why: str) -> None:
    places = np.argwhere(unfit)
    if len(places):
        row, column = places[0].tolist()
        raise UsageError(f"{table.place(row, column)}: {why}.")


def _read_npy(data: DataPart) -> _Table:
    path = data.path or ""
    try:
        array = np.lib.format.read_array(io.BytesIO(read_bytes(Path(path))), allow_pickle=False)
    except (ValueError, EOFError, MemoryError):
        raise UsageError(f"{path}: is not a whole npy file of numbers.") from None
    if array.dtype.kind not in "iuf" or array.ndim not in (1, 2):
        raise UsageError(f"{path}: must hold a list or a table of plain numbers.")
    rows = array.astype(np.float64).reshape(len(array), -1 if len(array) else 1)
    chosen = _chosen(data, tuple(range(rows.shape[1])), path)
    return _Table(path, rows[:, list(chosen)], "row", range(len(rows)), chosen)


def _read_csv(data: DataPart) -> _Table:
    path = data.path or ""
    reader = csv.reader(io.StringIO(read_text(Path(path)), newline=""), delimiter=data.separator or ",", strict=True)
    lines: list[int] = []
    cells: list[list[str]] = []
    try:
        for row in reader:
            if row and (len(row) > 1 or row[0].strip()):
                lines.append(reader.line_num)
                cells.append(row)
    except csv.Error as error:
        raise UsageError(f"{path} line {reader.line_num}: cannot be split into columns: {error}.") from None
    for line, row in zip(lines, cells, strict=True):
        if len(row) != len(cells[0]):
            raise UsageError(f"{path} line {line}: has {len(row)} columns, the first line has {len(cells[0])}.")
    names: tuple[str | int, ...] = tuple(range(len(cells[0]))) if cells else ()
    if cells and _has_header(data, cells[0]):
        names = tuple(name.strip() for name in cells[0])
        del lines[0], cells[0]
    chosen = _chosen(data, names, path)
    table = _Table(path, np.empty((len(cells), len(chosen))), "line", lines, tuple(names[place] for place in chosen))
    for row_number, row in enumerate(cells):
        for column, place in enumerate(chosen):
            value = _number(row[place])
            if value is None:
                what = "is not a number" if row[place].strip() else "is missing"
                raise UsageError(f"{table.place(row_number, column)}: {what}{_header_hint(data, row_number, names)}.")
            table.rows[row_number, column] = value
    return table


def _has_header(data: DataPart, first: Sequence[str]) -> bool:
    """As given; else the first line is a header if it holds a name or more, and neither numbers nor gaps."""
    return data.header if data.header is not None else all(c.strip() and _number(c) is None for c in first)


def _header_hint(data: DataPart, row_number: int, names: Sequence[str | int]) -> str:
    unsure = data.header is None and row_number == 0 and not isinstance(names[0], str)
    return "; if this line is a header, say [data] header = true" if unsure else ""


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)  # Python, unlike csv files, allows 1_000
    except ValueError:
        return None


def _chosen(data: DataPart, names: Sequence[str | int], path: str) -> tuple[int, ...]:
    """The places of the columns that the spec names, by name or counted from 0; all of them by default."""
    if data.columns is None:
        return tuple(range(len(names)))
    return tuple(_place_of(column, names, path) for column in data.columns)


def _place_of(column: str | int, names: Sequence[str | int], path: str) -> int:
    if isinstance(column, int):
        if column >= len(names):
            raise UsageError(f"[data] columns: {path} has {len(names)} columns, counted from 0; there is no {column}.")
        return column
    if not any(isinstance(name, str) for name in names):
        raise UsageError(f'[data] columns: {path} has no header line to find "{column}" in.')
    if column not in names:
        raise UsageError(f'[data] columns: {path} has no column "{column}"{suggestion(column, map(str, names))}')
    if names.count(column) > 1:
        raise UsageError(f'[data] columns: {path} has several columns "{column}"; choose one by its number.')
    return names.index(column)
