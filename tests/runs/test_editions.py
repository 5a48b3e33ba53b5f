"""The participants' edition: what it is made of, and what it leaves out."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p2pdp.core.errors import Refused, UsageError, VerificationFailed
from p2pdp.core.ids import CURATOR
from p2pdp.core.spec import AuditPart
from p2pdp.files.folder import PARTICIPANTS_FILE, PARTICIPANTS_PAGE, read_evidence, read_json
from p2pdp.protocols.run_plan import plan_run
from p2pdp.report.page.words import number
from p2pdp.report.participants import page
from p2pdp.report.result import Circumstances
from p2pdp.runs.editions import edition_in, edition_of, published_only, save_edition, write_participants_page
from tests.support.made import read
from tests.support.outcomes import outcome
from tests.support.runs import HISTOGRAM, Run, quiet, ring, walk
from tests.support.shuffle_specs import shuffle
from tests.support.skeletons import curators_ledger
from tests.support.small import ALL, COMPLETE, recorded

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
        "rounds" if name == "shuffle" else "hops", "about", "digests", "version", "more_noise",
    }  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_other_routes_change_nothing_but_the_estimate(name: str) -> None:
    """The same spec on another seed has other routes, visits and noise."""
    found, other = (edition(quiet(RUNS[name].replace("seed = 1", f"seed = {seed}"))) for seed in (1, 2))
    assert found.pop("estimate") != other.pop("estimate")
    if isinstance(found["standard_error"], list):  # of counts, it follows from the estimate
        del found["standard_error"], other["standard_error"]
    assert found.pop("digests") != other.pop("digests"), "the spec names its seed, and the run has other keys"
    assert found == other


@pytest.mark.parametrize("name", RUNS)
def test_nor_do_they_on_the_page(name: str) -> None:
    pages = []
    for seed in (1, 2):
        run = quiet(RUNS[name].replace("seed = 1", f"seed = {seed}"))
        made = edition_of(plan_run(run.evidence.spec, run.plan.n, run.plan.dimensions), run.evidence, AROUND)
        pages.append(page(replace(made, estimate=1.5, standard_error=0.5, proof=None)))
    assert pages[0] == pages[1]


def secrets(place: Path) -> set[str]:
    """Every number of result and audit, as written there and as pages write it, but those that the edition may tell."""
    told = edition_in(read_evidence(place), None).to_json()
    forms = [
        {form for value in numbers(document) if value % 1 or value > 50 for form in (repr(value), number(value))}
        for document in (told, {name: read_json(place / f"{name}.json") for name in ("result", "audit")})
    ]
    return {form for form in forms[1] - forms[0] if len(form) > 2}  # "4" may be anything, the number of a user too


def numbers(value: Any) -> Iterator[float]:
    """Every finite number in a document."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from numbers(part)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)


@pytest.mark.parametrize("name", ALL)
def test_no_number_of_truth_and_route_and_no_path_is_on_the_page(name: str, tmp_path: Path) -> None:
    rows = "".join(f"{0.1234567 + user / 29:.7f}\n" for user in range(40))
    (tmp_path / "secret-place.csv").write_text(f"hours\n{rows}")
    from_file = 'kind = "csv"\npath = "secret-place.csv"\n'
    place = recorded(tmp_path, ALL[name].replace('kind = "uniform"\n', from_file))
    result = read_json(place / "result.json")
    if "secret-place" in (place / "spec.toml").read_text():  # digests and run id would tell the seed, and so the truth
        with pytest.raises(Refused, match="seed"):
            write_participants_page(place, None)
        assert not (place / PARTICIPANTS_PAGE).exists()
    else:
        assert write_participants_page(place, None) == place / PARTICIPANTS_PAGE
    shown = page(edition_in(read_evidence(place), None))
    hidden = secrets(place)
    assert {number(result[name]) for name in ("seconds", "bytes", "messages")} & hidden
    error = result["error"][0] if isinstance(result["error"], list) else result["error"]
    assert {repr(error), number(error)} <= hidden
    words = set(re.split(r"[^0-9a-z.+-]+", re.sub(r"<code.*?</code>", "", read(shown).said)))
    assert hidden & words == set()
    for secret in ("secret-place", str(tmp_path), "0.1234567"):
        assert secret not in shown
    owns = (place / "report.html").read_text()
    assert number(float(result["seconds"])) in owns
    for secret in ("secret-place", str(tmp_path)):
        assert secret not in owns, "paths are for nobody"


def test_hidden_paths_of_long_walks_are_left_to_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    run = quiet(RUNS["walk"])
    methods = {claim["method"] for claim in edition(run)["claims"] if claim["observer"] == "node"}
    assert "hidden-path" in methods
    monkeypatch.setattr("p2pdp.runs.outlook.STEPS_MAX", run.plan.plan.length - 1)
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


def test_the_edition_of_a_folder_is_that_of_the_plan(tmp_path: Path) -> None:
    place = recorded(tmp_path, COMPLETE)
    evidence = read_evidence(place)
    made = edition_in(evidence, None)
    run = plan_run(evidence.spec, evidence.roster.n, 1, sampler="seeded")
    around = replace(AROUND, run_id=evidence.roster.run_id.hex(), seeded=True)
    assert made.to_json() == edition_of(run, evidence, around).to_json()
    assert made.to_json()["digests"] is None, "they would tell the seed of a simulation"
    live = edition_of(run, evidence, replace(around, seeded=False)).to_json()
    assert live["digests"]["roster"] == evidence.roster.digest.hex()
    assert "of" not in live["digests"], "ends of ledgers are for the auditor"


def test_altered_evidence_makes_no_edition(tmp_path: Path) -> None:
    place = recorded(tmp_path, COMPLETE)
    file = place / "nodes" / "0001" / "view.ledger"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(VerificationFailed, match="node 1"):
        write_participants_page(place, None)
    file.unlink()
    assert write_participants_page(place, tmp_path / "page.html").is_file()


def test_a_ledger_that_ends_before_what_was_published_makes_no_edition(tmp_path: Path) -> None:
    """Cut at an entry, it may be whole but for its end: the result beside it says that there was more."""
    place = recorded(tmp_path, COMPLETE)
    file = place / "curator" / "view.ledger"
    whole = file.read_bytes()
    said = []
    for end in range(0, len(whole), len(whole) // 8):
        file.write_bytes(whole[:end])
        try:  # it can be made where only what comes after the result is missing
            write_participants_page(place, tmp_path / "page.html")
        except VerificationFailed as error:
            said.append("result.json" in str(error))
    assert any(said)


def test_one_nodes_part_makes_none(tmp_path: Path) -> None:
    place = recorded(tmp_path, COMPLETE)
    shutil.rmtree(place / "curator")
    for user in (0, 1, 3, 4):
        shutil.rmtree(place / "nodes" / f"{user:04d}")
    with pytest.raises(UsageError, match="one node"):
        write_participants_page(place, None)
