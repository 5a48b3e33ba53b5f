"""Data and graphs that a caller hands in from Python, brought into one form.

Data are one table that is split among users as the rows of a file are, or a table for each user:

    a numpy array, DataFrame or Series; a list of numbers    one table
    a tuple (X, y) of features and a target for each row     one table, whose last column is the target
    a list or tuple of these                                 one table a user, in the order of users
    a dict of these                                          the same, by user number or by label of the given graph

Tables are looked at through what they have in common (`columns` and `to_numpy`, or `__array__`), so no package is
imported for them. They are copied: what the caller changes afterwards changes nothing here.

Graphs are a networkx graph or an adjacency matrix, dense or of scipy, and become the largest component of an edge list,
exactly as a file with the same edges would. Nodes are called by their labels, or in a matrix by the numbers of rows.

Guarantee: no error and no `repr` names a value.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Final

import numpy as np

from p2pdp.core.errors import UsageError

GIVEN: Final = "the data given"
GRAPH_FILE: Final = "graph.txt"  # where the folder of a run keeps the edges that came from Python

Name = str | int


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """Rows in columns: each an array of numbers, or a list of whatever else it holds.

    `starts` has the first row of each user and the end; None where one table is to be split.
    """

    names: tuple[Name, ...]
    columns: tuple[Any, ...] = field(repr=False)
    rows: int
    starts: tuple[int, ...] | None = field(default=None, repr=False)
    target: int | None = None  # the column that is the target, where rows were given as (X, y)

    def numbers(self, place: int) -> tuple[Any, int | None]:
        """Return a column as numbers, and the first row whose cell is none."""
        column = self.columns[place]
        if not isinstance(column, list):
            return column, None
        numbers = np.full(len(column), np.nan)
        for row, cell in enumerate(column):
            if not isinstance(cell, float):
                return numbers, row
            numbers[row] = cell
        return numbers, None

    def groups(self, place: int) -> tuple[str | float, ...]:
        """Return what rows are split by: a number or a text for each."""
        column = self.columns[place]
        if not isinstance(column, list):
            return tuple(column.tolist())
        return tuple(cell if isinstance(cell, float) else (cell or "").strip() for cell in column)

    def packed(self) -> dict[str, Any]:
        """Return what msgpack can carry to another process of the caller's."""
        columns = [column if isinstance(column, list) else column.tobytes() for column in self.columns]
        return {
            "names": self.names,
            "columns": columns,
            "rows": self.rows,
            "starts": self.starts,
            "target": self.target,
        }

    @staticmethod
    def unpacked(held: Mapping[str, Any]) -> Given:
        """Return the data that `packed` stands for."""
        columns = tuple(column if isinstance(column, list) else np.frombuffer(column) for column in held["columns"])
        starts = None if held["starts"] is None else tuple(held["starts"])
        return Given(tuple(held["names"]), columns, held["rows"], starts, held["target"])


def given_data(data: Any, labels: Sequence[str] | None = None) -> Given:
    """Return the caller's data in one form; `labels` are those of the graph that came with them."""
    if isinstance(data, Given):
        return data
    if _is_pair(data):
        return _table(data, "data")
    if isinstance(data, Mapping):
        return _by_user([data[key] for key in _in_order(data, labels)])
    if _is_table(data) or (isinstance(data, list | tuple) and all(isinstance(cell, Real) for cell in data)):
        return _table(data, "data")
    if isinstance(data, list | tuple):
        return _by_user(data)
    raise UsageError(
        f"data: is a {type(data).__name__}; give an array or DataFrame, which is split among the users, or a list or "
        "dict with one for each user."
    )


def _in_order(data: Mapping[Any, Any], labels: Sequence[str] | None) -> list[Any]:
    """Return the keys of a dict by user in the order of users."""
    users = list(range(len(data)))
    if all(isinstance(key, int) for key in data) and sorted(data) == users:
        return users
    named = {str(key): key for key in data}
    if labels is not None and set(named) == set(labels) and len(named) == len(data):
        return [named[label] for label in labels]
    what = f"users' numbers from 0 to {len(data) - 1}"
    also = "" if labels is None else ", or the labels of the graph's largest component"
    raise UsageError(f"data: the keys of a dict are {what}{also}; for a table with named columns give a DataFrame.")


def _is_pair(data: Any) -> bool:
    """Return whether data are features and a target: a tuple of a table of several columns and a list as long."""
    if not isinstance(data, tuple) or len(data) != 2:
        return False
    features, targets = (tuple(getattr(part, "shape", ())) for part in data)
    return len(features) == 2 and features[-1] > 1 and targets in ((features[0],), (features[0], 1))


def _is_table(data: Any) -> bool:
    return hasattr(data, "__array__") or (hasattr(data, "columns") and hasattr(data, "to_numpy"))


def _by_user(tables: Sequence[Any]) -> Given:
    made = [_table(table, f"data of user {user}") for user, table in enumerate(tables)]
    if not made:
        raise UsageError("data: is empty; every user needs one row at least.")
    first = made[0]
    for user, table in enumerate(made):
        if table.names != first.names:
            raise UsageError(
                f"data of user {user}: has the columns {_shown(table.names)}, and user 0 has {_shown(first.names)}."
            )
    columns = tuple(_joined([table.columns[place] for table in made]) for place in range(len(first.names)))
    starts = (0, *np.cumsum([table.rows for table in made]).tolist())
    return Given(first.names, columns, starts[-1], starts, first.target)


def _shown(names: Sequence[Name]) -> str:
    return ", ".join(map(str, names[:8])) + (f", … ({len(names)} in all)" if len(names) > 8 else "")


def _joined(parts: Sequence[Any]) -> Any:
    if any(isinstance(part, list) for part in parts):
        return [cell for part in parts for cell in (part if isinstance(part, list) else part.tolist())]
    return np.concatenate(parts)


def _table(data: Any, what: str) -> Given:
    """Return one table; `what` names it in errors."""
    if _is_pair(data):
        features, targets = _table(data[0], what), _table(data[1], what)
        names = features.names
        last: Name = len(names) if isinstance(names[0], int) else "target"
        if last in names:
            raise UsageError(f"{what}: X has a column called target already; rename it.")
        columns = (*features.columns, *targets.columns)
        return Given((*names, last), columns, features.rows, target=len(names))
    if hasattr(data, "columns") and hasattr(data, "to_numpy"):
        names = tuple(name if isinstance(name, str | int) else str(name) for name in data.columns)
        whole = [data[name] for name in data.columns] if len(set(data.columns)) == len(names) else None
        if whole is None:
            raise UsageError(f"{what}: has several columns of one name; rename them.")
        columns = tuple(_column(series.to_numpy()) for series in whole)
        return Given(names if any(isinstance(n, str) for n in names) else tuple(range(len(names))), columns, len(data))
    if np.ma.isMaskedArray(data):
        raise UsageError(f"{what}: holds masked cells; fill or drop them.")
    if isinstance(data, Real):
        data = [data]
    try:
        array = np.asarray(data.to_numpy() if hasattr(data, "to_numpy") else data)
    except (ValueError, TypeError):
        raise UsageError(f"{what}: is no table; rows differ in length.") from None
    if array.ndim not in (1, 2):
        raise UsageError(f"{what}: must be a list or a table of numbers, and has {array.ndim} dimensions.")
    label = getattr(data, "name", None)
    if array.ndim == 1:
        return Given((label if isinstance(label, str) else 0,), (_column(array),), len(array))
    return Given(tuple(range(array.shape[1])), tuple(_column(one) for one in array.T), len(array))


def _column(array: Any) -> Any:
    """Return an array of numbers of its own, or a list of numbers, texts and None where there are other cells."""
    if array.dtype.kind in "iufb":
        numbers = array.astype(np.float64)
        numbers.setflags(write=False)
        return numbers
    return [
        _float(cell) if isinstance(cell, Real) else cell if isinstance(cell, str) else None for cell in array.tolist()
    ]


def _float(cell: Any) -> float:
    """Return a number as a float: beyond all of them infinity, which is refused where it is used."""
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf


def given_edges(graph: Any) -> list[tuple[str, str]]:
    """Return the edges of the caller's graph as pairs of labels."""
    if hasattr(graph, "edges") and hasattr(graph, "is_directed"):
        if graph.is_directed():
            raise UsageError("graph: is directed; give graph.to_undirected().")
        if any(weight != 1 for *_, weight in graph.edges(data="weight", default=1)):
            raise UsageError(
                "graph: its edges have weights, which nothing reads; give it without, and [graph] weights."
            )
        labels = _labels(graph.nodes)
        return [(labels[edge[0]], labels[edge[1]]) for edge in graph.edges()]
    return [(str(u), str(v)) for u, v in _adjacent(graph)]


def _labels(nodes: Any) -> dict[Any, str]:
    labels = {node: str(node) for node in nodes}
    if len(set(labels.values())) < len(labels):
        raise UsageError("graph: two nodes have labels of the same text; relabel them.")
    for label in labels.values():
        if not label.isprintable() or label != label.strip() or not label:
            raise UsageError("graph: a label must be a text that a line of a file can hold.")
    return labels


def _adjacent(matrix: Any) -> list[tuple[int, int]]:
    """Return the edges (u, v), u <= v, of an adjacency matrix."""
    if hasattr(matrix, "tocoo"):
        entries = matrix.tocoo()
        shape, u, v, values = entries.shape, entries.row, entries.col, entries.data
    else:
        try:
            array = np.asarray(matrix)
        except ValueError:
            array = np.empty(0)
        if array.ndim != 2 or array.dtype.kind not in "iufb":
            raise UsageError("graph: must be a networkx graph, or an adjacency matrix of zeros and ones.")
        shape = array.shape
        u, v = np.nonzero(array)
        values = array[u, v]
    if shape[0] != shape[1]:
        raise UsageError(f"graph: an adjacency matrix is square, and this one has {shape[0]} rows, {shape[1]} columns.")
    if not np.isin(values, (0, 1)).all():
        raise UsageError("graph: an adjacency matrix holds zeros and ones; [graph] weights chooses weights.")
    pairs = {(int(a), int(b)) for a, b, value in zip(u, v, values, strict=True) if value}
    if any((b, a) not in pairs for a, b in pairs):
        raise UsageError("graph: the adjacency matrix is not symmetric; edges have no direction.")
    return sorted((a, b) for a, b in pairs if a <= b)


def edges_text(edges: Any) -> str:
    """Return the text of an edge list that reads back as these edges."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows((edges.labels[u], edges.labels[v]) for u, v in edges.edges.tolist())
    return text.getvalue()
