from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2pdp
from p2pdp.core.errors import Refused, UsageError, VerificationFailed
from p2pdp.files.folder import read_evidence
from p2pdp.ledger import records
from p2pdp.runs.audit import (
    audit,
    check_pairs_file,
    export,
    sharing_in,
    signed_graph,
    verify,
    views,
)
from p2pdp.sim.faults import Crash
from tests.support.gossips import gossip
from tests.support.pairwise_runs import simulated
from tests.support.pairwise_world import pairwise
from tests.support.small import ALL, COMPLETE, HISTOGRAM, RING, SPARSE, contents, recorded


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
    with pytest.raises(VerificationFailed, match=r"node 1: the ledger is missing \(and 1 more.*with --allow-missing"):
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
    assert signed_graph(roster, found) is not None
    facts = tuple((name, "00" * 32 if name == "graph" else value) for name, value in roster.facts)
    assert signed_graph(replace(roster, facts=facts), found) is None
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
    with pytest.raises(VerificationFailed, match="node bootstrap: the spec is not the one"):
        list(views(place))


def test_shared_noise_is_told_by_who_knows_it_and_who_hides_whom() -> None:
    """On a ring of 8: user 2 vanishes, so its neighbours reveal what they share with it, and user 5 colludes."""
    ran = simulated(pairwise(8, '"ring"', "survivors_min = 5"), 2, Crash(2, at_s=0.0075, down_s=None))
    found = sharing_in(8, ran.recorded.transcript, (5,))
    assert found is not None
    assert found.edges == sorted([(0, 7), *((user, user + 1) for user in range(7))])
    assert found.known == {(1, 2), (2, 3), (4, 5), (5, 6)}
    assert (found.away, found.colluders) == ({2}, {5})
    assert list(found.groups) == [(0, 1, 6, 7), (3, 4)]


def test_digests_are_those_of_ledger_and_skeleton_and_change_with_either(tmp_path: Path) -> None:
    place = recorded(tmp_path, COMPLETE)
    found = verify(place).proof
    assert found is not None
    assert set(found.ledgers) == {"bootstrap", "curator", *map(str, range(5))}
    assert len({*found.ledgers.values(), found.together}) == 8
    export(place, tmp_path / "file")
    assert verify(tmp_path / "file").proof == found
    (tmp_path / "other").mkdir()
    other = verify(recorded(tmp_path / "other", COMPLETE, "run.seed=6")).proof
    assert other is not None
    assert other.spec != found.spec
    assert other.together != found.together
    (place / "spec.toml").write_text("")
    assert verify(place).to_json()["digests"] is None


def test_the_command_that_makes_the_claims_again_names_what_was_changed(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    for colluders, delta, words in (
        (None, None, "p2pdp audit FILE"),
        ([1, 2], 1e-3, "p2pdp audit FILE --colluders 1,2 --delta 0.001"),
    ):
        proof = audit(place, colluders, delta, allow_missing=False).proof
        assert proof is not None
        assert proof.audit == words


def test_rows_are_counted_where_private_ledgers_are_at_hand(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    assert audit(place, None, None, allow_missing=False).rows == (1,) * 4
    export(place, tmp_path / "file")
    assert audit(tmp_path / "file", None, None, allow_missing=False).rows is None


@pytest.mark.parametrize("name", ["ring", "complete", "average"])
def test_progress_goes_through_all_users_and_changes_nothing(name: str, tmp_path: Path) -> None:
    texts = {**ALL, "average": gossip(5, "ring")}
    place = recorded(tmp_path, texts[name])
    told: list[tuple[int, int]] = []
    found = p2pdp.audit(place, progress=lambda done, total: told.append((done, total)))
    assert found.to_json() == p2pdp.audit(place).to_json()
    assert set(told) <= {(done, found.nodes) for done in range(1, found.nodes + 1)}
    assert told[-1] == (found.nodes, found.nodes)


def test_headline_and_worst_are_those_of_the_document(tmp_path: Path) -> None:
    found = p2pdp.audit(recorded(tmp_path, COMPLETE))
    assert {"headline": found.headline, "worst": found.worst}.items() <= found.to_json().items()


@pytest.mark.parametrize(
    "wrong", [{"colluders": ["1"]}, {"colluders": "12"}, {"colluders": 5}, {"colluders": [1.0]}, {"delta": "a"}]
)
def test_arguments_of_wrong_types_are_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--delta|--colluders"):
        p2pdp.audit(recorded(tmp_path, COMPLETE), **wrong)
