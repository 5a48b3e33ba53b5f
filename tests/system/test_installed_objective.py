"""An objective that an installed package adds by an entry point: a task like any other, under its own name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import p2pdp
from p2pdp.core.installed import installed
from p2pdp.files.json_schema import json_schema
from p2pdp.files.model_code import is_digest, model_code
from p2pdp.files.spec import parse_spec
from tests.support.learners import RANGES, learning

TASK = 'kind = "huber"\nclip = 2.0\nrate = 0.1'
DATA = f"{RANGES}\nunit_norm = true"


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    made = tmp_path / "huber-1.0.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: huber\nVersion: 1.0\n")
    (made / "entry_points.txt").write_text("[p2pdp.objectives]\nhuber = tests.support.third_party.huber:Huber\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # for the process that measures
    installed.cache_clear()
    yield
    installed.cache_clear()


def test_it_is_planned_simulated_and_audited(tmp_path: Path) -> None:
    spec = parse_spec(learning(4, 20, task=TASK, data=DATA), None)
    assert p2pdp.plan(spec).claims[0].method == "iteration"
    result = p2pdp.simulate(spec, tmp_path / "run")
    assert result.scores is not None
    assert result.scores["loss"] > 0.0
    claims = p2pdp.audit(tmp_path / "run").claims
    assert claims[0].method == "iteration", "it promises to be convex and smooth"
    assert any("promises" in text for text in claims[0].assumptions)
    facts = json.loads((tmp_path / "run" / "roster.json").read_text())["facts"]
    assert (facts["objective"], facts["start_max"]) == ("huber", 0.5)
    assert is_digest(model_code(spec.task))
    assert "huber" in json.dumps(json_schema("spec"))


def test_a_name_that_nobody_installed_is_refused() -> None:
    with pytest.raises(p2pdp.UsageError, match='"hubr" is unknown; did you mean "huber"'):
        parse_spec(learning(4, 20, task=TASK.replace("huber", "hubr"), data=DATA), None)
