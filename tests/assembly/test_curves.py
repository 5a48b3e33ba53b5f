from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2pdp
from p2pdp.assembly.curves import PLACES_MAX, USERS_MAX, Look, curves_document, look_of, looked_at, places
from p2pdp.core.errors import UsageError
from p2pdp.files.spec import elsewhere, load_spec, named_files, parse_spec, spec_digest, spec_to_toml
from p2pdp.protocols.gossip.sgd import GossipLearner
from p2pdp.replay.evidence import Evidence
from p2pdp.report.result import Circumstances
from p2pdp.runs.editions import edition_of
from p2pdp.runs.prepared import prepare
from p2pdp.runs.simulate import simulate_spec
from p2pdp.sim.world import World
from p2pdp.tasks.examples import examples_of
from p2pdp.tasks.regression import LogisticRegression
from tests.support.sources import TOP

SAMPLES = TOP / "deploy" / "samples"


@pytest.fixture
def public(tmp_path: Path) -> Path:
    """Rows with the columns of the samples' data."""
    random = np.random.Generator(np.random.Philox(key=5))
    path = tmp_path / "public.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "dose", "effect"])
        writer.writerows([round(20 + 40 * a), round(10 * d, 2), round(a - d, 3)] for a, d in random.random((40, 2)))
    return path


def spec_of(sample: str, *changes: str) -> Any:
    return load_spec(SAMPLES / f"{sample}.toml", changes)


def declared(path: Path) -> str:
    return f'data.public="{path}"'


def test_places_follow_from_the_number_of_steps() -> None:
    assert places(3) == [0, 1, 2, 3]
    many = places(10_000)
    assert (many[0], many[-1], len(many)) == (0, 10_000, PLACES_MAX)
    assert looked_at(1) == [0]
    assert len(looked_at(500)) == USERS_MAX


def test_a_look_takes_the_mean_of_several_models_and_skips_what_is_not_finite() -> None:
    rows = examples_of([[1.0], [-1.0]], [1.0, -1.0], None)
    look = Look(LogisticRegression(), rows, 2)
    look.at(0, np.array([[0.0], [1.0]]))
    look.at(1, np.array([[np.inf]]))
    look.at(7, np.array([[1.0]]))
    curve = look.curve()
    assert curve.loss[0] == pytest.approx((np.log(2.0) + np.log1p(np.exp(-1.0))) / 2.0)
    assert curve.loss[1:] == (None, None)
    assert curve.score[0] == 0.75


@pytest.mark.parametrize("sample", ["walk_sgd", "gossip_sgd"])
def test_curves_of_ledgers_end_where_the_result_does(sample: str, public: Path, tmp_path: Path) -> None:
    last = ['task.averaging="last"'] if sample == "gossip_sgd" else []
    result = simulate_spec(
        spec_of(sample, declared(public), *last), tmp_path / "out", None, fast=False, faults=None, progress=None
    )
    assert result.curves is not None
    assert result.scores is not None
    assert result.curves["at"][-1] == (3 if last else 36)
    assert list(result.curves["of"]) == ["run", "local", "central", "none"]
    for name, line in result.curves["of"].items():
        told = result.scores if name == "run" else result.baselines[name]
        assert line["score"][0] == pytest.approx(result.curves["of"]["none"]["score"][0])
        assert None not in line["loss"]
        ends = told["public_loss"], told["public_score"]
        assert (line["loss"][-1], line["score"][-1]) == pytest.approx(ends, abs=1e-3 if last else 1e-9)


def test_what_users_sent_and_received_gives_the_models_that_machines_came_to(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[int, dict[int, Any]] = {}
    contribute = GossipLearner._contribute

    def noting(self: Any, draws: Any) -> None:
        seen.setdefault((self._round - 1) // self._plan.block, {})[self._user] = self._state
        contribute(self, draws)

    monkeypatch.setattr(GossipLearner, "_contribute", noting)
    made = simulate_spec(spec_of("gossip_sgd", declared(public)), None, None, fast=False, faults=None, progress=None)
    run = prepare(spec_of("gossip_sgd", declared(public))).run
    look = look_of(run, 3)
    assert look is not None
    for gradients in (1, 2):
        look.at(gradients, np.array([seen[gradients][user] for user in looked_at(run.n)]))
    curve = look.curve()
    assert made.curves is not None
    found = made.curves["of"]["run"]
    assert run.plan.gamma > 1.0  # accelerated gossip moves by the last two rounds
    assert found["loss"][:3] == pytest.approx(curve.loss[:3], abs=1e-6)


def test_public_rows_change_neither_a_run_nor_its_name(public: Path, tmp_path: Path) -> None:
    without, with_rows = spec_of("walk_sgd"), spec_of("walk_sgd", declared(public))
    assert spec_digest(without) == spec_digest(with_rows)
    one, other = (
        simulate_spec(spec, None, None, fast=True, faults=None, progress=None) for spec in (without, with_rows)
    )
    assert one.estimate == other.estimate
    assert one.curves is None
    assert other.curves is not None
    assert {name: told["loss"] for name, told in one.baselines.items()} == {
        name: told["loss"] for name, told in other.baselines.items()
    }


def test_trials_have_other_noise_for_baselines_and_standard_errors(public: Path) -> None:
    for sample in ("walk_sgd", "gossip_sgd"):
        result = simulate_spec(spec_of(sample, declared(public)), None, 4, fast=True, faults=None, progress=None)
        assert result.curves is not None
        for told in (result.scores, result.baselines["local"], result.baselines["central"]):
            assert told is not None
            over = told["over_trials"]
            assert over["trials"] == 4
            assert over["loss"]["standard_error"] > 0.0
            assert over["public_loss"]["mean"] > 0.0
        lines = result.curves["of"]["local"]["over_trials"]["loss"]
        assert lines["standard_error"][0] == 0.0
        assert lines["standard_error"][-1] > 0.0


def test_rows_that_do_not_fit_are_refused(public: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("age,effect\n3,1\n")
    with pytest.raises(UsageError, match=r"\[data\] public"):
        prepare(spec_of("walk_sgd", declared(other)))
    with pytest.raises(UsageError, match=r"\[data\] public"):
        spec_of("ring_sum", declared(public))


def test_without_public_rows_there_are_no_curves() -> None:
    run = prepare(parse_spec((SAMPLES / "walk_sgd.toml").read_text(), SAMPLES)).run
    assert look_of(run, 3) is None
    assert curves_document(run, "steps", 3, {"run": None}) is None


def test_a_table_from_python_does_what_the_file_does(public: Path) -> None:
    rows = np.loadtxt(public, delimiter=",", skiprows=1)
    data = np.loadtxt(SAMPLES / "walk_sgd.csv", delimiter=",", skiprows=1)
    spec = p2pdp.spec(spec_of("walk_sgd"), **{"data.target": 2})
    with_file = p2pdp.simulate(spec_of("walk_sgd", declared(public)), fast=True)
    with_table = p2pdp.simulate(spec, fast=True, data=data, public=rows)
    assert with_table.curves is not None
    assert with_file.curves is not None
    assert with_table.curves["of"]["none"]["loss"][0] == pytest.approx(np.log(2.0))
    assert with_table.curves["rows"] == with_file.curves["rows"] == 40
    with pytest.raises(UsageError, match="public"):
        p2pdp.simulate(spec_of("ring_sum"), fast=True, public=rows)
    with pytest.raises(UsageError, match="public"):
        p2pdp.simulate(spec, fast=True, data=data, public=[rows, rows])


def test_the_public_file_is_named_beside_the_data_and_packed_with_it(public: Path) -> None:
    spec = spec_of("walk_sgd", declared(public))
    assert named_files(spec)["data-public.csv"] == public
    assert elsewhere(spec, "inputs/").data.public == "inputs/data-public.csv"
    assert parse_spec(spec_to_toml(spec), None).data.public == str(public)


def test_participants_read_how_good_the_published_model_is_on_public_rows(public: Path) -> None:
    prepared = prepare(spec_of("walk_sgd", declared(public), "run.seed=3"))
    world = World(prepared.run, prepared.rows, prepared.text, prepared.digest, 3)
    world.run_to_end()
    views = {peer: bytes(process.disk.view) for peer, process in world.processes.items()}
    evidence = Evidence(prepared.spec, prepared.digest, world.roster, views, {})
    around = Circumstances("ab", True, None, None, None, [], {}, False)
    told = edition_of(prepared.run, evidence, around).to_json()
    model = np.array(told["estimate"])
    assert prepared.run.public is not None
    expected = LogisticRegression().loss(model, prepared.run.public)
    assert told["public_scores"]["public_loss"] == pytest.approx(expected)
    assert "public_scores" not in edition_of(replace(prepared.run, public=None), evidence, around).to_json()


class Shifted(LogisticRegression):
    """Learning that starts elsewhere than at zero."""

    name = "shifted"

    def start(self, dimension: int) -> Any:
        return np.full(dimension, 2.0)


@pytest.mark.parametrize("sample", ["walk_sgd", "gossip_sgd"])
def test_curves_and_baselines_start_where_the_objective_says(sample: str, public: Path) -> None:
    bare = ["noise.sigma=1e-6", "task.rate=1e-9"]
    spec = p2pdp.spec(spec_of(sample, declared(public), *bare), **{"data.target": "effect"})
    result = p2pdp.simulate(spec, fast=True, task=Shifted())
    assert result.curves is not None
    rows = prepare(spec_of(sample, declared(public))).run.public
    assert rows is not None
    columns = rows.features[:, :2]
    expected = LogisticRegression().loss(np.full(2, 2.0), examples_of(columns, rows.targets, None))
    for line in result.curves["of"].values():
        assert line["loss"][0] == pytest.approx(expected)
        assert line["loss"][-1] == pytest.approx(expected, abs=1e-3)


def test_curves_are_there_where_no_noise_of_baselines_is_known(public: Path) -> None:
    result = p2pdp.simulate(spec_of("walk_sgd", declared(public)))  # nothing is audited without a folder
    assert result.curves is not None
    assert list(result.curves["of"]) == ["run", "none"]
    assert result.baselines["local"]["sigma"] is None
