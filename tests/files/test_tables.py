"""What tables give beside plain columns; cells and errors are in `test_data.py`."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError
from p2pdp.core.spec import DataPart, GraphPart
from p2pdp.files import reading
from p2pdp.files.tables import place_of, read_edge_list, read_loops, read_table, refuse_cells
from p2pdp.topology.graphs import EdgeList, Graph, make_graph


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


FORMS = {
    "comma.csv": b"0,1\n1,2\n2,0\n2,10\n",
    "header.csv": b"from,to\n0,1\n1,2\n2,0\n2,10\n",
    "quoted.csv": b'"from","to"\r\n"0","1"\r\n"1","2"\r\n"2","0"\r\n"2","10"\r\n',
    "comma.txt": b"0, 1\n1, 2\n2, 0\n2, 10",
    "tab.txt": b"# Nodes: 4 Edges: 4\r\n# From\tTo\r\n0\t1\r\n1\t2\r\n2\t0\r\n2\t10\r\n",
    "spaces.txt": b"0 1\n1   2 \n\n 2 0\n#2 3\n2 10\n",
    "tab.csv": b"a\tb\n0\t1\n1\t2\n2\t0\n2\t10\n",
    "mess.csv": b"\xef\xbb\xbfx,y\n10,2\n2,2\n0,2\n2,1\n1,2\n0,1\n1,0\n7,8\n99,99\n",
}


def read(folder: Path, name: str, content: bytes) -> EdgeList:
    (folder / name).write_bytes(content)
    return read_edge_list(folder / name)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", FORMS)
def test_all_forms_give_the_same_graph(tmp_path: Path, name: str, packed: bool) -> None:
    content = gzip.compress(FORMS[name]) if packed else FORMS[name]
    edges = read(tmp_path, name + ".gz" * packed, content)
    assert edges.n == 4
    assert edges.labels == ("0", "1", "2", "10")
    assert edges.edges.tolist() == [[0, 1], [0, 2], [1, 2], [2, 3]]
    assert edges.components == (3 if name == "mess.csv" else 1)


def test_labels_may_be_any_texts(tmp_path: Path) -> None:
    edges = read(tmp_path, "names.csv", 'who,whom\nzoë,ann\n"smith, j",ann\nann,10\n'.encode())
    assert edges.labels == ("10", "ann", "smith, j", "zoë")
    assert edges.edges.tolist() == [[0, 1], [1, 2], [1, 3]]
    numbers = read(tmp_path, "numbers.txt", b"-5 07\n7 07\n")
    assert numbers.labels == ("-5", "07", "7")


def test_a_first_line_that_belongs_to_the_graph_is_no_header(tmp_path: Path) -> None:
    assert read(tmp_path, "names.csv", b"ann,bob\nbob,carol\n").n == 3
    assert read(tmp_path, "numbers.csv", b"0,1\n2,3\n").labels == ("0", "1")
    assert read(tmp_path, "names.txt", b"ann bob\n").n == 2


def test_the_largest_component_with_the_first_label_is_taken(tmp_path: Path) -> None:
    edges = read(tmp_path, "two.txt", b"8 9\n9 10\n4 3\n3 5\n1 2\n")
    assert edges.labels == ("3", "4", "5")
    assert edges.components == 3


@given(st.randoms(use_true_random=False), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1))
def test_order_and_direction_of_lines_do_not_matter(
    tmp_path_factory: pytest.TempPathFactory, randomness: Random, pairs: list[tuple[int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("edges")
    first = read(folder, "a.txt", "\n".join(f"{u} {v}" for u, v in pairs).encode())
    turned = [pair if randomness.random() < 0.5 else pair[::-1] for pair in pairs]
    randomness.shuffle(turned)
    second = read(folder, "b.csv", "\n".join(f"{u},{v}" for u, v in turned).encode())
    assert first.labels == second.labels
    assert np.array_equal(first.edges, second.edges)
    graph = make_graph(GraphPart("file"), first.n, 0, first)
    assert graph.connected


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("three.csv", b"from,to\n0,1\n1,2,5\n", r"three\.csv line 3: an edge is two labels"),
        ("one.txt", b"0 1\n\n# x\n1\n", r"one\.txt line 4: an edge is two labels"),
        ("gap.csv", b"0,1\n1,\n", r"gap\.csv line 2: an edge is two labels"),
        ("mixed.txt", b"0\t1\n1 2\n", r"mixed\.txt line 2: an edge is two labels"),
        ("empty.txt", b"# nothing\n\n", r"empty\.txt: holds no edges"),
        ("header.csv", b"from,to\n", r"header\.csv: holds no edges"),
        ("graph.edges", b"0 1\n", r"graph\.edges: an edge list is a \.csv or \.txt file"),
    ],
)
def test_unreadable_lists_are_named(tmp_path: Path, name: str, content: bytes, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        read(tmp_path, name, content)


def test_only_loops_leave_one_node(tmp_path: Path) -> None:
    edges = read(tmp_path, "loops.txt", b"5 5\n6 6\n")
    assert edges.labels == ("5",)
    assert edges.edges.shape == (0, 2)


def graph_of(edges: EdgeList) -> Graph:
    return make_graph(GraphPart("file"), edges.n, 0, edges)


def gamma(graph: Graph) -> float:
    degrees = np.array([graph.degree(u) for u in range(graph.n)], dtype=float)
    return float(graph.n * np.sum((degrees / degrees.sum()) ** 2))


class Figures(NamedTuple):
    """What the data's own description says about the largest component."""

    nodes: int
    edges: int
    components: int
    irregularity: float
    mean_degree: float
    degree_max: int


PUBLISHED = {
    "facebook_pages_edges.csv.gz": Figures(22_470, 170_823, 1, 4.0181, 15.20, 709),
    "twitch_de_edges.csv.gz": Figures(9_498, 153_138, 1, 7.9152, 32.25, 4_259),
    "deezer_europe_edges.csv.gz": Figures(28_281, 92_752, 1, 2.4675, 6.56, 172),
    "email_enron.txt.gz": Figures(33_696, 180_811, 1_065, 13.2655, 10.73, 1_383),
    "ego_facebook_combined.txt.gz": Figures(4_039, 88_234, 1, 2.4392, 43.69, 1_045),
}
EGOS = {  # nodes, edges, components, irregularity
    0: (324, 2_514, 5, 2.0037),
    107: (1_034, 26_749, 1, 1.8253),
    698: (40, 220, 3, 1.2719),
    1684: (775, 14_006, 4, 1.6199),
    3980: (44, 138, 4, 1.4394),
}


def figures_of(edges: EdgeList) -> Figures:
    graph = make_graph(GraphPart("file"), edges.n, 0, edges)
    assert graph.connected
    degrees = np.array([graph.degree(u) for u in range(graph.n)], dtype=float)
    assert degrees.min() == 1
    irregularity = graph.n * np.sum((degrees / degrees.sum()) ** 2)
    return Figures(
        graph.n,
        graph.edge_count,
        edges.components,
        round(float(irregularity), 4),
        round(float(degrees.mean()), 2),
        int(degrees.max()),
    )


@pytest.mark.parametrize("name", PUBLISHED)
def test_figures_of_published_graphs(data_dir: Path, name: str) -> None:
    assert figures_of(read_edge_list(data_dir / name)) == PUBLISHED[name]


@pytest.mark.parametrize("ego", EGOS)
def test_figures_of_ego_networks(data_dir: Path, tmp_path: Path, ego: int) -> None:
    with tarfile.open(data_dir / "ego_facebook.tar.gz") as archive:
        member = archive.extractfile(f"facebook/{ego}.edges")
        assert member is not None
        edges = read(tmp_path, "ego.txt", member.read())
    assert figures_of(edges)[:4] == EGOS[ego]


def test_loops_are_told_of_the_largest_component_only(tmp_path: Path) -> None:
    edges = read(tmp_path, "mess.csv", FORMS["mess.csv"])
    assert edges.labels == ("0", "1", "2", "10")
    assert read_loops(tmp_path / "mess.csv", edges).tolist() == [2]  # 99 is alone
    assert read_loops(tmp_path / "mess.csv", edges).dtype == np.int64
    plain = read(tmp_path, "comma.csv", FORMS["comma.csv"])
    assert read_loops(tmp_path / "comma.csv", plain).tolist() == []


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("name;hours\nAnna;1\nBert;2\n", ";"),
        ("1;2\n3;4\n", ";"),
        ("a;b\n1,5;2,5\n3,5;4\n", ";"),
        ("name\thours\nAnna\t1\n", "\\t"),
        ("1|2\n3|4\n", "|"),
    ],
)
def test_another_separator_is_seen_and_the_line_to_set_is_named(tmp_path: Path, text: str, mark: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_table(csv(tmp_path, text))
    assert str(caught.value).endswith(f'set [data] separator = "{mark}".')
    assert "Anna" not in str(caught.value)


def test_where_commas_make_columns_other_marks_are_part_of_them(tmp_path: Path) -> None:
    found = read_table(csv(tmp_path, "a,b\nx;y,1\nz;w,2\n", columns=("b",)))
    assert found.rows.tolist() == [[1], [2]]


def test_decimal_commas_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="decimals take a point and no comma"):
        read_table(csv(tmp_path, "a;b\n1,5;2\n", separator=";"))


def test_an_edge_list_with_a_label_beyond_all_bounds_is_refused_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("a,b\n" + "c" * 200_000 + ",d\n")
    for read in (read_edge_list, lambda path: read_loops(path, EdgeList(("a", "b"), np.array([[0, 1]]), 1))):
        with pytest.raises(UsageError, match="line 2"):
            read(path)


def test_an_edge_list_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "UNPACKED_BYTES_MAX", 1000)
    path = tmp_path / "edges.txt.gz"
    path.write_bytes(gzip.compress(b"1 2\n" * 1000))
    with pytest.raises(UsageError, match="more than"):
        read_edge_list(path)


def test_an_empty_line_in_a_single_column_may_be_a_missing_value(tmp_path: Path) -> None:
    """Of several columns an empty line is none of the table's, and so is one at the end of any file."""
    assert read_table(csv(tmp_path, "hours\n1\n3\n\n \n")).rows.tolist() == [[1], [3]]
    assert read_table(csv(tmp_path, "a,b\n1,2\n\n3,4\n")).rows.tolist() == [[1, 2], [3, 4]]
    for text, line in (("hours\n1\n\n3\n", 3), ("1\n2\n  \n\n3\n", 3)):
        with pytest.raises(UsageError, match=f"line {line}: is empty"):
            read_table(csv(tmp_path, text))
