from __future__ import annotations

import json
import math
import os
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import p2pdp
from p2pdp.core.errors import Refused, UsageError, VerificationFailed
from p2pdp.core.spec import GraphPart
from p2pdp.files.folder import read_evidence
from p2pdp.ledger import records
from p2pdp.runs.audit import (
    _signed_graph,
    audit,
    check_pairs_file,
    distances_in,
    export,
    page_facts,
    verify,
    views,
    write_page,
)
from p2pdp.topology.graphs import graph_of_edges, make_graph
from tests.support.estimates import PRIVATE
from tests.support.gossips import gossip
from tests.support.learners import prepared
from tests.support.made import read
from tests.support.small import ALL, COMPLETE, HISTOGRAM, RING, SPARSE, contents, recorded, spec_file


@pytest.mark.parametrize("name", ALL)
def test_what_was_simulated_is_verified(name: str, tmp_path: Path) -> None:
    place = recorded(tmp_path, ALL[name])
    found = verify(place)
    assert (found.verified, found.problems) == ("complete", [])
    ledgers = [path.read_bytes() for path in place.rglob("*.ledger")]
    assert found.records == sum(len(records.read(data).records) for data in ledgers)


def test_spec_and_roster_that_cannot_be_read_are_a_problem_of_bootstrap(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    (place / "roster.json").write_text("[]")
    found = verify(place)
    assert (found.run_id, found.verified, found.records) == (None, None, 0)
    assert found.problems[0]["node"] == "bootstrap"
    assert "roster.json" in found.problems[0]["what"]


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, float("nan"), float("inf")])
def test_delta_is_a_probability(delta: float, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--delta"):
        audit(recorded(tmp_path), None, delta, allow_missing=False)


def test_a_spec_of_another_run_is_found(tmp_path: Path) -> None:
    place = recorded(tmp_path, COMPLETE)
    text = (place / "spec.toml").read_text()
    (place / "spec.toml").write_text(text.replace("sigma = 2.0", "sigma = 20.0"))
    assert verify(place).verified is None
    for allow_missing in (False, True):
        with pytest.raises(VerificationFailed, match="spec"):
            audit(place, None, None, allow_missing=allow_missing)
    (tmp_path / "other").mkdir()
    other = recorded(tmp_path / "other", HISTOGRAM)
    (place / "spec.toml").write_bytes((other / "spec.toml").read_bytes())
    with pytest.raises(VerificationFailed):
        audit(place, None, None, allow_missing=False)


def test_the_first_problem_is_named_and_the_others_are_counted(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    for user in (1, 2):
        (place / "nodes" / f"{user:04d}" / "view.ledger").unlink()
    with pytest.raises(VerificationFailed, match=r"node 1: the ledger is missing \(and 1 more"):
        audit(place, None, None, allow_missing=False)


def test_deleting_everything_private_changes_no_claim(tmp_path: Path) -> None:
    place = recorded(tmp_path, COMPLETE)
    before = audit(place, [1, 4], 1e-4, allow_missing=False).to_json()
    for path in place.rglob("private.ledger"):
        path.unlink()
    for path in place.rglob("view.ledger"):
        path.write_bytes(records.to_skeleton(path.read_bytes()))
    assert audit(place, [1, 4], 1e-4, allow_missing=False).to_json() == before


def test_an_export_holds_no_value_and_no_salt(tmp_path: Path) -> None:
    place = recorded(tmp_path, COMPLETE)
    assert export(place, tmp_path / "file") == 7
    data = (tmp_path / "file").read_bytes()
    packed = zlib.decompress(data[16:])
    secrets = [
        part
        for path in place.rglob("*.ledger")
        for record in records.read(path.read_bytes()).records
        if record.value
        for part in (record.value[: records.SALT_BYTES], record.value)
    ]
    assert len(secrets) > 100
    assert not [part for part in secrets if part in packed]
    assert list(contents(tmp_path)) == ["file", *(f"run/{name}" for name in contents(place)), "spec.toml"]


def test_pairs_are_written_where_something_is_exact(tmp_path: Path) -> None:
    found = audit(recorded(tmp_path), None, None, allow_missing=False)
    found.save_pairs(tmp_path / "pairs.npz")
    before = (tmp_path / "pairs.npz").read_bytes()
    with np.load(tmp_path / "pairs.npz", allow_pickle=False) as arrays:
        assert set(arrays) == {"mu", "leak", "epsilon", "epsilon_conditioning"}
        assert np.array_equal(arrays["mu"], found.mu, equal_nan=True)
    found.save_pairs(tmp_path / "pairs.npz")
    assert (tmp_path / "pairs.npz").read_bytes() == before
    (tmp_path / "other").mkdir()
    with pytest.raises(Refused, match="--pairs"):
        audit(recorded(tmp_path / "other", SPARSE), None, None, allow_missing=False).save_pairs(tmp_path / "no.npz")


def test_pairs_of_gossip_have_the_printed_leak_beside_the_exact_one(tmp_path: Path) -> None:
    found = audit(recorded(tmp_path, gossip(3, "path", "rounds = 2")), [0], None, allow_missing=False)
    found.save_pairs(tmp_path / "pairs.npz")
    with np.load(tmp_path / "pairs.npz", allow_pickle=False) as arrays:
        assert {"mu", "leak", "published", "mu_coalition", "leak_coalition"} <= set(arrays)
        assert arrays["published"][2, 0] == pytest.approx(1 / 3)
        assert arrays["leak"][2, 0] == arrays["leak_coalition"][2] == pytest.approx(1.0)
        assert np.isnan(np.diag(arrays["published"])).all()
    assert "understates what was told" in (tmp_path / "run" / "report.html").read_text()


def test_names_that_cannot_be_written_are_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "folder.npz").mkdir()
    for name in ("pairs", "pairs.npy", "none/pairs.npz", "folder.npz"):
        with pytest.raises(UsageError, match="--pairs"):
            check_pairs_file(tmp_path / name)


def test_the_graph_is_the_signed_one_where_all_ledgers_tell_it(tmp_path: Path) -> None:
    place = recorded(tmp_path, COMPLETE)
    roster = read_evidence(place).roster
    graph = p2pdp.audit(place).graph
    assert graph is not None
    assert graph.digest.hex() == dict(roster.facts)["graph"]
    found = {peer: records.read(view) for peer, view in read_evidence(place).views.items()}
    assert _signed_graph(roster, found) is not None
    facts = tuple((name, "00" * 32 if name == "graph" else value) for name, value in roster.facts)
    assert _signed_graph(replace(roster, facts=facts), found) is None
    (place / "nodes" / "0000" / "view.ledger").unlink()
    assert p2pdp.audit(place, allow_missing=True).graph is None


def test_the_audit_is_saved_in_a_folder_only(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    found = p2pdp.audit(place, delta=1e-3)
    found.save(place)
    assert b"0.001" in (place / "audit.json").read_bytes()
    export(place, tmp_path / "file")
    before = contents(tmp_path)
    found.save(tmp_path / "file")
    assert contents(tmp_path) == before


def test_one_nodes_part_is_verified_but_not_audited(tmp_path: Path) -> None:
    """What a node has on another machine: spec, roster and its own ledgers."""
    place = recorded(tmp_path, RING)
    own = tmp_path / "own"
    for name, data in contents(place).items():
        if name in ("spec.toml", "roster.json") or name.startswith("nodes/0002/"):
            (own / name).parent.mkdir(parents=True, exist_ok=True)
            (own / name).write_bytes(data)
    assert verify(own).verified == "complete"
    assert {line["node"] for line in views(own)} == {2}
    export(own, tmp_path / "file")
    assert verify(tmp_path / "file").verified == "complete"
    for part in (own, tmp_path / "file"):
        with pytest.raises(UsageError, match="one node's view only"):
            audit(part, None, None, allow_missing=False)


def test_spec_and_roster_that_do_not_fit_are_no_mistake_of_the_caller(tmp_path: Path) -> None:
    place = recorded(tmp_path, RING)
    text = (place / "spec.toml").read_text()
    (place / "spec.toml").write_text(text.replace("[0.0, 1.0]", "[-1e300, 1e300]"))
    with pytest.raises(VerificationFailed, match="do not belong together"):
        list(views(place))


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
    assert page.said.count("<script>alert(1)") >= 4, "twice in the setting and twice in the whole spec"


def test_a_page_of_a_hundred_users_is_light(tmp_path: Path) -> None:
    place = recorded(tmp_path, COMPLETE, "run.nodes=100", "walk.hops=600")
    assert (place / "report.html").stat().st_size < 500_000
