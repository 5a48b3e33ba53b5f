from __future__ import annotations

import csv
import io
import math
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.files.making import make_spec
from p2pdp.files.spec import load_spec, parse_spec
from p2pdp.files.sweep import (
    BASE_FILE,
    DESCRIPTION_FILE,
    SweepFolder,
    cell,
    content_digests,
    description,
    kind_of,
    points,
    read_sweep,
)
from tests.support.missing import missing
from tests.support.small import COMPLETE, RING, spec_file


def _file(folder: Path, text: str, base: str = RING) -> Path:
    spec_file(folder, base)
    place = folder / "grid.toml"
    place.write_text(f'base = "spec.toml"\n{text}')
    return place


def test_a_description_is_read_with_its_base_beside_it(tmp_path: Path) -> None:
    text = 'seeds = [3, 7]\nwhat = "fast"\nworkers = 2\n[grid]\nnoise.sigma = [1.0, 2.0]\n"walk.laps" = [1, 2, 3]\n'
    sweep = read_sweep(_file(tmp_path, text))
    assert dict(sweep.grid) == {"noise.sigma": [1.0, 2.0], "walk.laps": [1, 2, 3]}
    assert (sweep.seeds, sweep.what, sweep.workers, sweep.executor) == ((3, 7), "fast", 2, "processes")
    found = list(points(sweep))
    assert [point["walk.laps"] for point, _ in found] == [1, 2, 3, 1, 2, 3]
    assert [spec.noise.sigma for _, spec in found] == [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]
    assert sweep.seeds_of(found[0][1]) == (3, 7)


def test_a_number_of_seeds_begins_with_that_of_the_base(tmp_path: Path) -> None:
    sweep = read_sweep(_file(tmp_path, "seeds = 3\n"))
    ((point, spec),) = points(sweep)
    assert point == {}
    assert list(sweep.seeds_of(spec)) == [5, 6, 7]


def test_a_mapping_may_hold_a_spec_as_its_base(tmp_path: Path) -> None:
    spec = load_spec(spec_file(tmp_path))
    sweep = read_sweep({"base": spec, "grid": {"noise": {"sigma": (4.0,)}}})
    assert [found.noise.sigma for _, found in points(sweep)] == [4.0]
    assert read_sweep({"base": str(tmp_path / "spec.toml")}).base == RING


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sedes = 3\n", ["sedes", "seeds"]),
        ("seeds = 0\n", ["seeds", "at least 1"]),
        ("seeds = []\n", ["seeds"]),
        ("seeds = [1, 1]\n", ["seeds", "twice"]),
        ("seeds = [-1]\n", ["seeds", "entry 0"]),
        ('what = "simulated"\n', ["what", "simulate"]),
        ('executor = "threads"\n', ["executor", "dask://HOST:PORT"]),
        ('executor = "dask://here"\n', ["executor", "dask://HOST:PORT"]),
        ('executor = "dask://here:8786"\nworkers = 2\n', ["workers"]),
        ("workers = 0\n", ["workers"]),
        ("grid = 3\n", ["[grid]"]),
        ("[grid]\nsigma = [1.0]\n", ["[grid] sigma", "section.key"]),
        ("[grid]\nnoise.sigma = 1.0\n", ["[grid] noise.sigma", "list"]),
        ("[grid]\nnoise.sigma = []\n", ["[grid] noise.sigma", "list"]),
        ("[grid]\nnoise.sigma = [1.0, 1.0]\n", ["[grid] noise.sigma", "twice"]),
        ('[grid]\nnoise.sigma = [1.0]\n"noise.sigma" = [2.0]\n', ["[grid] noise.sigma", "twice"]),
        ("[grid]\nrun.seed = [1, 2]\n", ["[grid] run.seed", "seeds"]),
        (f"seeds = 1000\n[grid]\nnoise.sigma = {[float(n + 1) for n in range(1001)]}\n", ["[grid]", "1,000,000"]),
        ("[grid\n", ["TOML"]),
        ("[grid]\nnoise.sigma = [1.0, -2.0]\n", ["noise.sigma = -2.0", "[noise] sigma", "above 0"]),
        ("[grid]\nnoise.sgima = [1.0]\n", ["[noise] sgima", "sigma"]),
        ("[grid]\nnosie.sigma = [1.0]\n", ["[nosie]", "noise"]),
        ("[grid]\nshuffle.rounds = [3]\n", ["[shuffle]", "no meaning"]),
        ('[grid]\nrun.nodes = [4, "many"]\n', ["[run] nodes", "whole number"]),
    ],
)
def test_what_is_wrong_is_named_with_its_file_and_key(text: str, words: list[str], tmp_path: Path) -> None:
    place = _file(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        list(points(read_sweep(place)))
    assert [word for word in [str(place), *words] if word not in str(caught.value)] == []


def test_a_wrong_base_is_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"base: .*cannot be read"):
        read_sweep({"base": tmp_path / "none.toml"})
    with pytest.raises(UsageError, match="base: must name"):
        read_sweep({})
    place = _file(tmp_path, "[grid]\nnoise.sigma = [1.0]\n", RING.replace("nodes = 4", "nodes = 0"))
    with pytest.raises(UsageError, match=r"base: \[run\] nodes"):
        list(points(read_sweep(place)))
    with pytest.raises(UsageError, match="cannot be read"):
        read_sweep(tmp_path / "none.toml")


def test_a_base_may_lack_what_the_grid_gives(tmp_path: Path) -> None:
    base = RING.replace("sigma = 2.0\n", "")
    found = list(points(read_sweep(_file(tmp_path, "[grid]\nnoise.sigma = [1.0]\n", base))))
    assert [spec.noise.sigma for _, spec in found] == [1.0]


def test_the_last_of_many_seeds_must_be_a_seed(tmp_path: Path) -> None:
    sweep = read_sweep(_file(tmp_path, "seeds = 2\n", RING.replace("seed = 5", f"seed = {2**128 - 1}")))
    with pytest.raises(UsageError, match=r"seeds: .*2\*\*128"):
        sweep.seeds_of(next(points(sweep))[1])


def test_contents_of_files_are_told_apart(tmp_path: Path) -> None:
    data = '[data]\nkind = "csv"\npath = "own.csv"\nclip = [0.0, 1.0]\n'
    head, _, tail = RING.partition("[data]")
    text = head + data + tail[tail.index("[privacy]") :]
    (tmp_path / "own.csv").write_text("a\n0.5\n0.25\n0.5\n1.0\n")
    spec = load_spec(spec_file(tmp_path, text))
    before = content_digests(spec)
    (tmp_path / "own.csv").write_text("a\n0.5\n0.25\n0.5\n0.0\n")
    after = content_digests(spec)
    assert before[0] != after[0]
    assert before[1] == after[1] == ""
    (tmp_path / "own.csv").unlink()
    with pytest.raises(UsageError, match=r"own\.csv: cannot be read"):
        content_digests(spec)


def test_a_row_comes_back_and_a_damaged_one_does_not(tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path / "new" / "out")
    folder.write("d1", {"error": 0.1 + 0.2})
    assert folder.read("d1") == {"error": 0.1 + 0.2}
    assert folder.read("d2") is None
    place = tmp_path / "new" / "out" / "rows" / "d1.json"
    assert place.stat().st_mode & 0o777 == 0o600
    for text in ("", '{"digest": "d1", "ro', "[]", '{"digest": "d2", "row": {}}', '{"digest": "d1", "row": 3}'):
        place.write_text(text)
        assert folder.read("d1") is None
    with pytest.raises(UsageError, match="is not a folder"):
        SweepFolder(place)


ROWS: list[dict[str, Any]] = [
    {"a.b": 1, "error": 0.1, "epsilon": math.inf, "estimate": [0.5, 1.5], "problem": None},
    {"a.b": "auto", "error": None, "epsilon": 2.0, "estimate": None, "problem": 'no, "never"\n'},
]
KINDS = {"a.b": str, "error": float, "epsilon": float, "estimate": float, "problem": str}


def test_without_pyarrow_the_table_is_a_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("p2pdp.files.sweep.find_spec", lambda name: None)
    folder = SweepFolder(tmp_path)
    (tmp_path / "sweep.parquet").write_text("of an earlier call")
    place = folder.write_table(KINDS, ROWS)
    assert place == tmp_path / "sweep.csv"
    assert not (tmp_path / "sweep.parquet").exists()
    first, second = csv.DictReader(io.StringIO(place.read_text(), newline=""))
    assert first == {"a.b": "1", "error": "0.1", "epsilon": "inf", "estimate": "[0.5, 1.5]", "problem": ""}
    assert second["problem"] == 'no, "never"\n'
    assert place.stat().st_mode & 0o777 == 0o600
    assert folder.write_page("page").read_text() == "page"


def test_with_pyarrow_the_table_is_parquet(tmp_path: Path) -> None:
    if find_spec("pyarrow") is None:
        missing("install pyarrow, with which tables of sweeps are written as Parquet")
    place = SweepFolder(tmp_path).write_table(KINDS, ROWS)
    assert place == tmp_path / "sweep.parquet"
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(place)
    assert table.column_names == list(KINDS)
    assert table.to_pylist()[0] == ROWS[0] | {"a.b": "1", "estimate": "[0.5, 1.5]"}
    assert table.to_pylist()[1] == ROWS[1]
    assert [str(kind) for kind in table.schema.types] == ["string", "double", "double", "string", "string"]
    again = SweepFolder(tmp_path / "again").write_table(KINDS, ROWS)
    assert again.read_bytes() == place.read_bytes()


def test_columns_have_the_type_that_their_values_share() -> None:
    assert kind_of([1, None, 2]) is int
    assert kind_of([1, 0.5]) is float
    assert kind_of([True, False]) is bool
    assert kind_of([2**63]) is kind_of([True, 1]) is kind_of([1, "auto"]) is kind_of([[1.0]]) is str
    assert kind_of([None]) is None


def test_cells_read_back_as_they_were() -> None:
    written = [cell(value) for value in (0.1 + 0.2, 3, True, None, "x", [1, 2], {"low": [0.5]}, math.inf)]
    assert written == ["0.30000000000000004", "3", "true", "", "x", "[1, 2]", '{"low": [0.5]}', "inf"]
    assert float(cell(sys.float_info.min)) == sys.float_info.min


def test_a_base_may_be_a_mapping_but_not_hold_what_came_from_python(tmp_path: Path) -> None:
    sections: dict[str, Any] = {
        "run": {"protocol": "walk.sum", "nodes": 4},
        "graph": {"kind": "ring"},
        "walk": {"order": "ring", "laps": 1},
        "noise": {"mechanism": "gaussian", "sigma": 2.0},
        "data": {"kind": "uniform", "clip": [0, 1]},
    }
    described = read_sweep({"base": sections, "grid": {"noise.sigma": [1.0, 2.0]}})
    assert [spec.noise.sigma for _, spec in points(described)] == [1.0, 2.0]
    with pytest.raises(UsageError, match=r"\[noise\] sigm"):
        read_sweep({"base": {**sections, "noise": {"sigm": 1}}})
    with pytest.raises(UsageError, match="workers"):
        read_sweep({"base": make_spec(sections, None, [1, 0, 1, 0])})


def test_a_description_gives_the_same_points_wherever_it_lies(tmp_path: Path) -> None:
    base = spec_file(tmp_path, f"# somebody's remark\n{COMPLETE}")
    first = read_sweep(
        {"base": base, "seeds": [3, 4], "what": "plan", "grid": {"noise.sigma": [1.0, 2], "graph.public": [True]}}
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name, content in description(first).items():
        (elsewhere / name).write_text(content)
        assert "remark" not in content
    second = read_sweep(elsewhere / DESCRIPTION_FILE)
    assert (second.seeds, second.what, second.grid) == (first.seeds, first.what, first.grid)
    assert [spec for _, spec in points(second)] == [spec for _, spec in points(first)]


def test_files_of_a_description_keep_their_place_or_get_plain_names(tmp_path: Path) -> None:
    (tmp_path / "of-ward-7.csv").write_text("1\n2\n3\n4\n5\n6\n")
    text = COMPLETE.replace('kind = "uniform"', 'kind = "csv"\npath = "of-ward-7.csv"')
    text = text.replace("nodes = 5", "expires = 2999-01-01T00:00:00Z\nnodes = 5")
    described = read_sweep({"base": spec_file(tmp_path, text)})
    kept, plain = (description(described, folder)[BASE_FILE] for folder in (None, "inputs/"))
    assert f'path = "{tmp_path / "of-ward-7.csv"}"' in kept
    assert 'path = "inputs/data.csv"' in plain
    assert "ward" not in plain
    assert parse_spec(kept, tmp_path / "nowhere").run.expires == "2999-01-01T00:00:00+00:00"
