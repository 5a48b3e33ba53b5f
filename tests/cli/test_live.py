"""The commands that start processes, each in a process of its own: children are forked from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from p2pdp.api import load_spec
from p2pdp.files.spec import demo_spec
from tests.support.forked import run as p2pdp

SPEC = """[run]
protocol = "walk.sum"
nodes = 3
seed = 1
[graph]
kind = "complete"
[walk]
order = "random"
hops = 12
[noise]
mechanism = "gaussian"
sigma = 1.0
[data]
kind = "uniform"
clip = [0.0, 1.0]
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.toml"
    path.write_text(SPEC)
    return path


def test_the_demo_ends_with_a_report_that_a_person_can_read(tmp_path: Path) -> None:
    done = p2pdp("demo", "--out", tmp_path / "demo")
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("estimate", "standard error", "local DP", "trusted curator", "protection from", "report.html"):
        assert word in done.stdout
    assert "hypothetical" not in done.stdout
    assert "seed" not in done.stdout


def test_the_demo_is_sixteen_users_whose_noise_is_exact() -> None:
    assert (demo_spec().run.nodes, demo_spec().noise.sampler, demo_spec().run.transport) == (16, "exact", "tcp")


def test_run_gives_its_result_as_one_document(spec: Path, tmp_path: Path) -> None:
    done = p2pdp("run", spec, "--out", tmp_path / "out", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    printed: dict[str, Any] = json.loads(done.stdout)
    assert printed.pop("folder") == str(tmp_path / "out")
    assert printed == json.loads((tmp_path / "out" / "result.json").read_text())
    assert (printed["seeded"], printed["seed"], printed["hops"], printed["missing"]) == (False, 1, 12, [])
    assert printed["started"] is not None
    assert p2pdp("verify", tmp_path / "out").returncode == 0
    again = p2pdp("resume", tmp_path / "out", "--json")
    assert json.loads(again.stdout)["estimate"] == printed["estimate"]


def test_two_runs_draw_different_noise(spec: Path, tmp_path: Path) -> None:
    estimates = set()
    for name in ("a", "b"):
        done = p2pdp("run", spec, "--out", tmp_path / name, "--json", "--set", "run.audit=false")
        estimates.add(json.loads(done.stdout)["estimate"])
    assert len(estimates) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("run", "nowhere.toml"), 2, "nowhere.toml"),
        (("resume", "nowhere"), 2, "nowhere"),
        (("run", "spec.toml", "--set", 'run.transport="mqtt"', "--set", "transport.port=1"), 2, "add host"),
        (("run", "spec.toml", "--set", "run.nodes=0"), 2, "nodes"),
        (("run", "spec.toml", "--out", "."), 2, "not empty"),
        (("run", "spec.toml", "--nodes-per-process", "0"), 2, "at least 1"),
        (("run", "spec.toml", "--nodes-per-process", "2", "--set", 'run.transport="memory"'), 2, "one process"),
    ],
)
def test_what_cannot_be_done_is_one_line(spec: Path, arguments: tuple[str, ...], code: int, says: str) -> None:
    done = p2pdp(*arguments, cwd=spec.parent)
    assert done.returncode == code
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_real_data_is_never_run_on_a_seed(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("0.1\n0.2\n0.3\n")
    text = SPEC.replace('kind = "uniform"', 'kind = "csv"\npath = "data.csv"')
    spec.write_text(text)
    done = p2pdp("run", spec, "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "seed" in done.stderr
    spec.write_text(text.replace("seed = 1\n", ""))
    assert load_spec(spec).run.seed is None
    assert p2pdp("run", spec, "--out", tmp_path / "out").returncode == 0


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (("--nodes-per-process", "2"), {"nodes_per_process": 2, "spawn": False}),
        (("--spawn", "--nodes-per-process", "3"), {"nodes_per_process": 3, "spawn": True}),
        (("--set", 'run.transport="memory"'), {"nodes_per_process": 1, "spawn": False}),
    ],
)
def test_however_users_get_into_processes_the_folder_is_the_same(
    spec: Path, tmp_path: Path, options: tuple[str, ...], kept: dict[str, Any]
) -> None:
    done = p2pdp("run", spec, "--out", tmp_path / "out", "--json", *options)
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    assert (printed["hops"], printed["missing"], printed["faults"]) == (12, [], {})
    facts = json.loads((tmp_path / "out" / "run.json").read_text())
    assert {name: facts[name] for name in kept} == kept
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names >= {"spec.toml", "run.json", "roster.json", "result.json", "audit.json", "curator", "nodes"}
    assert not [name for name in names if name.startswith(("tmp", "places", "brief"))]
    assert p2pdp("verify", tmp_path / "out").returncode == 0


def test_help_says_when_one_wants_which() -> None:
    said = " ".join(p2pdp("run", "--help").stdout.split())
    assert "share a process" in said
    assert "--spawn" in said
    assert "few MiB each" in said


def test_whoever_launches_a_run_with_data_of_its_own_learns_how_much_of_it_is_clipped(
    spec: Path, tmp_path: Path
) -> None:
    (tmp_path / "own.csv").write_text("hours\n0.5\n7\n0.25\n-1\n")
    csv = SPEC.replace("seed = 1\n", "").replace('"uniform"', '"csv"\npath = "own.csv"\ncolumns = ["hours"]')
    spec.write_text(csv)
    done = p2pdp("run", spec, "--out", tmp_path / "out", "--json", "--set", "run.audit=false")
    assert done.returncode == 0
    assert done.stderr.startswith("2 of the 4 numbers in column hours")
    assert "clipped" not in (tmp_path / "out" / "result.json").read_text()
