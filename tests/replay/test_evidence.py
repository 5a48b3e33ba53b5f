from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import CURATOR
from p2pdp.core.spec import DataPart, GraphPart, NoisePart, RunPart, Spec, TaskPart
from p2pdp.files.folder import read_evidence
from p2pdp.files.spec import parse_spec
from p2pdp.ledger.records import LEDGER_MAGIC
from p2pdp.ledger.stored import bytes_of
from p2pdp.replay.evidence import Evidence
from p2pdp.replay.findings import NotFollowed
from tests.support.runs import quiet
from tests.support.shuffle_specs import shuffle
from tests.support.small import COMPLETE, RING, SPARSE, recorded


def test_the_text_of_evidence_shows_no_ledger() -> None:
    spec = Spec(RunPart("walk.sum", 4), GraphPart("ring"), NoisePart("none"), DataPart("uniform"), TaskPart("sum"))
    roster = cast("Any", "the roster")
    evidence = Evidence(spec, b"digest", roster, {0: LEDGER_MAGIC + b"inside"}, {0: LEDGER_MAGIC + b"inside"})
    assert "inside" not in repr(evidence)
    assert "p2pdp ledger" not in repr(evidence)


def test_private_ledgers_need_not_be_at_hand() -> None:
    spec = Spec(RunPart("walk.sum", 4), GraphPart("ring"), NoisePart("none"), DataPart("uniform"), TaskPart("sum"))
    first, second = (Evidence(spec, b"digest", cast("Any", None), {}) for _ in range(2))
    assert (first.private, first.own) == ({}, None)
    assert first.private is not second.private


def test_own_records_and_values(tmp_path: Path) -> None:
    evidence = read_evidence(recorded(tmp_path, RING))
    contents = evidence.chained(2)
    assert contents is not None
    assert contents.records
    assert evidence.chained(9) is None
    assert len(evidence.inputs(2) or []) == 1


def test_an_altered_ledger_is_named(tmp_path: Path) -> None:
    place = recorded(tmp_path, RING)
    ledger = place / "curator" / "view.ledger"
    data = bytearray(ledger.read_bytes())
    data[len(data) // 2] ^= 1
    ledger.write_bytes(data)
    with pytest.raises(VerificationFailed, match="node curator"):
        read_evidence(place).chained(CURATOR)


def test_the_same_views_under_an_equal_plan_share_a_transcript() -> None:
    run = quiet(RING)
    evidence = run.evidence
    users = evidence.recorded(evidence.begun)
    assert evidence.recorded(evidence.begun, run.world.run) is users
    assert evidence.recorded([CURATOR]) is not users
    assert evidence.recorded([CURATOR]).views.keys() == {CURATOR}
    other = replace(run.world.run, plan=replace(run.plan.plan, steps=run.plan.plan.steps + 4))
    assert evidence.recorded(evidence.begun, other) is not users


def test_a_transcript_is_made_ahead_once_and_what_does_not_follow_is_left_to_who_asks() -> None:
    evidence = quiet(RING).evidence
    recorded = evidence.recorded(evidence.begun)
    ahead = recorded.ahead
    assert ahead is not None
    ahead()
    assert recorded.ahead is None
    made = recorded.transcript
    assert recorded.transcript is made
    run = evidence.run
    other = evidence.recorded(evidence.begun, replace(run, plan=replace(run.plan, steps=run.plan.steps - 1)))
    assert other.ahead is not None
    other.ahead()
    with pytest.raises(NotFollowed):
        _ = other.transcript


def test_one_ledger_is_looked_at_without_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = quiet(RING).evidence
    looked_at: list[object] = []

    def counting(ledger: object) -> bool:
        looked_at.append(ledger)
        return True

    monkeypatch.setattr("p2pdp.replay.evidence.has_begun", counting)
    assert evidence.begins(CURATOR)
    assert not evidence.begins(99)
    assert looked_at == [evidence.views[CURATOR]]
    assert evidence.begun == list(evidence.views)


def test_other_views_are_parsed_and_the_rest_is_not_parsed_again(tmp_path: Path) -> None:
    evidence = read_evidence(recorded(tmp_path, RING))
    curator, user = evidence.contents(CURATOR), evidence.contents(1)
    more = evidence.having({1: evidence.views[2]})
    assert more.contents(CURATOR) is curator
    assert more.contents(1) is not user
    assert more.contents(1).records[0].body.peer == 2
    assert evidence.contents(1) is user


def test_neighbours_are_told_by_the_beginning_of_a_ledger(tmp_path: Path) -> None:
    evidence = read_evidence(recorded(tmp_path, SPARSE))
    for user in range(6):
        assert evidence.neighbours_told(user) == sorted(evidence.contents(user).records[0].body.neighbours)
    begun = replace(evidence, views={1: bytes_of(evidence.views[1]), 2: b"", 3: evidence.views[CURATOR]})
    assert begun.neighbours_told(1) == evidence.neighbours_told(1)
    assert [begun.neighbours_told(user) for user in (0, 2, 3)] == [None, None, None]
    assert quiet(COMPLETE).evidence.neighbours_told(1) is None


@pytest.mark.parametrize("named", [[3, 1], [3, 6], [3, -1], [3, "4"], "everybody", None])
def test_neighbours_that_nobody_can_have_are_not_told(monkeypatch: pytest.MonkeyPatch, named: object) -> None:
    evidence = quiet(SPARSE).evidence
    opening = evidence.contents(1).records[0]
    altered = replace(opening, body=opening.body._replace(neighbours=named))
    monkeypatch.setattr("p2pdp.replay.evidence.first_of", lambda _ledger: altered)
    assert evidence.neighbours_told(1) is None


def test_spec_and_roster_that_do_not_fit_are_found(tmp_path: Path) -> None:
    evidence = read_evidence(recorded(tmp_path, RING))
    spec = parse_spec(shuffle(4), None)
    with pytest.raises(VerificationFailed):
        _ = replace(evidence, spec=spec).run
