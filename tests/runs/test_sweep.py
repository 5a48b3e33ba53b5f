from __future__ import annotations

import json
import math
import os
import sys
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import p2pdp
from p2pdp.core.errors import NotReady, UsageError
from p2pdp.runs import sweep as sweeps
from p2pdp.runs.sweep import row_of, sweep_runs
from tests.support.missing import missing
from tests.support.small import BARE, COMPLETE, RING, contents, spec_file
from tests.support.sources import TOP


class Here(Executor):
    """An executor of the caller's that counts what it is asked for and does it at once."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls += args
        future: Future[Any] = Future()
        future.set_result(fn(*args))
        return future


def _described(folder: Path, base: str = RING, **more: Any) -> dict[str, Any]:
    return {"base": spec_file(folder, base), "seeds": 2, "grid": {"noise.sigma": [1.0, 3.0]}} | more


def test_each_run_is_a_row_with_what_simulate_and_audit_say(tmp_path: Path) -> None:
    found = sweep_runs(_described(tmp_path), None, Here())
    assert [(row["noise.sigma"], row["seed"]) for row in found.rows] == [(1.0, 5), (1.0, 6), (3.0, 5), (3.0, 6)]
    for row in found.rows:
        spec = p2pdp.load_spec(tmp_path / "spec.toml", [f"noise.sigma={row['noise.sigma']}", f"run.seed={row['seed']}"])
        result = p2pdp.simulate(spec, tmp_path / f"{row['digest']}")
        assert result.headline is not None
        assert result.worst is not None
        assert row["error"] == abs(float(result.error))  # type: ignore[arg-type]
        for name in ("estimate", "truth", "standard_error", "messages", "seconds"):
            assert row[name] == getattr(result, name)
        for name in ("epsilon", "delta", "observer", "method"):
            assert row[name] == result.headline[name]
        assert row["worst_epsilon"] == float(result.worst["epsilon"])
        assert (row["code"], row["problem"], row["excluded"]) == (0, None, 0)
        assert row["version"] == p2pdp.__version__
    assert found.rows[0]["worst_epsilon"] == math.inf
    assert found.failed == []


def test_plans_and_draws_are_rows_too(tmp_path: Path) -> None:
    planned = sweep_runs(_described(tmp_path, what="plan"), None, Here()).rows[2]
    plan = p2pdp.plan(p2pdp.load_spec(tmp_path / "spec.toml", ["noise.sigma=3.0"]))
    assert planned["standard_error"] == plan.standard_error
    assert planned["epsilon"] == plan.headline["epsilon"]
    assert planned["messages"] == plan.messages
    assert planned["error"] is planned["estimate"] is None
    drawn = sweep_runs(_described(tmp_path, what="fast"), None, Here()).rows[3]
    spec = p2pdp.load_spec(tmp_path / "spec.toml", ["noise.sigma=3.0", "run.seed=6"])
    assert drawn["estimate"] == p2pdp.simulate(spec, fast=True).estimate
    assert drawn["epsilon"] is None


def test_errors_of_vectors_are_root_mean_squares(tmp_path: Path) -> None:
    (row,) = sweep_runs({"base": TOP / "deploy" / "samples" / "ring_histogram.toml"}, None, Here()).rows
    size = math.sqrt(sum((a - b) ** 2 for a, b in zip(row["estimate"], row["truth"], strict=True)) / len(row["truth"]))
    assert row["error"] == pytest.approx(size)
    assert len(row["estimate"]) > 1


def test_a_second_call_computes_only_what_is_missing(tmp_path: Path) -> None:
    described, out = _described(tmp_path), tmp_path / "out"
    first = Here()
    found = sweep_runs(described, out, first)
    assert (len(first.calls), found.computed) == (4, 4)
    before = contents(out)
    second = Here()
    assert sweep_runs(described, out, second).rows == found.rows
    assert second.calls == []
    assert contents(out) == before
    lost = min((out / "rows").iterdir())
    lost.unlink()
    (out / "rows" / f"{found.rows[0]['digest']}.json").write_text('{"digest"')
    third = Here()
    assert (
        sweep_runs(described, out, third).computed
        == len(third.calls)
        == (1 if lost.stem == found.rows[0]["digest"] else 2)
    )
    assert contents(out) == before


def test_a_changed_spec_recomputes_only_what_it_changes(tmp_path: Path) -> None:
    out = tmp_path / "out"
    sweep_runs(_described(tmp_path), out, Here())
    wider = Here()
    found = sweep_runs(_described(tmp_path, seeds=[5, 9], grid={"noise.sigma": [3.0, 1.0, 2.0]}), out, wider)
    assert [(row["noise.sigma"], row["seed"]) for row in found.rows][:2] == [(3.0, 5), (3.0, 9)]
    assert len(wider.calls) == 4  # seed 9 of the old values, and both of the new one
    other = Here()
    sweep_runs(_described(tmp_path, RING.replace("laps = 2", "laps = 3")), out, other)
    assert len(other.calls) == 4
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    again = Here()
    sweep_runs(_described(moved), out, again)
    assert again.calls == []
    plans = Here()
    sweep_runs(_described(tmp_path, what="plan"), out, plans)
    assert len(plans.calls) == 4


def test_another_version_computes_everything_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep_runs(_described(tmp_path), tmp_path / "out", Here())
    monkeypatch.setattr("p2pdp.runs.sweep.VERSION", "99")
    again = Here()
    rows = sweep_runs(_described(tmp_path), tmp_path / "out", again).rows
    assert len(again.calls) == 4
    assert {row["version"] for row in rows} == {"99"}


def test_equal_points_are_computed_once(tmp_path: Path) -> None:
    here = Here()
    found = sweep_runs(_described(tmp_path, grid={"noise.sigma": [1, 1.0]}), None, here)
    assert (len(found.rows), len(here.calls)) == (4, 2)


def test_a_run_that_fails_is_a_row_with_its_error(tmp_path: Path) -> None:
    sparse = COMPLETE.replace('"complete"', '"regular"\ndegree = 2')
    described = _described(tmp_path, sparse, grid={"graph.degree": [2, 3]})  # five users of degree 3 there are none
    found = sweep_runs(described, tmp_path / "out", Here())
    assert [row["code"] for row in found.rows] == [0, 0, 3, 3]
    assert found.failed == found.rows[2:]
    assert "degree" in found.rows[2]["problem"]
    assert found.rows[2]["error"] is None
    again = Here()
    assert sweep_runs(described, tmp_path / "out", again).rows == found.rows
    assert again.calls == []


def test_lost_runs_are_rows_that_are_tried_again(tmp_path: Path) -> None:
    class Lossy(Here):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future = super().submit(fn, *args)
            if len(self.calls) == 2:
                future = Future()
                future.set_exception(NotReady("its process was ended by signal 9"))
            return future

    found = sweep_runs(_described(tmp_path), tmp_path / "out", Lossy())
    assert [row["code"] for row in found.rows] == [0, 6, 0, 0]
    assert "signal 9" in found.rows[1]["problem"]
    again = Here()
    assert sweep_runs(_described(tmp_path), tmp_path / "out", again).failed == []
    assert len(again.calls) == 1


def test_unforeseen_errors_tell_a_place_and_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(spec: Any, *, fast: bool) -> Any:
        raise ValueError(str(1 / 8))

    monkeypatch.setattr(sweeps, "simulate_once", broken)
    row = sweep_runs(_described(tmp_path), tmp_path / "out", Here()).rows[0]
    assert row["code"] == 1
    assert "ValueError" in row["problem"]
    assert "0.125" not in row["problem"]
    assert list((tmp_path / "out" / "rows").iterdir()) == []


def test_a_worker_of_another_version_is_refused(tmp_path: Path) -> None:
    row = row_of({"spec": RING, "what": "plan", "version": "99"})
    assert (row["code"], "99" in row["problem"]) == (6, True)


def test_all_executors_give_the_same_files(tmp_path: Path) -> None:
    described = _described(tmp_path, COMPLETE)
    made = []
    for workers in (1, 2):
        sweep_runs(described | {"workers": workers}, tmp_path / str(workers))
        made.append(contents(tmp_path / str(workers)))
    with ThreadPoolExecutor(2) as threads:
        sweep_runs(described, tmp_path / "threads", threads)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        sweep_runs(described, tmp_path / "pool", pool)
        assert pool.submit(os.getpid).result() > 0  # it is the caller's, and goes on
    made += [contents(tmp_path / "threads"), contents(tmp_path / "pool")]
    assert made[0] == made[1] == made[2] == made[3]
    assert len(made[0]) == 8  # four rows; table, page, and the description in two files


def test_progress_counts_what_was_there_too(tmp_path: Path) -> None:
    sweep_runs(_described(tmp_path, seeds=1), tmp_path / "out", Here())
    told: list[tuple[int, int]] = []
    sweep_runs(_described(tmp_path), tmp_path / "out", Here(), lambda done, total: told.append((done, total)))
    assert told == [(3, 4), (4, 4)]


def test_wrong_points_are_refused_before_anything_runs(tmp_path: Path) -> None:
    here = Here()
    with pytest.raises(UsageError, match=r"noise\.sigma = -1"):
        sweep_runs(_described(tmp_path, grid={"noise.sigma": [1.0, -1.0]}), tmp_path / "out", here)
    with pytest.raises(UsageError, match="below 2"):
        sweep_runs(_described(tmp_path, RING.replace("seed = 5", f"seed = {2**128 - 1}")), tmp_path / "out", here)
    assert here.calls == []
    assert not (tmp_path / "out").exists()


def test_infinite_epsilons_are_numbers_in_rows_and_words_in_documents(tmp_path: Path) -> None:
    found = sweep_runs(_described(tmp_path, BARE, grid={}), None, Here())
    assert found.rows[0]["epsilon"] == math.inf
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["rows"][0]["epsilon"] == "inf"
    assert "rows" not in repr(found)


def test_frames_need_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = sweep_runs(_described(tmp_path), None, Here())
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(NotReady, match=r"\[tables\]"):
        found.to_frame()


def test_rows_become_a_frame(tmp_path: Path) -> None:
    if find_spec("pandas") is None:
        missing("install pandas, for frames of sweeps")
    frame = sweep_runs(_described(tmp_path), None, Here()).to_frame()
    assert list(frame.columns)[:2] == ["noise.sigma", "seed"]
    assert frame.groupby("noise.sigma")["error"].count().to_dict() == {1.0: 2, 3.0: 2}
