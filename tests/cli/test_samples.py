from __future__ import annotations

import json
from pathlib import Path

import pytest

from p2pdp.cli.main import app
from p2pdp.files.json_schema import json_schema
from p2pdp.files.samples import samples
from p2pdp.files.spec import load_spec


def ran(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert app(list(words), standalone_mode=False) in (None, 0)
    return capsys.readouterr().out


def test_samples_and_init_without_a_name_list_all(capsys: pytest.CaptureFixture[str]) -> None:
    listed = ran(capsys, "samples")
    assert all(one.name in listed and one.document["run"]["protocol"] in listed for one in samples())
    assert ran(capsys, "init") == listed
    told = json.loads(ran(capsys, "samples", "--json"))["samples"]
    assert [one["name"] for one in told] == [one.name for one in samples()]
    assert all(Path(one["file"]).is_file() for one in told)


def test_init_writes_a_spec_and_says_what_is_next(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "p2pdp plan ring_sum.toml" in ran(capsys, "init", "ring_sum")
    assert load_spec("ring_sum.toml").run.nodes == 12
    told = json.loads(ran(capsys, "init", "vector_sum", "--out", "mine.toml", "--json"))
    assert told == {"sample": "vector_sum", "files": ["mine.toml", "vector_sum.csv"]}
    assert "p2pdp node node.toml" in ran(capsys, "init", "node")


@pytest.mark.parametrize("of", ["spec", "node"])
def test_schema_prints_the_schema(capsys: pytest.CaptureFixture[str], of: str) -> None:
    assert json.loads(ran(capsys, "schema", "--of", of)) == json.loads(json.dumps(json_schema(of)))
