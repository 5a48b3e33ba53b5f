from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from p2pdp.core.errors import UsageError
from p2pdp.files import paper_data
from p2pdp.files.paper_data import EGO_COUNTS, EGOS, GRAPHS, TABLES, GraphFile, TableFile

# sha256 of the contents that the papers' numbers were checked with
DIGESTS = {
    "cal_housing.csv": "534365b6c3c9b07c2b7d88e0ff9f1b41725d8b799748f5c0b80e1067f51c8ab3",
    "spambase.data": "33ee5202a43f9196a8b32f3cf5847c88120ab03df3997cc4fbb4ae89f4b4c1eb",
}


@pytest.mark.parametrize("name", ["twitch", "ego_facebook"])
def test_real_graphs_have_the_papers_sizes(name: str, data_dir: Path) -> None:
    found = paper_data.read_graph(data_dir, name)
    assert (found.n, len(found.edges)) == (GRAPHS[name].n, GRAPHS[name].m)


def test_real_tables_and_their_digests(data_dir: Path) -> None:
    for name in ("houses", "spambase"):
        assert paper_data.read_numbers(data_dir, name).shape == (TABLES[name].rows, TABLES[name].columns)
        assert paper_data.content_digest(data_dir, TABLES[name].file) == DIGESTS[TABLES[name].file]


def test_real_ego_networks(data_dir: Path) -> None:
    found = paper_data.read_egos(data_dir)
    assert sorted(found) == sorted(EGO_COUNTS)
    sizes = {ego: (one.n, len(one.edges), one.components) for ego, one in found.items()}
    assert sizes[0] == (324, 2_514, 5)
    assert sizes[107] == (1_034, 26_749, 1)
    assert sizes[3980] == (44, 138, 4)


def test_plain_and_packed_files_are_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper_data, "TABLES", {"t": TableFile("t.csv", 2, 3, ";")})
    text = b"a;b;c\n1;2;3\n4;5;6.5\n"
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text))
    packed = paper_data.read_numbers(tmp_path, "t"), paper_data.content_digest(tmp_path, "t.csv")
    (tmp_path / "t.csv").write_bytes(text)
    plain = paper_data.read_numbers(tmp_path, "t"), paper_data.content_digest(tmp_path, "t.csv")
    assert np.array_equal(packed[0], plain[0])
    assert packed[1] == plain[1]


@pytest.mark.parametrize(("text", "why"), [("1,2\n", "has 1 rows of 2 numbers"), ("1,nan\n2,3\n", "finite")])
def test_a_table_of_another_shape_is_refused(
    text: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper_data, "TABLES", {"t": TableFile("t.csv", 2, 2)})
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(UsageError, match=why):
        paper_data.read_numbers(tmp_path, "t")


def test_a_graph_of_another_size_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper_data, "GRAPHS", {"g": GraphFile("g.csv", 3, 3)})
    (tmp_path / "g.csv").write_text("0,1\n1,2\n")
    with pytest.raises(UsageError, match="has 3 nodes and 2 edges; the papers' has 3 and 3"):
        paper_data.read_graph(tmp_path, "g")
    (tmp_path / "g.csv").write_text("0,1\n1,2\n2,0\n")
    assert paper_data.read_graph(tmp_path, "g").n == 3


def _archive(folder: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(folder / EGOS, "w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def test_an_archive_is_read_by_names_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper_data, "EGO_COUNTS", {7: (5, 4)})
    _archive(tmp_path, {"facebook/7.edges": b"10 11\n11 10\n11 12\n12 10\n8 9\n"})
    (found,) = paper_data.read_egos(tmp_path).values()
    assert (found.labels, found.edges.tolist(), found.components) == (("10", "11", "12"), [[0, 1], [0, 2], [1, 2]], 2)
    for files, why in (
        ({"facebook/7.edges": b"1 2\n"}, "ego 7 has 2 friends and 1 friendships; expected are 5 and 4"),
        ({"facebook/8.edges": b"1 2\n"}, "is not the archive"),
        ({"facebook/7.edges": b"1 2 3\n"}, "is not the archive"),
        ({"facebook/7.edges": b"a b\n"}, "is not the archive"),
    ):
        _archive(tmp_path, files)
        with pytest.raises(UsageError, match=why):
            paper_data.read_egos(tmp_path)
    (tmp_path / EGOS).write_bytes(b"no archive at all")
    with pytest.raises(UsageError, match="is not the archive"):
        paper_data.read_egos(tmp_path)
