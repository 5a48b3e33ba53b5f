"""`p2pdp reproduce` as people and programs see it."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from p2pdp.cli.main import main
from p2pdp.experiments.figures import experiments
from tests.support.forked import Forked, wished
from tests.support.forked import run as forked
from tests.support.launched import GUARD_S, wait_for
from tests.support.sources import TOP
from tests.support.standing import state_of

if TYPE_CHECKING:
    from pathlib import Path


def test_the_list_names_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["figures"]
    assert [one["name"] for one in listed] == list(experiments())
    assert main(["reproduce", "--list"]) == 0
    assert "001-fig3" in capsys.readouterr().out


def test_one_figure_as_a_document_and_as_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["reproduce", "000-fig2a", "--quick", "--out", str(tmp_path / "out"), "--jobs", "1"]
    assert main([*command, "--json"]) == 0
    told = capsys.readouterr()
    document = json.loads(told.out)
    assert told.err == ""
    (made,) = document["made"]
    assert (made["name"], made["quick"], made["stand_in"]) == ("000-fig2a", True, False)
    assert all((tmp_path / "out" / name).is_file() for name in made["files"])
    assert main(command) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "visits counted for one user, n = 1,000: 156; the paper: 1655" in shown
    counts = [sum(line["verdict"] == kind for line in made["lines"]) for kind in ("agrees", "differs")]
    assert f"agrees {counts[0]}, differs {counts[1]}, cannot be known" in shown


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "say what, or all"),
        (["001-fig33"], "did you mean 001-fig3?"),
        (["nonsense"], "--list names them"),
        (["001-fig3"], "001-fig3: needs cal_housing.csv"),
        (["001-fig3", "--data", "nowhere"], "--data nowhere: "),
        (["000-fig2a", "--jobs", "0"], "--jobs"),
        (["000-fig2a", "--width", "triple"], "takes single or double"),
    ],
)
def test_wrong_commands_are_one_line(
    arguments: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert why in told.err
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_leaves_what_was_done_and_the_same_command_goes_on(tmp_path: Path) -> None:
    """Interrupted as soon as one answer is kept; that one is not worked out again."""
    out = tmp_path / "out"
    words = ["reproduce", "000-fig2d", "--quick", "--jobs", "1", "--out", str(out)]
    wishes = {"before": ["p2pdp.files.reproduction:write_piece", 1]}
    running = Forked(words, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **wished(wishes))
    pieces = out / "pieces" / "000-fig2d-quick"
    wait_for(lambda: running.poll() is not None or state_of(running.pid)[:1] == ["T"], "it has stopped itself")
    running.send_signal(signal.SIGINT)
    running.send_signal(signal.SIGCONT)
    _, complaint = running.communicate(timeout=GUARD_S)
    assert (running.returncode, complaint) == (130, "p2pdp: interrupted\n")
    kept = {place: place.stat().st_mtime_ns for place in pieces.glob("*.json")}
    assert len(kept) == 1
    done = forked(*words)
    assert done.returncode == 0, done.stderr
    assert {place: place.stat().st_mtime_ns for place in kept} == kept
    assert len(list(pieces.glob("*.json"))) == 8
