from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from p2pdp.core.errors import NotReady, UsageError, VerificationFailed
from p2pdp.files.folder import read_evidence
from p2pdp.files.spec import parse_spec, spec_digest
from p2pdp.ledger.journal import PRIVATE, Journal
from p2pdp.ledger.records import CLOSED, INPUTS, LEDGER_MAGIC, OPENED, POOL, chain_problem, read
from p2pdp.node.folder import NodeFolder, is_node_folder
from tests.support.local import SPEC
from tests.support.toys import roster

SEATED = roster(3, spec_digest=spec_digest(parse_spec(SPEC, None)))
FACTS = {"identity": "ab", "bootstrap": "cd", "token": 1}


def test_a_folder_is_found_again_by_its_own_node_only(tmp_path: Path) -> None:
    place = tmp_path / "n"
    assert not is_node_folder(place)
    NodeFolder(place, FACTS)
    assert is_node_folder(place)
    assert NodeFolder(place, FACTS).work == place / "node"
    for name in FACTS:
        with pytest.raises(UsageError, match=name):
            NodeFolder(place, FACTS | {name: "other"})
    with pytest.raises(UsageError, match="not empty"):
        NodeFolder(tmp_path, FACTS)


def test_a_copy_whose_links_were_followed_is_not_started(tmp_path: Path) -> None:
    folder = NodeFolder(tmp_path / "n", FACTS)
    folder.work.mkdir()
    folder.take_seat(SEATED, 1)
    copied = shutil.copytree(tmp_path / "n", tmp_path / "copy")  # links are followed
    with folder.locked():
        pass
    with pytest.raises(UsageError, match=r"ln -s \.\./node"), NodeFolder(copied, FACTS).locked():
        pass


def test_one_process_at_a_time(tmp_path: Path) -> None:
    folder = NodeFolder(tmp_path / "n", FACTS)
    with folder.locked(), pytest.raises(NotReady, match="another process"), folder.locked():
        pass
    with folder.locked():
        pass


def test_with_its_seat_it_looks_like_a_run_of_which_one_view_is_at_hand(tmp_path: Path) -> None:
    folder = NodeFolder(tmp_path / "n", FACTS)
    folder.work.mkdir()
    folder.keep_spec(SPEC)
    (folder.work / "view.ledger").write_bytes(b"p2pdp ledger 01\n")
    assert not folder.has_seat
    for _ in range(2):  # a restart does it again
        folder.take_seat(SEATED, 2)
    assert folder.roster == SEATED
    assert folder.spec_text == SPEC
    evidence = read_evidence(folder.path)
    assert (evidence.own, evidence.views) == (2, {2: folder.view()})
    (folder.work / "seat").touch()
    assert folder.has_seat


def changed(path: Path) -> Iterator[None]:
    """Flips a bit here and there in a file, and cuts it."""
    good = path.read_bytes()
    for at in range(0, len(good), max(1, len(good) // 40)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        yield
        path.write_bytes(good[:at])
        yield
    path.write_bytes(good)


def test_a_spec_or_roster_that_was_changed_is_named_and_never_used(tmp_path: Path) -> None:
    folder = NodeFolder(tmp_path / "n", FACTS)
    folder.work.mkdir()
    folder.keep_spec(SPEC)
    folder.take_seat(SEATED, 2)
    for name in ("spec.toml", "roster.json"):
        path = folder.path / name
        for _ in changed(path):
            try:
                same = spec_digest(parse_spec(folder.spec_text, None)) == SEATED.spec_digest
                assert same, "white space, say"
                assert folder.roster.digest == SEATED.digest  # its signature is in the seat too
            except (VerificationFailed, UsageError) as error:
                assert str(path) in str(error)  # noqa: PT017  (what it says is the question)
    assert folder.spec_text == SPEC


def test_costs_that_were_changed_are_computed_again_and_counts_that_were_are_refused(tmp_path: Path) -> None:
    folder = NodeFolder(tmp_path / "n", FACTS)
    folder.work.mkdir()
    costs = [{"observer": "node", "epsilon": 1.5, "text": "so much"}]
    folder.keep_costs("terms", costs)
    assert folder.kept_costs("terms") == costs
    assert folder.kept_costs("others") is None
    for _ in changed(folder.path / "costs.json"):
        assert folder.kept_costs("terms") in (None, costs)
    for text in ('{"faults": [1]}', "{}", "[]", "{", "\xff"):
        (folder.work / "totals.json").write_text(text)
        with pytest.raises(VerificationFailed, match=r"totals\.json"):
            folder.faults()


def test_faults_are_those_of_the_node_s_end(tmp_path: Path) -> None:
    folder = NodeFolder(tmp_path / "n", FACTS)
    assert folder.faults() == {}
    folder.work.mkdir()
    (folder.work / "totals.json").write_text(json.dumps({"bytes": 1, "faults": {"gap": 2}}))
    assert folder.faults() == {"gap": 2}


def test_draws_are_forgotten_and_the_chain_still_verifies(tmp_path: Path) -> None:
    folder = NodeFolder(tmp_path / "n", FACTS)
    folder.work.mkdir()
    journal = Journal()
    journal.append_private(OPENED, (PRIVATE, bytes(16), 0), b"", b"")
    journal.append_private(INPUTS, (None, 1), b"an input", bytes(16))
    journal.append_private(POOL, (None, 0, "gaussian", 1.0, 0, [], 1), b"a draw", bytes(16))
    journal.append_private(CLOSED, (bytes(64),), b"", b"")
    before = b"".join(data for name, data in journal.take_writes() if name == PRIVATE)
    path = folder.work / "private.ledger"
    path.write_bytes(before)
    for _ in range(2):
        folder.forget_draws()
        after = path.read_bytes()
        assert b"a draw" not in after
        assert b"an input" not in after
    old, new = read(before), read(after)
    assert chain_problem(new) is None
    assert [(record.kind, record.body, record.hash) for record in new.records] == [
        (record.kind, record.body, record.hash) for record in old.records
    ]
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(each.name for each in folder.work.iterdir()) == ["private.ledger"]


def test_costs_are_kept_with_the_facts_that_they_follow_from_and_for_the_owner_only(tmp_path: Path) -> None:
    folder = NodeFolder(tmp_path / "n", FACTS)
    assert folder.kept_costs("ab") is None
    folder.keep_costs("ab", [{"epsilon": 1.5}])
    assert folder.kept_costs("ab") == [{"epsilon": 1.5}]
    assert folder.kept_costs("cd") is None
    assert (tmp_path / "n" / "costs.json").stat().st_mode & 0o777 == 0o600


def test_a_node_has_begun_once_it_is_admitted_and_has_a_ledger(tmp_path: Path) -> None:
    folder = NodeFolder(tmp_path / "n", FACTS)
    folder.work.mkdir()
    (folder.work / "view.ledger").write_bytes(LEDGER_MAGIC)
    assert not folder.has_begun
    folder.take_seat(roster(3), 2)
    assert folder.has_begun
    (folder.work / "view.ledger").unlink()
    assert not folder.has_begun
