"""What a bootstrap refuses before it starts, and what it makes of its folder; live runs are in tests/system."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p2pdp.api import simulate
from p2pdp.cluster.folder import BootstrapFolder
from p2pdp.core.errors import UsageError
from p2pdp.core.happenings import Happening
from p2pdp.core.ids import CURATOR
from p2pdp.core.spec import AuditPart
from p2pdp.files.folder import PARTICIPANTS_FILE, PARTICIPANTS_PAGE, read_json
from p2pdp.files.spec import parse_spec, spec_digest, spec_to_toml
from p2pdp.protocols.run_plan import plan_run
from p2pdp.report.result import Circumstances, Result
from p2pdp.runs.across_bootstrap import (
    _collect,
    _for_others,
    _planner,
    bootstrap,
    edition_of,
    published_only,
    resume,
    save_edition,
)
from p2pdp.transports.contract import Listening
from tests.support.across_specs import TEXT, spec_of
from tests.support.outcomes import outcome
from tests.support.runs import HISTOGRAM, Run, quiet, ring, walk
from tests.support.shuffle_specs import shuffle
from tests.support.skeletons import curators_ledger

TABLE = TEXT.replace("seed = 5\n", "").replace('"uniform"', '"csv"\npath = "some/where.csv"')
HERE = Listening("127.0.0.1:0")


@pytest.mark.parametrize(
    ("text", "places", "tokens", "error", "says"),
    [
        (TEXT, HERE, 2, UsageError, "--tokens 2: the run needs 3"),
        (TEXT, Listening("0.0.0.0:7000"), 4, UsageError, "--address HOST:PORT"),
        (TEXT, Listening("[::]:7000"), 4, UsageError, "--address HOST:PORT"),
        (TEXT, Listening("[::]:7000", "0.0.0.0:7000"), 4, UsageError, "--address 0.0.0.0:7000"),
        (TEXT, Listening("7000"), 4, UsageError, "--listen 7000: must read HOST:PORT"),
        (TEXT, Listening("127.0.0.1:0", "here"), 4, UsageError, "--address here: must read"),
        (TABLE.replace("nodes = 4", "nodes = 4\nseed = 1"), HERE, 4, UsageError, "seed"),
        (TABLE, HERE, 4, UsageError, "columns: name them"),
        (TEXT.replace("min_nodes = 3", 'transport = "mqtt"'), HERE, 4, UsageError, "--listen: through a broker"),
        (
            TEXT.replace("min_nodes = 3", 'transport = "mqtt"'),
            Listening(None),
            4,
            UsageError,
            "[transport] host: missing",
        ),
        (TEXT, Listening(None), 4, UsageError, "--listen: missing"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    tmp_path: Path, text: str, places: Listening, tokens: int, error: type[Exception], says: str
) -> None:
    with pytest.raises(error) as caught:
        bootstrap(spec_of(text), places, tokens, tmp_path / "boot", print)
    assert says in str(caught.value)
    assert not (tmp_path / "boot").exists()


def test_no_data_is_needed_where_the_spec_names_the_columns(tmp_path: Path) -> None:
    named = spec_of(TABLE.replace("[data]", '[data]\ncolumns = ["a", "b", "c"]'))
    assert _planner(named)(4).dimensions == 3
    (tmp_path / "own.csv").write_text("1,2\n3,4\n")
    counted = parse_spec(TABLE.replace("some/where.csv", "own.csv"), tmp_path)
    assert _planner(counted)(3).dimensions == 2
    assert _planner(spec_of())(3).n == 3


def test_others_learn_names_of_files_and_no_places(tmp_path: Path) -> None:
    spec = parse_spec(TABLE, tmp_path)
    offered = spec_to_toml(_for_others(spec))
    assert str(tmp_path) not in offered
    assert 'path = "where.csv"' in offered
    assert spec_digest(parse_spec(offered, None)) == spec_digest(spec)


def finished(tmp_path: Path, text: str = TEXT) -> tuple[Result, BootstrapFolder]:
    """A simulated run, and the folder that its bootstrap would have: no user's ledger is there."""
    spec = parse_spec(text, tmp_path)
    result = simulate(spec, tmp_path / "all")
    folder = BootstrapFolder.open(tmp_path / "boot", spec_to_toml(spec), 4)
    shutil.copytree(tmp_path / "all" / "curator", tmp_path / "boot" / "curator")
    shutil.copy(tmp_path / "all" / "roster.json", tmp_path / "boot")
    return result, folder


@pytest.mark.parametrize("task", ["", '[task]\nkind = "mean"\n'])
def test_without_skeletons_the_estimate_is_there_and_what_nobody_knows_is_null(tmp_path: Path, task: str) -> None:
    whole, folder = finished(tmp_path, TEXT + task)
    told: list[Happening] = []
    result = _collect(parse_spec(TEXT + task, tmp_path), folder, _planner(spec_of(TEXT + task)), told.append)
    assert (result.estimate, result.standard_error, result.hops) == (whole.estimate, whole.standard_error, whole.hops)
    assert (result.messages, result.bytes, result.truth, result.error) == (None, None, None, None)
    assert result.baselines == {"local": {"standard_error": None}, "central": {"standard_error": None}}
    assert (result.private_kept, result.seeded, result.run_id) == (False, False, folder.run_id.hex())
    assert (folder.path / "result.json").is_file()
    assert (folder.path / "audit.json").is_file() == (not told)


def test_an_altered_folder_gives_its_result_and_no_claim(tmp_path: Path) -> None:
    whole, folder = finished(tmp_path)
    place = folder.path / "curator" / "skeletons"
    place.mkdir()
    (place / "0000.skeleton").write_bytes(b"p2pdp skelet 01\n")
    told: list[Happening] = []
    result = _collect(spec_of(), folder, _planner(spec_of()), told.append)
    assert result.estimate == whole.estimate
    assert told[0].event == "no_claim"
    assert "no claim" in told[0].text
    assert not (folder.path / "audit.json").exists()


def test_what_was_never_started_is_not_resumed(tmp_path: Path) -> None:
    BootstrapFolder.open(tmp_path / "boot", spec_to_toml(spec_of()), 4)
    with pytest.raises(UsageError, match="never started"):
        resume(tmp_path / "boot", print)


RUNS = {
    "ring": ring(4, 3),
    "walk": walk(4, 30),
    "histogram": walk(4, 30, **HISTOGRAM),
    "shuffle": shuffle(8),
}
AROUND = Circumstances("ab" * 16, False, 7, None, 1234, [], {"foreign_frame": 3}, False)


def edition(run: Run, around: Circumstances = AROUND) -> dict[str, Any]:
    plan = plan_run(run.evidence.spec, run.plan.n, run.plan.dimensions)
    return edition_of(plan, run.evidence, around).to_json()


@pytest.mark.parametrize("name", RUNS)
def test_it_holds_what_was_published_and_claims_a_priori(name: str) -> None:
    run = quiet(RUNS[name])
    found = edition(run)
    assert {claim["conditioning"] for claim in found["claims"]} == {"a-priori"}
    assert found["estimate"] is not None
    assert found["headline"]["epsilon"] is not None
    assert set(found) == {
        "edition", "run_id", "protocol", "transport", "nodes", "graph", "seeded", "started", "estimate",
        "standard_error", "missing", "delta", "headline", "worst", "claims", "refusals",
        "rounds" if name == "shuffle" else "hops",
    }  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_other_routes_change_nothing_but_the_estimate(name: str) -> None:
    """The same spec on another seed has other routes, visits and noise."""
    found, other = (edition(quiet(RUNS[name].replace("seed = 1", f"seed = {seed}"))) for seed in (1, 2))
    assert found.pop("estimate") != other.pop("estimate")
    if isinstance(found["standard_error"], list):  # of counts, it follows from the estimate
        del found["standard_error"], other["standard_error"]
    assert found == other


def test_hidden_paths_of_long_walks_are_left_to_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    run = quiet(RUNS["walk"])
    methods = {claim["method"] for claim in edition(run)["claims"] if claim["observer"] == "node"}
    assert "hidden-path" in methods
    monkeypatch.setattr("p2pdp.runs.across_bootstrap.STEPS_MAX", run.plan.plan.length - 1)
    found = edition(run)
    assert "hidden-path" not in {claim["method"] for claim in found["claims"] if claim["observer"] == "node"}
    reasons = [one["reason"] for one in found["refusals"] if one["method"] == "hidden-path"]
    assert len(reasons) == 1
    assert "p2pdp plan" in reasons[0]


def test_circumstances_that_follow_the_route_are_left_out() -> None:
    run = quiet(RUNS["walk"])
    other = replace(AROUND, bytes=99, faults={}, seed=8, private_kept=True)
    assert edition(run, other) == edition(run)


def test_the_estimate_is_that_of_the_published_total_alone() -> None:
    run = quiet(RUNS["walk"])
    alone, whole = published_only(run.plan, run.evidence), outcome(run.plan, run.evidence.views, [])
    assert alone.published == whole.published
    assert list(alone.counted) == [CURATOR]


def test_after_an_exclusion_claims_that_assume_none_are_refused() -> None:
    found = edition(quiet(RUNS["walk"]), replace(AROUND, missing=[2]))
    assert found["missing"] == [2]
    assert not any(claim["bound"] for claim in found["claims"])
    assert any("user 2" in refusal["reason"] for refusal in found["refusals"])
    assert found["headline"]["epsilon"] == "inf"


@pytest.mark.parametrize("name", ["walk", "shuffle"])
def test_readable_skeletons_void_claims_about_the_curator_and_sealed_ones_do_not(name: str) -> None:
    run = quiet(RUNS[name])
    plan = plan_run(run.evidence.spec, run.plan.n, run.plan.dimensions)
    curator = run.evidence.views[CURATOR] + curators_ledger((0, 0, b"abc"))[len(curators_ledger()) :]
    sealed = replace(plan, spec=replace(plan.spec, audit=AuditPart("09" * 32)))
    observers = []
    for each in (plan, sealed):
        found = edition_of(each, run.evidence.having({CURATOR: curator}), AROUND).to_json()
        observers.append({claim["observer"] for claim in found["claims"] if claim["bound"]})
        assert not any("skeleton" in text for claim in found["claims"] for text in claim["assumptions"])
    assert "curator" not in observers[0]
    assert "curator" in observers[1]


def test_both_files_are_for_everybody(tmp_path: Path) -> None:
    run = quiet(RUNS["walk"])
    plan = plan_run(run.evidence.spec, run.plan.n, run.plan.dimensions)
    made = edition_of(plan, run.evidence, AROUND)
    save_edition(tmp_path, made)
    assert read_json(tmp_path / PARTICIPANTS_FILE) == made.to_json()
    page = (tmp_path / PARTICIPANTS_PAGE).read_text()
    assert 'id="claims"' in page
    assert page.endswith("</body></html>\n")
    for name in (PARTICIPANTS_FILE, PARTICIPANTS_PAGE):
        assert (tmp_path / name).stat().st_mode & 0o044
