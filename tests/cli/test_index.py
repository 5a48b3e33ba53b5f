from __future__ import annotations

import json
from pathlib import Path

import pytest

import p2pdp
from p2pdp.cli.main import main
from tests.support.across_specs import spec_of


def test_it_lists_runs_for_people_and_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    p2pdp.simulate(spec_of(), tmp_path / "run")
    assert main(["index", str(tmp_path / "run"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["total"], document["runs"][0]["state"]) == (1, "done")
    assert main(["index", str(tmp_path / "run"), "--rebuild"]) == 0
    out = capsys.readouterr().out
    assert f"{document['runs'][0]['run_id']}  done  walk.sum, 4 nodes, epsilon " in out
    assert f"({document['runs'][0]['headline']['reading']}), worst observer network " in out
    assert "1 runs" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["index"], "name a run's folder"), (["index", "absent"], "absent"), (["index", "--index", "x://y"], "--index")],
)
def test_a_wrong_command_line_is_one_line(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert (says in err, err.count("\n")) == (True, 1)
