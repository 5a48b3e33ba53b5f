from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import p2pdp
from p2pdp.core.spec import GraphPart
from p2pdp.runs.audit import audit
from p2pdp.runs.pages import distances_in, page_facts, write_page
from p2pdp.topology.graphs import graph_of_edges, make_graph
from tests.support.estimates import PRIVATE
from tests.support.learners import prepared
from tests.support.made import read
from tests.support.small import ALL, COMPLETE, HISTOGRAM, RING, SPARSE, contents, recorded, spec_file


def report(place: Path) -> str:
    return (place / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ALL)
def test_every_run_that_is_audited_leaves_a_page(name: str, tmp_path: Path) -> None:
    place = recorded(tmp_path, ALL[name])
    page = read(report(place))
    result = json.loads((place / "result.json").read_text())
    assert result["run_id"] in page.said
    assert "seed 5" in page.said
    assert "started" not in page.said, "no file of a simulation holds a time of day"


def test_the_same_seed_gives_the_same_page_and_an_audit_makes_it_again(tmp_path: Path) -> None:
    place = recorded(tmp_path, COMPLETE)
    made = report(place)
    (tmp_path / "again").mkdir()
    assert report(recorded(tmp_path / "again", COMPLETE)) == made
    p2pdp.audit(place).save(place)
    assert report(place) == made
    p2pdp.audit(place, delta=1e-3, colluders=[1, 2]).save(place)
    assert "colluding users: 1, 2" in read(report(place)).said


def test_what_is_not_audited_leaves_none(tmp_path: Path) -> None:
    assert "report.html" not in contents(recorded(tmp_path, RING, "run.audit=false"))
    spec = spec_file(tmp_path)
    p2pdp.simulate(spec, tmp_path / "fast", fast=True)
    assert "report.html" not in contents(tmp_path / "fast")


def test_nothing_is_written_beside_an_exported_file(tmp_path: Path) -> None:
    place = recorded(tmp_path, RING)
    p2pdp.export(place, tmp_path / "file")
    before = contents(tmp_path)
    p2pdp.audit(tmp_path / "file").save(tmp_path / "file")
    assert contents(tmp_path) == before


def test_trials_leave_the_page_of_the_first(tmp_path: Path) -> None:
    spec = spec_file(tmp_path)
    p2pdp.simulate(spec, tmp_path / "one")
    p2pdp.simulate(spec, tmp_path / "three", trials=3)
    assert report(tmp_path / "one") == report(tmp_path / "three")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "no readable result.json"),
        ("{", "no readable result.json"),
        ('{"run_id": "00"}', "that of another run"),
        ("[]", "no readable result.json"),
    ],
)
def test_a_result_that_is_gone_or_foreign_is_missed_and_nothing_else(
    text: str | None, said: str, tmp_path: Path
) -> None:
    place = recorded(tmp_path)
    if text is None:
        (place / "result.json").unlink()
    else:
        (place / "result.json").write_text(text)
    p2pdp.audit(place).save(place)
    page = read(report(place))
    assert said in page.said
    assert "worst pair" in page.said


def test_a_damaged_result_is_named(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    result = json.loads((place / "result.json").read_text())
    (place / "result.json").write_text(json.dumps(result | {"estimate": {"<b>": 1}}))
    p2pdp.audit(place).save(place)
    assert "cannot be used" in read(report(place)).said


def test_distances_are_those_of_the_graph_that_was_signed(tmp_path: Path) -> None:
    place = recorded(tmp_path, SPARSE)
    found = p2pdp.audit(place)
    facts = page_facts(place, found)
    assert facts.distances is not None
    assert set(np.unique(facts.distances)) == {0.0, 1.0, 2.0}
    facts = page_facts(place, replace(found, graph=None))
    assert facts.distances is None
    assert facts.no_distances


def test_the_edge_list_that_the_spec_names_is_never_opened_again(tmp_path: Path) -> None:
    edges = tmp_path / "edges.csv"
    edges.write_text("a,b\nb,c\nc,d\n")
    text = COMPLETE.replace("nodes = 5\n", "").replace('kind = "complete"', 'kind = "file"\npath = "edges.csv"')
    place = recorded(tmp_path, text)
    assert "edges between the two users" in read(report(place)).said
    before = report(place)
    edges.unlink()
    p2pdp.audit(place).save(place)
    assert report(place) == before
    os.mkfifo(edges)  # whoever opened it would wait for ever
    p2pdp.audit(place).save(place)
    assert report(place) == before


def test_distances_on_known_graphs() -> None:
    ring = distances_in(make_graph(GraphPart("ring"), 7, 0))
    users = np.arange(7)
    around = np.abs(users[:, None] - users[None, :])
    assert np.array_equal(ring, np.minimum(around, 7 - around))
    assert np.array_equal(distances_in(make_graph(GraphPart("complete"), 4, 0)), 1 - np.eye(4))
    apart = distances_in(graph_of_edges(4, [(0, 1), (2, 3)]))
    assert apart[0, 1] == 1.0
    assert apart[0, 2] == math.inf


def test_curves_pass_through_the_claims_they_belong_to(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    found = p2pdp.audit(place)
    facts = page_facts(place, found)
    bounds = [claim for claim in found.claims if claim.bound]
    for claim, curve in zip(bounds, facts.curves, strict=True):
        assert dict(curve.points)[found.delta] == claim.epsilon_max
        deltas = [delta for delta, _ in curve.points]
        epsilons = [epsilon for _, epsilon in curve.points]
        assert deltas == sorted(deltas)
        assert epsilons == sorted(epsilons, reverse=True)
    assert len(facts.curves[0].points) > 10


def test_a_claim_without_mu_is_one_point_and_a_published_one_has_no_curve(tmp_path: Path) -> None:
    place = recorded(tmp_path, HISTOGRAM)
    found = p2pdp.audit(place)
    facts = page_facts(place, found)
    assert [len(curve.points) for curve in facts.curves] == [1] * len(found.claims)
    printed = replace(found.claims[0], bound=False)
    assert page_facts(place, replace(found, claims=[printed])).curves == []


def test_leaks_of_another_conditioning_are_not_mixed_in(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    found = p2pdp.audit(place)
    assert page_facts(place, found).mu is not None
    view = replace(found, epsilon_conditioning="view")
    facts = page_facts(place, view)
    assert (facts.mu, facts.conditioning) == (None, "view")
    write_page(place, view)
    assert "given what the observer itself saw" in read(report(place)).said


def test_colluders_have_an_epsilon_for_each_user_but_themselves(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    found = p2pdp.audit(place, colluders=[1, 3])
    coalition = page_facts(place, found).coalition
    assert coalition is not None
    assert [math.isnan(value) for value in coalition] == [False, True, False, True]
    worst = next(claim for claim in found.claims if claim.observer == "coalition")
    assert np.nanmax(coalition) == worst.epsilon_max


def test_estimates_that_cost_epsilon_are_in_the_numbers_for_pairs_and_colluders(tmp_path: Path) -> None:
    """Mu alone knows nothing of that cost, so no guess rests on it."""
    place = tmp_path / "run"
    p2pdp.simulate(prepared(PRIVATE)[0].spec, place)
    found = p2pdp.audit(place, colluders=[1])
    facts = page_facts(place, found)
    assert facts.mu is None
    assert facts.coalition is not None
    worst = next(claim for claim in found.claims if claim.observer == "coalition")
    assert worst.epsilon_max is not None
    assert np.nanmax(facts.coalition) == pytest.approx(worst.epsilon_max)


HOSTILE = "<script>alert(1)<img src=x>'&"


def test_hostile_texts_of_a_spec_stay_texts(tmp_path: Path) -> None:
    """Paths and column names are the free texts of a spec."""
    (tmp_path / f"{HOSTILE}.csv").write_text(f"{HOSTILE}\n" + "0.5\n" * 4)
    data = f'kind = "csv"\npath = "{HOSTILE}.csv"\ncolumns = ["{HOSTILE}"]\n'
    page = read(report(recorded(tmp_path, RING.replace('kind = "uniform"\n', data))))
    assert page.names().isdisjoint({"script", "img"})
    assert page.said.count("<script>alert(1)") == 3, "as a column in what ran, in the setting and in the whole spec"
    assert ".csv" not in page.said


def test_a_page_of_a_hundred_users_is_light(tmp_path: Path) -> None:
    place = recorded(tmp_path, COMPLETE, "run.nodes=100", "walk.hops=600")
    assert (place / "report.html").stat().st_size < 500_000


def test_runs_without_shared_noise_have_none_in_the_report(tmp_path: Path) -> None:
    place = recorded(tmp_path, RING)
    assert page_facts(place, audit(place, None, None, allow_missing=False)).sharing is None
