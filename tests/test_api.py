from __future__ import annotations

import dataclasses
import inspect
import json
import math
from pathlib import Path
from typing import Any

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


def test_progress_is_told_up_to_the_end_of_all_trials(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    spec = p2pdp.load_spec(spec_file(tmp_path, COMPLETE), ["walk.hops=600"])
    p2pdp.simulate(spec, trials=3, progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert {total for _, total in told} == {3 * 2 * 600}
    assert told[-1][0] > 2 * 2 * 600
    fast: list[tuple[int, int]] = []
    p2pdp.simulate(spec, trials=3, fast=True, progress=lambda done, total: fast.append((done, total)))
    assert fast == [(0, 3), (1, 3), (2, 3)]


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
