from __future__ import annotations

import os
from pathlib import Path

import pytest

import p2pdp
from p2pdp.core.errors import Refused, UsageError, VerificationFailed
from p2pdp.crypto.identity import RunKey
from p2pdp.crypto.sealed_skeleton import seal_skeleton
from p2pdp.files.folder import read_evidence, to_json
from p2pdp.files.keys import read_auditor_key
from p2pdp.files.skeletons import check_key, handed_in_skeletons, skeleton_name
from p2pdp.files.spec import load_spec
from p2pdp.ledger.records import read, to_skeleton
from tests.support.skeletons import curators_ledger
from tests.support.small import RING, recorded


def sealed_run(tmp_path: Path) -> tuple[Path, Path, bytes]:
    """A folder as bootstrap has it after all users handed in sealed skeletons; the key; the audit of the ledgers."""
    p2pdp.keygen(tmp_path / "auditor", auditor=True)
    key = tmp_path / "auditor" / "auditor.key"
    place = recorded(tmp_path, RING + '[audit]\nkey = "auditor/auditor.pub"\n')
    skeletons = place / "curator" / "skeletons"
    skeletons.mkdir()
    public = read_auditor_key(key).public
    for view in sorted(place.glob("nodes/*/view.ledger")):
        content = seal_skeleton(to_skeleton(view.read_bytes()), public, os.urandom(32), 1 << 14)
        (skeletons / skeleton_name(int(view.parent.name), content)).write_bytes(content)
        view.unlink()
        view.with_name("private.ledger").unlink()
    return place, key, (place / "audit.json").read_bytes()


def test_with_the_key_the_audit_has_the_same_bytes(tmp_path: Path) -> None:
    place, key, before = sealed_run(tmp_path)
    assert to_json(p2pdp.audit(place, key=key).to_json()).encode() + b"\n" == before
    assert p2pdp.verify(place, key=key).verified == "complete"
    assert p2pdp.export(place, tmp_path / "file", key=key) == 6
    assert to_json(p2pdp.audit(tmp_path / "file").to_json()).encode() + b"\n" == before
    assert p2pdp.verify(tmp_path / "file", key=key).verified == "complete"


def test_without_the_key_or_with_another_it_is_the_callers_mistake(tmp_path: Path) -> None:
    place, _, _ = sealed_run(tmp_path)
    p2pdp.keygen(tmp_path / "other", auditor=True)
    other = tmp_path / "other" / "auditor.key"
    for call in (p2pdp.audit, p2pdp.verify, lambda where, **more: p2pdp.export(where, tmp_path / "file", **more)):
        with pytest.raises(UsageError, match="--key"):
            call(place)
        with pytest.raises(UsageError, match="--key"):
            call(place, key=other)
        with pytest.raises(UsageError):
            call(place, key=tmp_path / "none")
    assert not (tmp_path / "file").exists()
    assert {line["node"] for line in p2pdp.views(place)} == {"bootstrap", "curator"}
    with pytest.raises(Refused, match="not at hand"):
        p2pdp.audit(place, allow_missing=True)


def test_a_key_of_a_spec_that_names_none_is_refused(tmp_path: Path) -> None:
    spec = load_spec(_spec(tmp_path))
    check_key(spec, None)
    with pytest.raises(UsageError, match="--key"):
        check_key(spec, RunKey(bytes([1] * 32)))


def _spec(tmp_path: Path) -> Path:
    (tmp_path / "plain.toml").write_text(RING)
    return tmp_path / "plain.toml"


def test_an_altered_one_and_one_of_the_wrong_kind_fail_verification(tmp_path: Path) -> None:
    place, key, _ = sealed_run(tmp_path)
    file = place / "curator" / "skeletons" / "0002.sealed"
    whole = file.read_bytes()
    file.write_bytes(whole[:99] + bytes([whole[99] ^ 1]) + whole[100:])
    with pytest.raises(VerificationFailed, match=r"0002\.sealed"):
        p2pdp.audit(place, key=key)
    file.write_bytes(whole)
    file.with_suffix(".skeleton").write_bytes(b"p2pdp skelet 01\n")
    with pytest.raises(VerificationFailed, match=r"0002\.skeleton"):
        p2pdp.audit(place, key=key)


def test_sealed_files_of_a_spec_without_a_key_fail_verification(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    (place / "curator" / "skeletons").mkdir()
    (place / "curator" / "skeletons" / "0001.sealed").write_bytes(b"p2pdp sealed 01\n")
    assert read_evidence(place).views, "the ledger of that user is here"
    (place / "nodes" / "0001" / "view.ledger").unlink()
    with pytest.raises(VerificationFailed, match=r"0001\.sealed"):
        read_evidence(place)


def test_a_skeleton_comes_together_from_its_pieces() -> None:
    ledger = curators_ledger((0, 0, b"abc"), (1, 0, b"xy"), (0, 3, b"def"), (1, 2, b"z"))
    assert handed_in_skeletons(read(ledger)) == {0: b"abcdef", 1: b"xyz"}
