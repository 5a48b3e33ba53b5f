"""`p2pdp sweep` as people and programs see it."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from p2pdp.cli.main import main
from p2pdp.files.guide import page
from tests.support.forked import Forked, wished
from tests.support.forked import run as forked
from tests.support.launched import GUARD_S, wait_for
from tests.support.small import COMPLETE, RING, contents, spec_file
from tests.support.sources import TOP
from tests.support.standing import state_of

Captured = pytest.CaptureFixture[str]
GRID = "seeds = 2\n[grid]\nnoise.sigma = [1.0, 3.0]\n"


def _file(folder: Path, text: str = GRID, base: str = RING) -> Path:
    spec_file(folder, base)
    place = folder / "grid.toml"
    place.write_text(f'base = "spec.toml"\n{text}')
    return place


def test_a_document_and_nothing_else(tmp_path: Path, capsys: Captured) -> None:
    command = ["sweep", str(_file(tmp_path)), "--out", str(tmp_path / "out")]
    assert main([*command, "--json"]) == 0
    told = capsys.readouterr()
    document = json.loads(told.out)
    assert told.err == ""
    assert (document["runs"], document["computed"], document["failed"]) == (4, 4, 0)
    assert [row["noise.sigma"] for row in document["rows"]] == [1.0, 1.0, 3.0, 3.0]
    assert Path(document["table"]).is_file()
    assert Path(document["page"]).read_text().startswith("<!DOCTYPE html>")
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "4 runs, 0 of them computed now" in shown
    assert document["table"] in shown


def test_the_folder_is_named_after_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = _file(tmp_path, "what = 'plan'\n")
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", str(place)]) == 0
    assert (tmp_path / "p2pdp-sweep-grid" / "sweep.html").is_file()


def test_failed_runs_end_in_code_3_after_the_document(tmp_path: Path, capsys: Captured) -> None:
    sparse = COMPLETE.replace('"complete"', '"regular"\ndegree = 2')
    place = _file(tmp_path, "[grid]\ngraph.degree = [2, 3]\n", sparse)
    assert main(["sweep", str(place), "--out", str(tmp_path / "out"), "--json"]) == 3
    told = capsys.readouterr()
    assert json.loads(told.out)["failed"] == 1
    assert told.err.startswith(f"p2pdp: {place}: 1 of 2 runs failed")
    assert "again" not in told.err
    assert told.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[grid]\nnoise.sgima = [1.0]\n", "sgima"),
        ("[grid]\nnoise.sigma = [0.0]\n", "noise.sigma = 0.0"),
        ('executor = "dask"\n', "executor"),
    ],
)
def test_wrong_files_are_one_line_and_leave_nothing(text: str, words: str, tmp_path: Path, capsys: Captured) -> None:
    place = _file(tmp_path, text)
    assert main(["sweep", str(place), "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"p2pdp: {place}: ")
    assert words in told.err
    assert told.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def _begun(place: Path, out: Path, rows: int) -> Forked:
    """Start a sweep that stops itself when so many rows are there."""
    wishes = {"before": ["p2pdp.files.sweep:SweepFolder.write", rows]}
    child = Forked(
        ["sweep", str(place), "--out", str(out)],
        cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **wished(wishes),
    )  # fmt: skip
    wait_for(lambda: child.poll() is not None or state_of(child.pid)[:1] == ["T"], "the sweep has stopped itself")
    assert child.poll() is None, child.communicate()
    return child


LONG = "seeds = 5\nworkers = 2\n[grid]\nnoise.sigma = [1.0, 2.0]\n"
SLOWER = COMPLETE.replace("hops = 20", "hops = 120")


def _document(place: Path, out: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(forked("sweep", place, "--json", "--out", out).stdout)
    return document


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a sweep leaves that nobody ended."""
    folder = tmp_path_factory.mktemp("whole")
    assert _document(_file(folder, LONG, SLOWER), folder / "out")["computed"] == 10
    return contents(folder / "out")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_what_is_ended_in_the_middle_goes_on_and_ends_the_same(
    number: signal.Signals, tmp_path: Path, whole: dict[str, bytes]
) -> None:
    place = _file(tmp_path, LONG, SLOWER)
    child = _begun(place, tmp_path / "out", 3)
    child.send_signal(number)
    child.send_signal(signal.SIGCONT)
    _, told = child.communicate(timeout=GUARD_S)
    assert child.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 130)
    assert number == signal.SIGKILL or "goes on" in told
    kept = len(list((tmp_path / "out" / "rows").glob("*.json")))
    assert kept == 3
    assert not list((tmp_path / "out").glob("sweep.*"))
    assert _document(place, tmp_path / "out")["computed"] == 10 - kept
    found = contents(tmp_path / "out")
    assert {name: data for name, data in found.items() if not name.endswith(".part")} == whole


def test_the_example_of_the_guide_gives_the_table_that_it_shows(tmp_path: Path, capsys: Captured) -> None:
    text, name = page("sweep").text, "deploy/samples/sweeps/colluders.toml"
    assert text.partition("```toml\n")[2].partition("```")[0] in (TOP / name).read_text()
    assert f"p2pdp sweep {name}" in text
    assert main(["sweep", str(TOP / name), "--out", str(tmp_path / "out")]) == 0
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    shown = text.partition("and prints\n\n```\n")[2].partition("```")[0].splitlines()
    assert len(shown) == 16
    assert printed[:16] == shown
