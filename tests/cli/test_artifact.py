from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from p2pdp.cli.main import main
from p2pdp.files.artifact import digest_of
from tests.support.artifacts import live
from tests.support.small import recorded

Captured = pytest.CaptureFixture[str]


def test_a_run_is_packed_and_repeated(tmp_path: Path, capsys: Captured) -> None:
    place, out = recorded(tmp_path), tmp_path / "out.zip"
    assert main(["artifact", str(place), "--out", str(out), "--json"]) == 0
    told = capsys.readouterr()
    document = json.loads(told.out)
    assert (document["place"], document["kind"], told.err) == (str(out), "simulated", "")
    assert main(["artifact", str(out), "--repeat", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["digest"], again["files"]) == (document["digest"], document["files"])
    assert main(["artifact", str(out), "--repeat"]) == 0
    assert document["digest"] in capsys.readouterr().out


def test_the_folder_is_named_after_the_run_s(tmp_path: Path, capsys: Captured) -> None:
    place = recorded(tmp_path)
    assert main(["artifact", str(place)]) == 0
    sums = (tmp_path / "run-artifact" / "SHA256SUMS").read_bytes()
    assert digest_of(sums) in capsys.readouterr().out
    assert main(["artifact", str(place)]) == 2
    assert capsys.readouterr().err.startswith("p2pdp: --out ")


def test_the_script_inside_repeats_it(tmp_path: Path) -> None:
    assert main(["artifact", str(recorded(tmp_path)), "--out", str(tmp_path / "out")]) == 0
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "p2pdp").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m p2pdp "$@"\n')
    (tools / "p2pdp").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    command = ["sh", str(tmp_path / "out" / "REPEAT.sh")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "are equal" in done.stdout
    (tmp_path / "out" / "spec.toml").write_text("")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 4
    assert "spec.toml" in done.stderr


def test_people_are_told_who_may_read_it(tmp_path: Path, capsys: Captured) -> None:
    place = live(tmp_path)
    assert main(["artifact", str(place), "--out", str(tmp_path / "public")]) == 0
    assert "--auditor" in capsys.readouterr().out
    assert main(["artifact", str(place), "--out", str(tmp_path / "auditor"), "--auditor"]) == 0
    assert "Do not publish" in capsys.readouterr().out


@pytest.mark.parametrize(
    "more", [["--repeat", "--auditor"], ["--repeat", "--out", "x"], ["--repeat", "--public-data"], ["--key", "k"]]
)
def test_options_that_do_not_go_together_are_one_line(more: list[str], tmp_path: Path, capsys: Captured) -> None:
    assert main(["artifact", str(tmp_path), *more]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
