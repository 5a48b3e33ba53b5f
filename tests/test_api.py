from __future__ import annotations

import dataclasses
import inspect
import json
import math
import tomllib
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import p2pdp
from p2pdp import api
from p2pdp.core.errors import RunFailed, UsageError, VerificationFailed
from p2pdp.sim.faults import Crash, Faults
from tests.support.small import ALL, BARE, COMPLETE, RING, contents, recorded, spec_file
from tests.support.sources import TOP


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    result = p2pdp.simulate(str(spec))
    assert result.folder is None
    assert list(contents(tmp_path)) == ["spec.toml"]


def test_a_spec_may_come_as_a_path_or_loaded(tmp_path: Path) -> None:
    path = spec_file(tmp_path)
    assert p2pdp.simulate(path) == p2pdp.simulate(str(path)) == p2pdp.simulate(p2pdp.load_spec(path))


@pytest.mark.parametrize("name", ALL)
def test_results_have_the_fields_of_the_json(name: str, tmp_path: Path) -> None:
    result = p2pdp.simulate(spec_file(tmp_path, ALL[name]), tmp_path / "run", trials=2)
    document = json.loads((tmp_path / "run" / "result.json").read_text())
    for field, value in document.items():
        if field != "trials":
            assert getattr(result, field) == value
    assert result.trials is not None
    assert [dataclasses.asdict(trial) for trial in result.trials] == document["trials"]
    assert result.folder == str(tmp_path / "run")


def test_claims_have_the_fields_of_the_json(tmp_path: Path) -> None:
    found = p2pdp.audit(recorded(tmp_path, COMPLETE), colluders=[1, 2], delta=1e-4)
    document = found.to_json()
    for name in ("run_id", "protocol", "nodes", "delta", "verified"):
        assert getattr(found, name) == document[name]
    for claim, entry in zip(found.claims, document["claims"], strict=True):
        assert {name for name in dir(claim) if not name.startswith("_")} == set(entry)
    assert found.delta == 1e-4
    assert "coalition" in [claim.observer for claim in found.claims]


def test_the_audit_of_a_function_writes_nothing(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    before = contents(tmp_path)
    p2pdp.audit(place, delta=1e-3)
    assert p2pdp.verify(place).verified == "complete"
    assert list(p2pdp.views(place))
    assert contents(tmp_path) == before


async def test_there_are_forms_for_a_running_loop(tmp_path: Path) -> None:
    path = spec_file(tmp_path, BARE)
    result = await p2pdp.simulate_async(path, tmp_path / "run", 2)
    assert result == p2pdp.simulate(path, tmp_path / "other", 2).__class__(
        **{**vars(p2pdp.simulate(path, tmp_path / "third", 2)), "folder": result.folder}
    )
    found = await p2pdp.audit_async(tmp_path / "run", [1], 1e-4)
    assert found.to_json() == p2pdp.audit(tmp_path / "run", [1], 1e-4).to_json()


@pytest.mark.parametrize("name", ["simulate", "audit"])
def test_the_forms_for_a_loop_take_the_same_arguments(name: str) -> None:
    assert inspect.signature(getattr(api, name)) == inspect.signature(getattr(api, f"{name}_async"))


def test_errors_of_the_caller_are_exceptions(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    for call in (
        lambda: p2pdp.load_spec(tmp_path / "none.toml"),
        lambda: p2pdp.simulate(tmp_path / "spec.toml", place),
        lambda: p2pdp.simulate(tmp_path / "spec.toml", trials=0),
        lambda: p2pdp.simulate(tmp_path / "spec.toml", 3),  # type: ignore[arg-type]
        lambda: p2pdp.sweep(tmp_path / "spec.toml", out=3),  # type: ignore[arg-type]
        lambda: p2pdp.run(tmp_path / "spec.toml", nodes_per_process="a"),  # type: ignore[arg-type]
        lambda: p2pdp.simulate(tmp_path / "spec.toml", data=[1, 2, 10**400]),
        lambda: p2pdp.simulate(tmp_path / "spec.toml", fast=True, faults=Faults(loss=0.1)),
        lambda: p2pdp.audit(tmp_path / "none"),
        lambda: p2pdp.audit(place, colluders=[9]),
        lambda: p2pdp.audit(place, delta=2.0),
        lambda: p2pdp.verify(tmp_path),
        lambda: list(p2pdp.views(tmp_path)),
        lambda: p2pdp.export(place, tmp_path / "none" / "file"),
        lambda: p2pdp.keygen(tmp_path / "spec.toml"),
    ):
        with pytest.raises(UsageError):
            call()
    (place / "nodes" / "0001" / "view.ledger").unlink()
    with pytest.raises(VerificationFailed, match="node 1"):
        p2pdp.audit(place)


def test_a_run_with_somebody_gone_is_written_and_judged(tmp_path: Path) -> None:
    spec = p2pdp.load_spec(spec_file(tmp_path, COMPLETE), ["run.patience_s=0.5"])
    result = p2pdp.simulate(spec, tmp_path / "run", faults=Faults(crashes=(Crash(3, at_record=9, down_s=None),)))
    assert result.missing == [3]
    assert p2pdp.verify(tmp_path / "run").verified == "incomplete"
    found = p2pdp.audit(tmp_path / "run")
    assert found.verified == "incomplete"
    assert any("user 3" in refusal.reason for refusal in found.refusals)


def test_a_ring_cannot_go_round(tmp_path: Path) -> None:
    spec = p2pdp.load_spec(spec_file(tmp_path, RING), ["run.patience_s=0.5"])
    with pytest.raises(RunFailed, match="2 is gone"):
        p2pdp.simulate(spec, tmp_path / "run", faults=Faults(crashes=(Crash(2, at_record=9, down_s=None),)))


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_is_told_up_to_the_end_of_all_trials(workers: int, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    spec = p2pdp.load_spec(spec_file(tmp_path, COMPLETE), ["walk.hops=600"])
    p2pdp.simulate(spec, trials=3, workers=workers, progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert {total for _, total in told} == {3 * 2 * 600}
    assert told[-1][0] > 2 * 2 * 600
    fast: list[tuple[int, int]] = []
    p2pdp.simulate(spec, trials=3, fast=True, workers=workers, progress=lambda done, total: fast.append((done, total)))
    assert fast in ([(0, 3), (1, 3), (2, 3)], [(0, 3), (2, 3), (3, 3)])  # as they begin, or once they are done


@pytest.mark.parametrize(
    ("part", "changed", "key"),
    [
        ("noise", {"sigma": 0.0}, "sigma"),
        ("noise", {"sigma": "a"}, "sigma"),
        ("noise", {"sigma": [1.0]}, "sigma"),
        ("noise", {"sigma": math.nan}, "sigma"),
        ("noise", {"mechanism": "gauss"}, "mechanism"),
        ("privacy", {"delta": 2.0}, "delta"),
        ("options", {"hops": 0}, "hops"),
        ("run", {"nodes": 0}, "nodes"),
        ("data", {"clip": (1.0, 0.0)}, "clip"),
        ("data", {"clip": object()}, "spec"),
    ],
)
@pytest.mark.parametrize("what", ["simulate", "plan", "run"])
def test_a_spec_that_was_changed_in_code_is_refused_as_a_file_is(
    what: str, part: str, changed: dict[str, Any], key: str, tmp_path: Path
) -> None:
    spec = p2pdp.load_spec(TOP / "deploy" / "samples" / "complete_sum.toml")
    wrong = dataclasses.replace(spec, **{part: dataclasses.replace(getattr(spec, part), **changed)})
    options: dict[str, Any] = {} if what == "plan" else {"out": tmp_path / "out"}
    with pytest.raises(UsageError, match=key):
        getattr(p2pdp, what)(wrong, **options)
    assert not (tmp_path / "out").exists()


def test_every_entry_point_takes_a_mapping_and_data_and_a_graph(tmp_path: Path) -> None:
    spec = tomllib.loads(COMPLETE)
    del spec["graph"], spec["run"]["nodes"]
    given: dict[str, Any] = {"data": [[1.0, 0.0], [0.25], [1], [0], [1]], "graph": nx.cycle_graph(5)}
    simulated = p2pdp.simulate(spec, tmp_path / "simulated", **given)
    assert simulated.truth == pytest.approx(p2pdp.simulate(spec, fast=False, **given).truth)
    assert p2pdp.plan(spec, **given).nodes == simulated.nodes == 5
    del spec["run"]["seed"]
    ran = p2pdp.run(spec, tmp_path / "ran", **given)
    for place, result in ((tmp_path / "simulated", simulated), (tmp_path / "ran", ran)):
        moved = place.rename(place.with_name(f"{place.name}-moved"))
        assert p2pdp.verify(moved).verified == "complete"
        assert p2pdp.audit(moved).run_id == result.run_id
        assert p2pdp.attack(moved, 1).observer == 1
        assert (moved / "graph.txt").read_text() == "".join(
            f'"{u}","{v}"\n' for u, v in ((0, 1), (0, 4), (1, 2), (2, 3), (3, 4))
        )
    assert p2pdp.resume(tmp_path / "ran-moved", data=given["data"]).estimate == ran.estimate


def test_given_data_are_real_data(tmp_path: Path) -> None:
    spec = p2pdp.spec(tomllib.loads(RING))
    with pytest.raises(UsageError, match=r"\[run\] seed"):
        p2pdp.run(spec, tmp_path / "run", data=[1, 0, 1, 0])
    live = p2pdp.spec(spec, **{"run.seed": None})
    with pytest.raises(UsageError, match="spawn"):
        p2pdp.run(live, tmp_path / "run", data=[1, 0, 1, 0], spawn=True)
    with pytest.raises(UsageError, match="min_nodes"):
        p2pdp.run(p2pdp.spec(live, **{"run.min_nodes": 3}), tmp_path / "run", data=[[1], [0], [1], [0]])
    assert not (tmp_path / "run").exists()
    for wrong, why in (([1, 0], "2 rows for 4 users"), ([[1]] * 3, "3 users"), ([1, math.nan, 0, 0], "row 1 column 0")):
        with pytest.raises(UsageError, match=why):
            p2pdp.plan(spec, data=wrong)
    with pytest.raises(UsageError, match=r"of user 2 row 1 column 0"):
        p2pdp.plan(spec, data=[[1], [0], [1, math.inf], [0]])
    with pytest.raises(UsageError, match="of user 2: has no rows"):
        p2pdp.plan(spec, data=[[1], [0], [], [0]])
    changed = p2pdp.spec({**tomllib.loads(RING), "data": {"kind": "own", "clip": [0, 1], "columns": ["hour"]}})
    with pytest.raises(UsageError, match=r'no column "hour"; did you mean "hours"'):
        p2pdp.plan(changed, data=pd.DataFrame({"hours": [1] * 4, "b": 1}))


@pytest.mark.parametrize("name", ["ring", "complete", "histogram"])
def test_given_rows_are_split_as_those_of_a_file_are(name: str, tmp_path: Path) -> None:
    spec = tomllib.loads(ALL[name])
    rows = [0, 1, 1, 0, 1, 2, 0, 1, 1, 1, 0] if name == "histogram" else [0.1 * place for place in range(11)]
    (tmp_path / "rows.csv").write_text("".join(f"{row}\n" for row in rows))
    spec["data"] |= {"kind": "csv", "path": str(tmp_path / "rows.csv")}
    from_file = p2pdp.simulate(spec)
    given = p2pdp.simulate(spec, data=rows)
    assert (given.truth, given.nodes) == (from_file.truth, from_file.nodes)


def test_learning_takes_a_frame(tmp_path: Path) -> None:
    columns = np.random.default_rng(1).uniform(-1, 1, (24, 3)).round(3)
    frame = pd.DataFrame(columns, columns=["a", "b", "y"])
    frame["site"] = [f"site {row % 3}" for row in range(24)]
    frame.to_csv(tmp_path / "rows.csv", index=False)
    spec: dict[str, Any] = {
        "run": {"protocol": "gossip.sgd", "nodes": 3, "seed": 1},
        "graph": {"kind": "complete"},
        "gossip": {"rounds": 2, "publish": "all"},
        "noise": {"mechanism": "gaussian", "sigma": 1.0},
        "data": {"kind": "csv", "path": str(tmp_path / "rows.csv"), "target": "y", "split_by": "site", "clip": [-1, 1]},
        "task": {"kind": "linear_regression", "clip": 1.0, "rate": 0.1, "rounds": 3},
    }
    assert p2pdp.simulate(spec, data=frame).truth == p2pdp.simulate(spec).truth
