"""The plan as a document, from every sample spec, with nothing started and nothing written."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import p2pdp
from p2pdp.runs.plan import plan_spec, planned_of
from tests.support import readme, small
from tests.support.sources import TOP

SAMPLES = sorted((TOP / "deploy" / "samples").glob("*.toml"))
DEMO = TOP / "p2pdp" / "files" / "demo.toml"
CONTAINERS = TOP / "deploy" / "containers" / "spec.toml"
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


# Samples that cannot do better than local DP, after a run or beforehand; their comments say why.
AS_LOCAL_BEFORE = {
    "complete_histogram",
    "gossip_average",
    "gossip_randomized",
    "gossip_sgd",
    "graph_sum",
    "shuffle_single",
}
# … and of the route that a run took.
AS_LOCAL_AFTER = {"gossip_average", "gossip_randomized", "gossip_sgd", "shuffle_single"}
EPSILON_MOST = 3.0


def errors(document: dict[str, Any]) -> tuple[float, float]:
    """The standard error, and that under local DP; the largest of several numbers."""
    both = [document["standard_error"], document["baselines"]["local"]["standard_error"]]
    own, local = (max(one) if isinstance(one, list) else one for one in both)
    return own, local


def says_why(sample: Path) -> bool:
    comment = sample.read_text().partition("[run]")[0]
    return "local DP" in comment


@pytest.mark.parametrize("sample", [*SAMPLES, DEMO, CONTAINERS], ids=lambda path: path.stem)
def test_samples_protect_users_and_are_better_than_local_noise(sample: Path) -> None:
    document = p2pdp.plan(sample).to_json()
    assert document["headline"]["conditioning"] == "a-priori"
    assert document["headline"]["epsilon"] <= EPSILON_MOST
    if sample.stem in AS_LOCAL_BEFORE:
        assert says_why(sample)
    else:
        own, local = errors(document)
        assert own < local


@pytest.mark.parametrize("sample", [*SAMPLES, DEMO, CONTAINERS], ids=lambda path: path.stem)
def test_an_audited_run_of_a_sample_keeps_what_the_plan_promised(sample: Path, tmp_path: Path) -> None:
    document = p2pdp.simulate(sample, tmp_path / "run").to_json()
    assert document["headline"]["epsilon"] <= EPSILON_MOST
    if sample in SAMPLES:
        assert readme.rows()[sample.stem] == readme.expected(document)
    if sample.stem not in AS_LOCAL_AFTER:
        own, local = errors(document)
        assert own < local


def test_the_readme_has_a_row_for_each_sample() -> None:
    assert sorted(readme.rows()) == sorted(sample.stem for sample in SAMPLES)


def test_the_sample_across_machines_protects_its_users(tmp_path: Path) -> None:
    """It is planned where the users' rows are not; as many stand in for them."""
    spec = TOP / "deploy" / "samples" / "nodes" / "hours.toml"
    (tmp_path / "hours.toml").write_text(spec.read_text())
    (tmp_path / "own.csv").write_text("hours\n8.0\n7.5\n9.0\n")
    for users in ("run.nodes=3", "run.nodes=2"):
        document = p2pdp.plan(p2pdp.load_spec(tmp_path / "hours.toml", [users])).to_json()
        assert document["headline"]["epsilon"] <= EPSILON_MOST
        assert document["worst"]["epsilon"] <= EPSILON_MOST


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
