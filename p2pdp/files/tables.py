"""Tables of numbers from csv, npy and parquet files, and edge lists, all plain or packed as `.gz`.

Guarantee: a cell of a table that is missing or no number is an error that names file, line (of an npy file: row) and
column, never the value; NaN and infinity are read, and the caller refuses them with `refuse_cells`.

An edge list, `.csv` or `.txt`, has two labels a line. The result is the largest connected component of the undirected
graph in the file, without loops and repeated edges. Its nodes are numbered in the order of their labels (as numbers
where all labels of the file are whole numbers, else as texts), so the order of the lines does not matter. Of several
largest components it is the one with the first label.

Labels may be any texts. Lines that are empty or open with `#` are skipped. The first line decides what separates the
labels: a comma, else a tab, else spaces. In a `.csv` the first line is a header where its two entries are not both
numbers and neither of them is a label further down; an edge that looks like that joins no other node, so it could only
matter in a graph whose components are all single edges.
"""

from __future__ import annotations

import csv
import io
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Ints
from p2pdp.core.errors import UsageError
from p2pdp.core.readers import suggestion
from p2pdp.core.spec import DataPart, GraphPart
from p2pdp.files.given import GIVEN, Given
from p2pdp.files.reading import read_bytes, read_text
from p2pdp.topology.graphs import EdgeList, graph_of_edges


@dataclass(frozen=True, slots=True)
class Moved:
    """The count of numbers of a column that were moved into bounds. It depends on the data: for their owner only."""

    column: str | int
    clipped: int
    rows: int


def moved_in(columns: Sequence[str | int], outside: Any) -> tuple[Moved, ...]:
    """Return the columns with moved numbers; `outside` has a column for each, of truths or of counts."""
    counts = (outside > 0).sum(axis=0).tolist()
    counted = zip(columns, counts, strict=False)  # a target comes last, and is looked at by itself
    return tuple(Moved(column, count, len(outside)) for column, count in counted if count)


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers, one row a line, and the names of the places that they came from."""

    path: str
    rows: Any = field(repr=False)
    unit: str
    lines: Sequence[int]
    columns: tuple[str | int, ...]
    groups: tuple[str | float, ...] | None = field(default=None, repr=False)  # what each row is split by
    starts: tuple[int, ...] | None = None  # the first row of each user and the end, where each has a table of its own

    def row(self, row: int) -> str:
        if self.starts is None:
            return f"{self.path} {self.unit} {self.lines[row]}"
        user = bisect_right(self.starts, row) - 1
        return f"{self.path} of user {user} {self.unit} {row - self.starts[user]}"

    def place(self, row: int, column: int) -> str:
        return f"{self.row(row)} column {self.columns[column]}"

    def own(self, user: int, n: int) -> slice:
        """Return the rows of this user of n."""
        if self.starts is not None:
            return slice(self.starts[user], self.starts[user + 1])
        rows = len(self.rows)
        return slice(user * rows // n, (user + 1) * rows // n)

    def check_users(self, n: int) -> None:
        """Refuse a table that has not at least one row for each of n users."""
        if self.starts is None:
            rows = len(self.rows)
            if rows < n:
                raise UsageError(f"{self.path}: has {rows} rows for {n} users; every user needs one at least.")
            return
        if len(self.starts) != n + 1:
            raise UsageError(f"{self.path}: holds {len(self.starts) - 1} users' tables for {n} users.")
        for user in range(n):
            if self.starts[user] == self.starts[user + 1]:
                raise UsageError(f"{self.path} of user {user}: has no rows; every user needs one at least.")


Choose = Callable[[Sequence[str | int]], tuple[int, ...]]  # the places of columns among all names


def read_table(data: DataPart, choose: Choose | None = None) -> Table:
    """Read the columns that are chosen, in that order; by default those that the spec names."""
    choose = choose or (lambda names: chosen_columns(data, names))
    if data.kind == "own":
        return _of_given(data, _given(data), GIVEN, choose)
    if data.kind == "parquet":
        from p2pdp.files.parquet import read_parquet

        return _of_given(data, read_parquet(data.path or ""), data.path or "", choose)
    return _read_csv(data, choose) if data.kind == "csv" else _read_npy(data, choose)


def source_of(data: DataPart) -> str:
    """Name the table of a spec for error texts."""
    return GIVEN if data.path is None else data.path


def _given(data: DataPart) -> Given:
    given = data.own
    if not isinstance(given, Given):
        raise UsageError(
            f'[data] kind: "own" stands for {GIVEN} from Python; pass them again there: data=... of p2pdp.run, '
            "resume, simulate or plan"
        )
    return given


def _of_given(data: DataPart, given: Given, path: str, choose: Choose) -> Table:
    chosen = choose(given.names)
    columns = tuple(given.names[place] for place in chosen)
    rows = np.empty((given.rows, len(chosen)))
    groups = None
    if given.starts is not None and (data.groups is not None or data.is_divided):
        key = "partition" if data.groups is None else data.groups[0]
        raise UsageError(f"[data] {key}: these data are given user by user, so nothing is left to split.")
    if data.groups is not None:
        groups = given.groups(_split_place(data, given.names, path))
    table = Table(path, rows, "row", range(given.rows), columns, groups, given.starts)
    for number, place in enumerate(chosen):
        numbers, unfit = given.numbers(place)
        if unfit is not None:
            raise UsageError(f"{table.place(unfit, number)}: is missing or not a number.")
        rows[:, number] = numbers
    return table


def refuse_cells(table: Table, unfit: Any, why: str) -> None:
    places = np.argwhere(unfit)
    if len(places):
        row, column = places[0].tolist()
        raise UsageError(f"{table.place(row, column)}: {why}.")


def _read_npy(data: DataPart, choose: Choose) -> Table:
    path = data.path or ""
    try:
        array = np.lib.format.read_array(io.BytesIO(read_bytes(Path(path))), allow_pickle=False)
    except (ValueError, EOFError, MemoryError):
        raise UsageError(f"{path}: is not a whole npy file of numbers.") from None
    if array.dtype.kind not in "iuf" or array.ndim not in (1, 2):
        raise UsageError(f"{path}: must hold a list or a table of plain numbers.")
    rows = array.astype(np.float64, copy=False).reshape(len(array), -1 if len(array) else 1)
    names = tuple(range(rows.shape[1]))
    chosen = choose(names)
    groups = None if data.groups is None else tuple(rows[:, _split_place(data, names, path)].tolist())
    used = rows if chosen == names else rows[:, list(chosen)]
    return Table(path, used, "row", range(len(rows)), chosen, groups)


def _split_lines(data: DataPart, path: str) -> tuple[list[int], list[list[str]]]:
    """Return the numbers of all lines that are not empty, and their cells."""
    reader = csv.reader(io.StringIO(read_text(Path(path)), newline=""), delimiter=data.separator or ",", strict=True)
    lines: list[int] = []
    cells: list[list[str]] = []
    blank = 0  # the first empty line amid the others, which in a single column may be a missing value
    try:
        for row in reader:
            if row and (len(row) > 1 or row[0].strip()):
                if blank and len(cells[0]) == 1:
                    raise UsageError(f"{path} line {blank}: is empty; write the missing value, or take the line out.")
                lines.append(reader.line_num)
                cells.append(row)
            elif cells:  # blank lines at the end are none of the table's
                blank = blank or reader.line_num
    except csv.Error as error:
        raise UsageError(f"{path} line {reader.line_num}: cannot be split into columns: {error}.") from None
    if data.separator is None and (mark := _other_separator(cells)):
        named = "\\t" if mark == "\t" else mark
        raise UsageError(
            f'{path}: looks separated by {_MARKS[mark]} and not by commas; if it is, set [data] separator = "{named}".'
        )
    for line, row in zip(lines, cells, strict=True):
        if len(row) != len(cells[0]):
            raise UsageError(f"{path} line {line}: has {len(row)} columns, the first line has {len(cells[0])}.")
    return lines, cells


_MARKS: Final = {";": "semicolons", "\t": "tabs", "|": "bars"}


def _other_separator(cells: Sequence[Sequence[str]]) -> str | None:
    """Return what all lines hold equally often where commas do not make columns; None where commas do."""
    if not cells or (len(cells[0]) > 1 and all(len(row) == len(cells[0]) for row in cells)):
        return None
    for mark in _MARKS:
        counts = {sum(cell.count(mark) for cell in row) for row in cells}
        if len(counts) == 1 and counts != {0}:
            return mark
    return None


def _read_csv(data: DataPart, choose: Choose) -> Table:
    path = data.path or ""
    lines, cells = _split_lines(data, path)
    names: tuple[str | int, ...] = tuple(range(len(cells[0]))) if cells else ()
    if cells and _has_header(data, cells[0]):
        names = tuple(name.strip() for name in cells[0])
        del lines[0], cells[0]
    chosen = choose(names)
    groups = None
    if data.groups is not None:
        split = _split_place(data, names, path)
        groups = tuple(row[split].strip() for row in cells)
    columns = tuple(names[place] for place in chosen)
    table = Table(path, np.empty((len(cells), len(chosen))), "line", lines, columns, groups)
    for row_number, row in enumerate(cells):
        for column, place in enumerate(chosen):
            value = _number(row[place])
            if value is None:
                what = "is not a number" if row[place].strip() else "is missing"
                if re.fullmatch(r"\s*[-+]?\d+,\d+\s*", row[place]):
                    what += "; decimals take a point and no comma"
                raise UsageError(f"{table.place(row_number, column)}: {what}{_header_hint(data, row_number, names)}.")
            table.rows[row_number, column] = value
    return table


def _has_header(data: DataPart, first: Sequence[str]) -> bool:
    """Return whether the first line is a header: as given, else if it holds a name, and neither numbers nor gaps."""
    return data.header if data.header is not None else all(c.strip() and _number(c) is None for c in first)


def _header_hint(data: DataPart, row_number: int, names: Sequence[str | int]) -> str:
    unsure = data.header is None and row_number == 0 and not isinstance(names[0], str)
    return "; if this line is a header, say [data] header = true" if unsure else ""


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)  # Python, unlike csv files, allows 1_000
    except ValueError:
        return None


def chosen_columns(data: DataPart, names: Sequence[str | int]) -> tuple[int, ...]:
    """Return the positions of the columns that the spec names, by name or counted from 0; all of them by default."""
    if data.columns is None:
        return tuple(range(len(names)))
    return tuple(place_of(column, names, source_of(data), "columns") for column in data.columns)


def _split_place(data: DataPart, names: Sequence[str | int], path: str) -> int:
    assert data.groups is not None
    key, column = data.groups
    return place_of(column, names, path, key)


def place_of(column: str | int, names: Sequence[str | int], path: str, key: str) -> int:
    """Return the position, counted from 0, of the column that a key of `[data]` names or numbers."""
    if isinstance(column, int):
        if column >= len(names):
            raise UsageError(f"[data] {key}: {path} has {len(names)} columns, counted from 0; there is no {column}.")
        return column
    if not any(isinstance(name, str) for name in names):
        raise UsageError(f'[data] {key}: {path} has no header line to find "{column}" in.')
    if column not in names:
        raise UsageError(f'[data] {key}: {path} has no column "{column}"{suggestion(column, map(str, names))}')
    if names.count(column) > 1:
        raise UsageError(f'[data] {key}: {path} has several columns "{column}"; choose one by its number.')
    return names.index(column)


def edges_of(graph: GraphPart, folder: Path = Path()) -> EdgeList | None:
    """Return the edges of a graph of kind `file`, the caller's or a file's; `folder` holds the spec.

    None for other kinds, and where no file is named.
    """
    if graph.kind != "file" or graph.own is not None:
        return graph.own if graph.kind == "file" else None
    return None if graph.path is None else read_edge_list(folder / graph.path)


_ENDINGS: Final = (".csv", ".txt", ".csv.gz", ".txt.gz")


def read_edge_list(path: Path) -> EdgeList:
    """Read the largest component of the edge list in this file."""
    if not path.name.endswith(_ENDINGS):
        raise UsageError(f"{path}: an edge list is a .csv or .txt file, or one of these with .gz after it.")
    pairs = list(_pairs(path))
    if path.name.endswith((".csv", ".csv.gz")) and pairs and _is_header(pairs):
        del pairs[0]
    if not pairs:
        raise UsageError(f"{path}: holds no edges.")
    return largest_component(pairs)


def largest_component(pairs: Sequence[tuple[str, str]]) -> EdgeList:
    """Return the largest component of these edges, with its nodes in the order of all labels."""
    labels = _in_order({label for pair in pairs for label in pair})
    numbers = {label: place for place, label in enumerate(labels)}
    whole = graph_of_edges(len(labels), np.array([(numbers[a], numbers[b]) for a, b in pairs]))
    largest = max(whole.components, key=len)
    place_of = {node: place for place, node in enumerate(largest)}
    edges = [(place_of[u], place_of[v]) for u in largest for v in whole.neighbours[u] if u < v]
    return EdgeList(
        labels=tuple(labels[node] for node in largest),
        edges=np.array(edges, dtype=np.int64).reshape(-1, 2),
        components=len(whole.components),
    )


def read_loops(path: Path, of: EdgeList) -> Ints:
    """Return the nodes of this file's largest component that have a loop in it, which edge lists leave out."""
    looped = {a for a, b in _pairs(path) if a == b}
    return np.array([place for place, label in enumerate(of.labels) if label in looped], dtype=np.int64)


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    separator: str | None = None
    decided = False
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if not decided:
            separator = next((mark for mark in ",\t" if mark in text), None)
            decided = True
        try:
            entries = text.split() if separator is None else next(csv.reader([text], delimiter=separator))
        except csv.Error as error:  # a label longer than any
            raise UsageError(f"{path} line {number}: {error}.") from None
        labels = [entry.strip() for entry in entries]
        if len(labels) != 2 or not all(labels):
            raise UsageError(f"{path} line {number}: an edge is two labels, separated as in the first line.")
        yield labels[0], labels[1]


def _is_header(pairs: list[tuple[str, str]]) -> bool:
    first, rest = pairs[0], pairs[1:]
    return not all(_is_whole(label) for label in first) and not any(a in first or b in first for a, b in rest)


def _in_order(labels: set[str]) -> list[str]:
    """Sort as numbers where all are whole numbers (equal ones as texts), else as texts."""
    return sorted(labels, key=(lambda label: (int(label), label)) if all(map(_is_whole, labels)) else None)


def _is_whole(label: str) -> bool:
    return label.isascii() and label.removeprefix("-").isdigit() and len(label) <= 4000
