"""Reads edge lists: two labels a line, `.csv` or `.txt`, plain or `.gz`.

The result is the largest connected component of the undirected graph in the file, without loops
and repeated edges. Its nodes are numbered in the order of their labels (as numbers where all labels
of the file are whole numbers, else as texts), so the order of the lines does not matter. Of several
largest components it is the one with the first label.

Labels may be any texts. Lines that are empty or open with `#` are skipped. The first line decides
what separates the labels: a comma, else a tab, else spaces. In a `.csv` the first line is a header
where its two entries are not both numbers and neither of them is a label further down; an edge that
looks like that joins no other node, so it could only matter in a graph whose components are all
single edges.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from p2pdp.core.arrays import Ints
from p2pdp.core.errors import UsageError
from p2pdp.files.reading import read_text
from p2pdp.topology.graphs import EdgeList, graph_of_edges

_ENDINGS: Final = (".csv", ".txt", ".csv.gz", ".txt.gz")


def read_edge_list(path: Path) -> EdgeList:
    """The largest component of the edge list in this file."""
    if not path.name.endswith(_ENDINGS):
        raise UsageError(f"{path}: an edge list is a .csv or .txt file, or one of these with .gz after it.")
    pairs = list(_pairs(path))
    if path.name.endswith((".csv", ".csv.gz")) and pairs and _is_header(pairs):
        del pairs[0]
    if not pairs:
        raise UsageError(f"{path}: holds no edges.")
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
    """The numbers of the nodes of this file's largest component that have a loop in it, which edge lists leave out."""
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
        entries = text.split() if separator is None else next(csv.reader([text], delimiter=separator))
        labels = [entry.strip() for entry in entries]
        if len(labels) != 2 or not all(labels):
            raise UsageError(f"{path} line {number}: an edge is two labels, separated as in the first line.")
        yield labels[0], labels[1]


def _is_header(pairs: list[tuple[str, str]]) -> bool:
    first, rest = pairs[0], pairs[1:]
    return not all(_is_whole(label) for label in first) and not any(a in first or b in first for a, b in rest)


def _in_order(labels: set[str]) -> list[str]:
    """Sorted as numbers where all are whole numbers (equal ones as texts), else as texts."""
    return sorted(labels, key=(lambda label: (int(label), label)) if all(map(_is_whole, labels)) else None)


def _is_whole(label: str) -> bool:
    return label.isascii() and label.removeprefix("-").isdigit() and len(label) <= 4000
