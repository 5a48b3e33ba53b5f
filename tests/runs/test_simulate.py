from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2pdp
from p2pdp.core.errors import Refused, UsageError
from p2pdp.files.spec import parse_spec
from p2pdp.runs import simulate as module
from p2pdp.runs.simulate import default_folder, simulate_spec
from p2pdp.sim.faults import Crash, DiskFault, Faults, Harm
from tests.support.gossip_learners import gossip_learning
from tests.support.gossips import gossip
from tests.support.learners import learning
from tests.support.small import ALL, BARE, COMPLETE, HISTOGRAM, RING, SPARSE, contents, spec_file


def errors(result: Any) -> Any:
    return np.array([trial.error for trial in result.trials], dtype=float)


@pytest.mark.parametrize("name", ALL)
def test_a_result_is_consistent(name: str, tmp_path: Path) -> None:
    spec = p2pdp.load_spec(spec_file(tmp_path, ALL[name]))
    result = p2pdp.simulate(spec, tmp_path / "run")
    steps = spec.options.hops or (spec.options.laps or 0) * spec.run.nodes
    assert result.hops == steps * spec.options.tokens
    assert (result.seeded, result.seed, result.started, result.private_kept) == (True, 5, None, True)
    assert (result.protocol, result.transport, result.nodes) == (spec.run.protocol, "tcp", spec.run.nodes)
    assert (result.missing, result.outputs, result.trials, result.faults) == ([], [], None, {})
    assert result.seconds > 0.0
    assert result.startup_seconds > 0.0
    assert result.messages <= result.bytes
    lines = [line for line in p2pdp.views(tmp_path / "run") if line["kind"] == "sent"]
    assert result.messages == sum(type(line["node"]) is type(line["peer"]) is int for line in lines)
    pairs = zip(*(np.atleast_1d(value) for value in (result.estimate, result.truth, result.error)), strict=True)
    assert all(error == estimate - truth for estimate, truth, error in pairs)
    assert np.atleast_1d(result.standard_error).shape == np.atleast_1d(result.estimate).shape
    if name == "bare":
        assert result.standard_error == 0.0
        assert result.error == pytest.approx(0.0, abs=1e-6)
    else:
        assert np.all(np.atleast_1d(result.standard_error) > 0.0)


@pytest.mark.parametrize("name", ["ring", "complete", "sparse", "histogram", "ring_histogram"])
def test_local_privacy_costs_no_less_than_a_trusted_curator(name: str, tmp_path: Path) -> None:
    result = p2pdp.simulate(spec_file(tmp_path, ALL[name]), tmp_path / "run")
    local, central = (np.atleast_1d(result.baselines[kind]["standard_error"]) for kind in ("local", "central"))
    assert local.shape == central.shape == np.atleast_1d(result.estimate).shape
    assert np.all(local >= central)
    assert np.all(central > 0.0)


def test_where_epsilon_is_infinite_there_is_no_baseline(tmp_path: Path) -> None:
    result = p2pdp.simulate(spec_file(tmp_path, BARE), tmp_path / "run")
    assert result.baselines == {"local": {"standard_error": None}, "central": {"standard_error": None}}


def test_categories_without_randomization_are_counted_and_claimed_infinite(tmp_path: Path) -> None:
    text = HISTOGRAM.replace('"randomized_response"\nepsilon = 1.0', '"none"')
    result = p2pdp.simulate(spec_file(tmp_path, text), tmp_path / "run")
    assert result.estimate == result.truth
    assert p2pdp.audit(tmp_path / "run").claims[0].epsilon_max == math.inf


def test_a_mean_is_the_sum_over_the_number_of_contributions(tmp_path: Path) -> None:
    path = spec_file(tmp_path, COMPLETE)
    total = p2pdp.simulate(path, tmp_path / "sum")
    mean = p2pdp.simulate(p2pdp.load_spec(path, ['task.kind="mean"']), fast=True, trials=400)
    assert isinstance(mean.truth, float)
    assert 0.0 <= mean.truth <= 1.0
    assert isinstance(total.standard_error, float)
    assert mean.standard_error == pytest.approx(total.standard_error / total.hops)
    assert np.std(errors(mean)) == pytest.approx(mean.standard_error, rel=0.2)
    slow = p2pdp.simulate(p2pdp.load_spec(path, ['task.kind="mean"']))
    assert slow.standard_error == mean.standard_error
    assert abs(slow.error) < 5 * slow.standard_error  # type: ignore[arg-type,operator]


@pytest.mark.parametrize("name", ["ring", "complete", "histogram", "ring_histogram"])
def test_errors_are_as_large_as_announced(name: str, tmp_path: Path) -> None:
    """Fixed seeds, so this cannot fail by chance; the bounds are those of 5 standard deviations."""
    trials = 120
    result = p2pdp.simulate(spec_file(tmp_path, ALL[name]), trials=trials)
    spread = np.std(errors(result), axis=0)
    assert np.all(np.abs(np.mean(errors(result), axis=0)) < 5 * spread / math.sqrt(trials))
    assert np.all(np.abs(spread / np.array(result.standard_error) - 1.0) < 5 / math.sqrt(2 * trials))


def test_the_folder_runs_again_from_its_own_spec(tmp_path: Path) -> None:
    """spec.toml is the effective spec: overrides applied, the same bytes again."""
    spec = p2pdp.load_spec(spec_file(tmp_path, COMPLETE), ["walk.hops=7", "run.seed=9"])
    p2pdp.simulate(spec, tmp_path / "one")
    p2pdp.simulate(tmp_path / "one" / "spec.toml", tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert p2pdp.load_spec(tmp_path / "one" / "spec.toml") == spec


def test_a_spec_without_a_seed_runs_on_seed_0(tmp_path: Path) -> None:
    path = spec_file(tmp_path, RING.replace("seed = 5\n", ""))
    without = p2pdp.simulate(path, tmp_path / "one")
    assert without.seed == 0
    assert default_folder(p2pdp.load_spec(path), fast=False).name == f"p2pdp-{without.run_id}"
    p2pdp.simulate(p2pdp.load_spec(path, ["run.seed=0"]), tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_data_of_a_file_is_used_and_truth_follows(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b\n" + "".join(f"{i},{10 * i}\n" for i in range(8)))
    text = RING.replace('kind = "uniform"\nclip = [0.0, 1.0]', 'kind = "csv"\npath = "rows.csv"\nclip = [0.0, 60.0]')
    result = p2pdp.simulate(spec_file(tmp_path, text), tmp_path / "run")
    assert result.truth == [28.0, sum(min(10.0 * i, 60.0) for i in range(8))]
    fast = p2pdp.simulate(spec_file(tmp_path, text), trials=200, fast=True)
    assert fast.truth == result.truth
    assert np.std(errors(fast), axis=0) == pytest.approx(np.array(result.standard_error), rel=0.3)
    assert p2pdp.audit(tmp_path / "run").verified == "complete"


def test_without_audit_there_is_no_audit_and_no_baseline(tmp_path: Path) -> None:
    spec = p2pdp.load_spec(spec_file(tmp_path), ["run.audit=false"])
    result = p2pdp.simulate(spec, tmp_path / "run")
    assert "audit.json" not in contents(tmp_path / "run")
    assert result.baselines["local"]["standard_error"] is None


def test_an_audit_that_was_left_for_later_says_the_same(tmp_path: Path) -> None:
    """Unlike `[run] audit`, which is part of the spec, it changes neither the name of the run nor its ledgers."""
    path = spec_file(tmp_path, COMPLETE)
    first = p2pdp.simulate(path, tmp_path / "first")
    later = p2pdp.simulate(path, tmp_path / "later", audit=False)
    assert (later.run_id, later.estimate) == (first.run_id, first.estimate)
    assert (later.headline, later.worst) == (None, None)
    assert {one["standard_error"] for one in later.baselines.values()} == {None}
    at_once, files = contents(tmp_path / "first"), contents(tmp_path / "later")
    assert at_once.keys() - files.keys() == {"audit.json", "report.html"}
    assert all(files[name] == at_once[name] for name in files.keys() - {"result.json"})
    found = p2pdp.audit(tmp_path / "later").to_json()
    assert (found["headline"], found["worst"]) == (first.headline, first.worst)
    with pytest.raises(UsageError, match="--no-audit"):
        p2pdp.simulate(path, fast=True, audit=False)


def test_a_refused_audit_leaves_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise Refused("no claim")

    monkeypatch.setattr(module, "audit_evidence", refuse)
    p2pdp.simulate(spec_file(tmp_path, SPARSE), tmp_path / "run")
    files = contents(tmp_path / "run")
    assert "audit.json" not in files
    assert json.loads(files["result.json"])["baselines"]["local"]["standard_error"] is None


def test_trials_begin_at_one(tmp_path: Path) -> None:
    spec = p2pdp.load_spec(spec_file(tmp_path))
    with pytest.raises(UsageError, match="--trials"):
        simulate_spec(spec, None, 0, fast=False, faults=None, progress=None)


def test_the_transport_makes_no_difference_to_a_simulation(tmp_path: Path) -> None:
    path = spec_file(tmp_path)
    over_tcp = p2pdp.simulate(path)
    over_mqtt = p2pdp.simulate(p2pdp.load_spec(path, ['run.transport="mqtt"']))
    assert (over_mqtt.transport, over_mqtt.truth) == ("mqtt", over_tcp.truth)


def test_the_headline_is_that_of_the_audit_and_of_the_fast_path_a_priori(tmp_path: Path) -> None:
    path = spec_file(tmp_path, COMPLETE)
    result, document = p2pdp.simulate(path, tmp_path / "run"), p2pdp.audit(tmp_path / "run").to_json()
    assert (result.headline, result.worst) == (document["headline"], document["worst"])
    assert result.headline is not None
    assert (result.headline["observer"], result.headline["conditioning"]) == ("node", "view")
    assert result.worst is not None
    assert result.worst["observer"] == "network"
    bare = p2pdp.simulate(path).to_json()
    assert (bare["headline"], bare["worst"]) == (None, None), "nothing was audited"


@pytest.mark.parametrize("protocol", ["walk", "gossip"])
def test_the_fast_path_has_a_headline_of_minibatches_too(protocol: str) -> None:
    task = 'kind = "logistic_regression"\nclip = 1.0\nrate = 0.05\nbatch = 2'
    text = learning(4, 8, task=task) if protocol == "walk" else gossip_learning(4, task=f"{task}\nrounds = 3")
    spec = parse_spec(f'{text}unit = "record"\n', None)
    result, found = p2pdp.simulate(spec, fast=True), p2pdp.plan(spec)
    assert result.headline == found.headline
    assert result.worst == found.worst
    assert result.baselines["local"]["sigma"] == found.baselines["local"]["sigma"] > 0.0


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_smallest_runs(n: int, tmp_path: Path) -> None:
    for name, text in (("ring", RING), ("complete", COMPLETE), ("histogram", HISTOGRAM)):
        spec = p2pdp.load_spec(spec_file(tmp_path, text), [f"run.nodes={n}"])
        result = p2pdp.simulate(spec, tmp_path / name)
        assert p2pdp.verify(tmp_path / name).verified == "complete"
        assert result.nodes == n
        assert p2pdp.simulate(spec, fast=True).hops == result.hops


def test_a_torn_tail_of_somebody_who_never_came_back_is_cut_off(tmp_path: Path) -> None:
    torn = Faults(crashes=(Crash(peer=3, at_record=14, down_s=None, torn_bytes=7),))
    place = tmp_path / "run"
    result = p2pdp.simulate(parse_spec(COMPLETE, None), place, faults=torn)
    assert result.missing == [3]
    assert p2pdp.verify(place).verified == "incomplete"


def test_a_user_whose_disk_has_changed_is_put_out_and_leaves_no_ledger(tmp_path: Path) -> None:
    faults = Faults(crashes=(Crash(peer=3, at_record=14, disk=DiskFault("view", Harm.FLIPPED, place=0.3)),))
    place = tmp_path / "run"
    result = p2pdp.simulate(parse_spec(COMPLETE, None), place, faults=faults)
    assert result.missing == [3]
    assert result.faults["unusable_disk"] == 1
    assert p2pdp.verify(place).verified == "incomplete"
    assert not (place / "nodes" / "0003" / "view.ledger").exists()


@pytest.mark.parametrize(
    "text",
    [
        gossip(8, "ring", "rounds = 5"),
        gossip(8, "erdos_renyi", 'rounds = 4\npublish = "one"'),
        gossip(5, "star", 'activations = 30\npublish = "all"', protocol="randomized"),
    ],
)
def test_trials_of_gossip_are_the_same_on_the_fast_path(text: str) -> None:
    spec = parse_spec(text, None)
    slow, fast = (p2pdp.simulate(spec, trials=3, fast=fast) for fast in (False, True))
    assert fast.trials is not None
    assert slow.trials is not None
    for one, other in zip(slow.trials, fast.trials, strict=True):
        assert other.truth == pytest.approx(one.truth, abs=1e-12)
        assert other.estimate == pytest.approx(one.estimate, abs=1e-6)
        assert other.error == pytest.approx(one.error, abs=1e-6)
    assert fast.standard_error == pytest.approx(slow.standard_error, rel=1e-12)
    assert [one["user"] for one in fast.outputs] == [one["user"] for one in slow.outputs]
    assert fast.to_json().keys() == slow.to_json().keys()
    assert fast.rounds == slow.rounds


def traced_lines(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The lines of each peer's `wire.jsonl`, by the name that views have for it."""
    files = {"bootstrap": folder / "curator/bootstrap", "curator": folder / "curator"}
    files |= {place.name: place for place in (folder / "nodes").iterdir()}
    return {
        name: [json.loads(line) for line in (place / "wire.jsonl").read_text().splitlines()]
        for name, place in files.items()
    }


def test_a_trace_holds_whatever_the_ledgers_say_was_received(tmp_path: Path) -> None:
    """Duplicates, resends and what a crash undid are received too, so a trace has more lines than the ledger."""
    spec, faults = spec_file(tmp_path, COMPLETE), Faults(loss=0.1, duplication=0.2, crashes=(Crash(1, at_record=30),))
    result = p2pdp.simulate(spec, tmp_path / "run", faults=faults, trace_wire=True)
    assert result.to_json()["traced"] is True
    lines = traced_lines(tmp_path / "run")
    received: dict[str, set[tuple[Any, ...]]] = {name: set() for name in lines}
    for view in p2pdp.views(tmp_path / "run"):
        if view["kind"] == "received" and view["type"] == "token":
            name = f"{view['node']:04d}" if isinstance(view["node"], int) else view["node"]
            received[name].add((view["peer"], view["token"], view["step"]))
    for name, told in lines.items():
        tokens = [(line["from"], *line["fields"]) for line in told if line["type"] == "token"]
        assert received[name] <= set(tokens)
        assert all(set(line) == {"from", "number", "type", "fields", "control"} for line in told)
    assert any(len(told) > len({json.dumps(line) for line in told}) for told in lines.values()), "of copies too"
    assert any(line["control"].get("hello") for line in lines["0000"]), "the restart compared numbers"
    p2pdp.simulate(spec, tmp_path / "again", faults=faults, trace_wire=True)
    assert traced_lines(tmp_path / "again") == lines
    for path in (tmp_path / "run").rglob("wire.jsonl"):
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_run_is_traced_only_if_that_was_asked_for(tmp_path: Path) -> None:
    spec = spec_file(tmp_path, RING)
    plain = p2pdp.simulate(spec, tmp_path / "plain")
    assert "traced" not in plain.to_json()
    assert not list((tmp_path / "plain").rglob("wire.jsonl"))
    traced = p2pdp.simulate(spec, tmp_path / "traced", trials=2, trace_wire=True)
    assert {**traced.to_json(), "traced": None, "folder": None, "trials": None} == {
        **plain.to_json(), "traced": None, "folder": None, "trials": None,
    }  # fmt: skip
    for name in ("audit.json", "roster.json"):
        assert (tmp_path / "traced" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()
    for wrong in ({"fast": True, "out": tmp_path / "fast"}, {}):
        with pytest.raises(UsageError, match="--trace-wire"):
            p2pdp.simulate(spec, trace_wire=True, **wrong)


def test_what_would_not_be_fast_is_refused_before_it_begins() -> None:
    slow = parse_spec(gossip(100_000, "path", 'rounds = "auto"'), None)
    with pytest.raises(Refused, match=r"^--fast: in this run users exchange [\d,]{14,} numbers"):
        p2pdp.simulate(slow, fast=True)
    module.check_fast(module.prepare(parse_spec(COMPLETE, None)).run)
