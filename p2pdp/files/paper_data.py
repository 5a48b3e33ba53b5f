"""The data folder of `p2pdp reproduce`: graphs and tables that the papers used, under fixed names, plain or packed.

Guarantee: what comes back has the shape that is written here, down to the number of rows, nodes and edges; anything
else is an error that names the file and what was expected. A file's digest is that of its content, unpacked, so it
does not depend on who packed it. guide/papers.md says where to get each file.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from p2pdp.core.arrays import Floats, Ints
from p2pdp.core.errors import UsageError
from p2pdp.core.spec import DataPart
from p2pdp.files.reading import read_bytes
from p2pdp.files.tables import read_edge_list, read_table
from p2pdp.topology.graphs import EdgeList, graph_of_edges


@dataclass(frozen=True, slots=True)
class GraphFile:
    """An edge list and the size of its largest component."""

    file: str
    n: int
    m: int


@dataclass(frozen=True, slots=True)
class TableFile:
    """A table of numbers and its size."""

    file: str
    rows: int
    columns: int
    separator: str = ","


GRAPHS: Final[Mapping[str, GraphFile]] = {
    "facebook": GraphFile("facebook_pages_edges.csv", 22_470, 170_823),
    "twitch": GraphFile("twitch_de_edges.csv", 9_498, 153_138),
    "deezer": GraphFile("deezer_europe_edges.csv", 28_281, 92_752),
    "enron": GraphFile("email_enron.txt", 33_696, 180_811),
    "ego_facebook": GraphFile("ego_facebook_combined.txt", 4_039, 88_234),
}
TABLES: Final[Mapping[str, TableFile]] = {
    "houses": TableFile("cal_housing.csv", 20_640, 9),
    "spambase": TableFile("spambase.data", 4_601, 58),
    "cardio": TableFile("cardio_train.csv", 70_000, 13, ";"),
}
EGOS: Final = "ego_facebook.tar"
EGO_COUNTS: Final[Mapping[int, tuple[int, int]]] = {  # friends and friendships in each file
    0: (333, 2_519), 107: (1_034, 26_749), 348: (224, 3_192), 414: (150, 1_693), 686: (168, 1_656), 698: (61, 270),
    1684: (786, 14_024), 1912: (747, 30_025), 3437: (534, 4_813), 3980: (52, 146),
}  # fmt: skip


def check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise UsageError(f"--data {folder}: is not a folder")


def place_in(folder: Path, file: str) -> Path:
    """Return the path of this file in a data folder, plain or as `.gz`."""
    for place in (folder / file, folder / f"{file}.gz"):
        if place.is_file():
            return place
    raise UsageError(f"--data {folder}: lacks {file} (or {file}.gz); see `p2pdp guide papers`.")


def content_digest(folder: Path, file: str) -> str:
    """Return the sha256 of a file's content, unpacked."""
    return hashlib.sha256(read_bytes(place_in(folder, file))).hexdigest()


def read_graph(folder: Path, name: str) -> EdgeList:
    """Read the largest component of one of `GRAPHS`."""
    expected = GRAPHS[name]
    place = place_in(folder, expected.file)
    found = read_edge_list(place)
    if (found.n, len(found.edges)) != (expected.n, expected.m):
        raise UsageError(
            f"{place}: its largest component has {found.n} nodes and {len(found.edges)} edges; "
            f"the papers' has {expected.n} and {expected.m}."
        )
    return found


def read_numbers(folder: Path, name: str) -> Floats:
    """Read one of `TABLES`, without its header, columns in the file's order."""
    expected = TABLES[name]
    place = place_in(folder, expected.file)
    table = read_table(DataPart(kind="csv", path=str(place), separator=expected.separator))
    if table.rows.shape != (expected.rows, expected.columns):
        rows, columns = table.rows.shape
        raise UsageError(
            f"{place}: has {rows} rows of {columns} numbers; the papers' has {expected.rows} of {expected.columns}."
        )
    if not np.all(np.isfinite(table.rows)):
        raise UsageError(f"{place}: holds something that is not a finite number.")
    return np.asarray(table.rows)


def read_egos(folder: Path) -> dict[int, EdgeList]:
    """Read the ten ego networks: the largest component of each one's friends, without the ego, as filed."""
    place = place_in(folder, EGOS)
    whole: dict[int, EdgeList] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(read_bytes(place))) as archive:
            for ego, counts in EGO_COUNTS.items():
                member = archive.extractfile(f"facebook/{ego}.edges")
                pairs = np.array((member.read() if member else b"").split(), dtype=np.int64).reshape(-1, 2)
                whole[ego] = _largest(place, ego, pairs, counts)
    except (tarfile.TarError, KeyError, ValueError, UnicodeDecodeError):
        raise UsageError(f"{place}: is not the archive of ego networks, facebook/0.edges and so on.") from None
    return whole


def _largest(place: Path, ego: int, pairs: Ints, expected: tuple[int, int]) -> EdgeList:
    labels, ends = np.unique(pairs, return_inverse=True)
    graph = graph_of_edges(len(labels), ends.reshape(-1, 2))
    if (graph.n, graph.edge_count) != expected:
        raise UsageError(
            f"{place}: ego {ego} has {graph.n} friends and {graph.edge_count} friendships; expected are "
            f"{expected[0]} and {expected[1]}."
        )
    kept = max(graph.components, key=len)
    place_of: dict[int, Any] = {node: number for number, node in enumerate(kept)}
    edges = [(place_of[u], place_of[v]) for u in kept for v in graph.neighbours[u] if u < v]
    return EdgeList(tuple(str(labels[node]) for node in kept), np.array(edges, dtype=np.int64), len(graph.components))
