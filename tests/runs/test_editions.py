"""What participants may read depends on no route: it is the same for all runs that publish the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p2pdp.core.ids import CURATOR
from p2pdp.core.spec import AuditPart
from p2pdp.files.folder import PARTICIPANTS_FILE, PARTICIPANTS_PAGE, read_json
from p2pdp.protocols.run_plan import plan_run
from p2pdp.report.result import Circumstances
from p2pdp.runs.editions import edition_of, published_only, save_edition
from tests.support.outcomes import outcome
from tests.support.runs import HISTOGRAM, Run, quiet, ring, walk
from tests.support.shuffle_specs import shuffle
from tests.support.skeletons import curators_ledger

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
    monkeypatch.setattr("p2pdp.runs.editions.STEPS_MAX", run.plan.plan.length - 1)
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
