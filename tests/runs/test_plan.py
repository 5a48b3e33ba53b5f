"""The plan as a document, from every sample spec, with nothing started and nothing written."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import p2pdp
from p2pdp.runs.plan import plan_spec, planned_of
from tests.laws.sources import TOP
from tests.runs import small

SAMPLES = sorted((TOP / "deploy" / "samples").glob("*.toml"))
PROMISED = ["protocol", "nodes", "claims", "refusals", "standard_error", "messages", "bytes", "seconds"]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_every_sample_has_a_plan(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = p2pdp.load_spec(sample)
    document = json.loads(json.dumps(p2pdp.plan(spec).to_json(), allow_nan=False))
    assert set(PROMISED) <= set(document)
    assert (document["protocol"], document["nodes"]) == (spec.run.protocol, spec.run.nodes)
    assert document["claims"]
    assert "target" not in document
    assert document == p2pdp.plan(sample).to_json()
    assert list(tmp_path.iterdir()) == []


def test_fields_are_those_of_the_document() -> None:
    plan = plan_spec(p2pdp.load_spec(SAMPLES[0]), 5.0)
    document = plan.to_json()
    assert set(document) == set(vars(plan))
    assert document["target"]["epsilon"] == 5.0
    assert document["target"]["reached"] <= 5.0


def test_baselines_are_at_the_first_bound() -> None:
    plan = p2pdp.plan(TOP / "deploy" / "samples" / "ring_sum.toml")
    assert plan.claims[0].observer == "node"
    local, central = (plan.baselines[name]["standard_error"] for name in ("local", "central"))
    assert isinstance(local, float)
    assert isinstance(central, float)
    assert isinstance(plan.standard_error, float)
    assert central < plan.standard_error < local


def test_users_with_several_rows_have_no_hidden_path(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    data = 'kind = "csv"\npath = "rows.csv"'
    text = small.COMPLETE.replace("seed = 5\n", "").replace('kind = "uniform"', data)
    for count, one_value in ((5, True), (10, False)):
        rows.write_text("0.5\n" * count)
        spec = p2pdp.load_spec(small.spec_file(tmp_path, text))
        assert planned_of(spec).one_value == one_value
        methods = {(claim.observer, claim.method) for claim in plan_spec(spec, None).claims}
        assert (("node", "hidden-path") in methods) == one_value


def test_edge_lists_are_read(tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_text("a b\nb c\nc d\nd a\n")
    text = small.SPARSE.replace('"regular"\ndegree = 3', '"file"\npath = "edges.txt"').replace("nodes = 6\n", "")
    assert plan_spec(p2pdp.load_spec(small.spec_file(tmp_path, text)), None).nodes == 4


def test_there_is_a_form_for_notebooks() -> None:
    spec = p2pdp.load_spec(SAMPLES[0])
    assert asyncio.run(p2pdp.plan_async(spec)).to_json() == p2pdp.plan(spec).to_json()


def test_a_rate_that_may_diverge_is_warned_of() -> None:
    sample = TOP / "deploy" / "samples" / "walk_sgd.toml"
    assert plan_spec(p2pdp.load_spec(sample), None).warnings == []
    (warning,) = plan_spec(p2pdp.load_spec(sample, ["task.rate=4.0"]), None).to_json()["warnings"]
    assert warning.startswith("[task] rate: 4 is above 2/smoothness")
