from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import p2pdp
from p2pdp.core.errors import VerificationFailed
from p2pdp.files.folder import read_evidence
from p2pdp.files.views import view_lines
from p2pdp.ledger import records
from p2pdp.ledger.records import DRAWN, LEDGER_MAGIC, OPENED, PUBLISHED, RECEIVED, SENT, STARTED, Chain
from p2pdp.mechanisms.reporting.contract import MalformedReport
from tests.support.gossips import gossip
from tests.support.shuffle_specs import shuffle
from tests.support.small import COMPLETE, HISTOGRAM, RING, recorded


def test_every_record_of_the_five_kinds_has_its_line(tmp_path: Path) -> None:
    evidence = read_evidence(recorded(tmp_path, COMPLETE))
    lines = list(view_lines(evidence, 1.0))
    names = {-2: "curator", -1: "bootstrap"}
    expected = [
        (names.get(peer, peer), record.index, records.KIND_NAMES[record.kind])
        for peer, data in sorted(evidence.views.items())
        for record in records.read(data).records
        if records.KIND_NAMES[record.kind] in ("received", "sent", "own", "published", "drawn")
    ]
    assert [(line["node"], line["index"], line["kind"]) for line in lines] == expected
    for line in lines:
        assert (line["peer"] is None) == (line["kind"] in ("own", "published", "drawn"))
        assert (line["values"] is None) == (line["digest"] is None or line["kind"] == "drawn")


def test_a_draw_that_two_users_share_names_the_other_user_and_its_number(tmp_path: Path) -> None:
    noise = 'mechanism = "gaussian"\nsigma = 2.0\npair_sigma = 4.0'
    lines = list(view_lines(read_evidence(recorded(tmp_path, gossip(3, "path", noise=noise))), 1.0))
    drawn = [line for line in lines if line["kind"] == "drawn" and line["peer"] is not None]
    shared = {(line["node"], line["peer"]): line for line in drawn}
    assert shared.keys() == {(0, 1), (1, 0), (1, 2), (2, 1)}
    for (node, peer), line in shared.items():
        assert (line["type"], line["step"], line["values"]) == ("gaussian", 0, None)
        assert line["digest"] == shared[peer, node]["digest"]


def test_numbers_are_in_data_units(tmp_path: Path) -> None:
    evidence = read_evidence(recorded(tmp_path, RING))
    once, thrice = (list(view_lines(evidence, step)) for step in (1.0, 3.0))
    assert [line["values"] and [3.0 * value for value in line["values"]] for line in once] == [
        line["values"] for line in thrice
    ]


def test_counts_are_lists(tmp_path: Path) -> None:
    lines = list(view_lines(read_evidence(recorded(tmp_path, HISTOGRAM)), 1.0))
    tokens = [line for line in lines if line["type"] == "token"]
    assert {len(line["values"]) for line in tokens} == {3}
    assert all(type(value) is float for line in tokens for value in line["values"])
    first = next(line for line in tokens if line["step"] == 1)
    assert first["values"] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (RECEIVED, ()),
        (RECEIVED, (0.0, 1)),
        (RECEIVED, (0.0, 1, 7)),
        (RECEIVED, (0.0, 1, b"\xc1")),
        (RECEIVED, (0.0, [1], b"\x92\xa1x\x90")),
        (SENT, (b"", 1)),
        (PUBLISHED, ()),
        (DRAWN, ()),
    ],
)
def test_a_record_that_cannot_be_shown_is_named(kind: int, body: tuple[object, ...], tmp_path: Path) -> None:
    chain = Chain()
    data = LEDGER_MAGIC + chain.append(OPENED, ("view", b"", 0)) + chain.append(STARTED, (0.0,))
    evidence = read_evidence(recorded(tmp_path))
    broken = replace(evidence, views={2: data + chain.append(kind, body)})
    with pytest.raises(VerificationFailed, match="ledger of 2, record 2"):
        list(view_lines(broken, 1.0))
    with pytest.raises(VerificationFailed, match="ledger of curator"):
        list(view_lines(replace(evidence, views={-2: b"nothing"}), 1.0))


def test_opened_reports_are_the_curators_own_and_sealed_ones_have_digests_only(tmp_path: Path) -> None:
    place = recorded(tmp_path, shuffle(4))
    lines = list(p2pdp.views(place))
    opened = [line for line in lines if line["type"] == "opened"]
    assert {(line["node"], line["kind"], line["peer"], line["step"]) for line in opened} == {
        ("curator", "own", None, None)
    }
    assert len(opened) == 4
    assert all(line["values"] in ([0.0], [1.0], [2.0]) for line in opened)
    sealed = [line for line in lines if line["type"] in ("relay", "report")]
    assert all(line["values"] is None and line["digest"] is not None for line in sealed)
    assert not {line["token"] for line in opened} & {line["token"] for line in sealed}, "no message tells the name"
    assert {line["step"] for line in lines if line["type"] == "mark"} == {1, 2, 3, 4}
    skeletons = tmp_path / "skeletons"
    p2pdp.export(place, skeletons)
    assert all(line["values"] is None for line in p2pdp.views(skeletons))


def test_a_report_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    evidence = read_evidence(recorded(tmp_path, shuffle(4)))

    def unreadable(_: bytes) -> None:
        raise MalformedReport("it is none")

    with pytest.raises(VerificationFailed, match="the ledger of curator, record"):
        list(view_lines(evidence, 1.0, unreadable))
