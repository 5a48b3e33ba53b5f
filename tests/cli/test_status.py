from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import p2pdp
from p2pdp.cli.main import main
from tests.support import small

if TYPE_CHECKING:
    import pytest


def test_people_and_programs_see_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(tmp_path / "run")
    p2pdp.simulate(small.spec_file(tmp_path), place)
    assert main(["status", place]) == 0
    shown = capsys.readouterr().out
    assert main(["status", place, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["state"] == "done"
    for value in (document["state"], document["run_id"], document["protocol"], document["next"]):
        assert value in shown


def test_what_is_no_run_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", str(tmp_path)]) == 2
    assert main(["status", "http://127.0.0.1:1"]) == 6
    assert capsys.readouterr().err.count("\n") == 2
