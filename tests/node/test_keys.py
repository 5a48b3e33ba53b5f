from __future__ import annotations

from pathlib import Path

import pytest

from p2pdp.core.errors import VerificationFailed
from p2pdp.node.keys import durable_secret, write_durably


def test_a_secret_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    secret = durable_secret(tmp_path / "run.key")
    assert durable_secret(tmp_path / "run.key") == secret
    assert durable_secret(tmp_path / "other.key") != secret
    assert (tmp_path / "run.key").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.key", "run.key"]


def test_a_damaged_secret_is_refused_and_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "run.key").write_bytes(b"short")
    with pytest.raises(VerificationFailed):
        durable_secret(tmp_path / "run.key")
    assert (tmp_path / "run.key").read_bytes() == b"short"


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    write_durably(tmp_path / "seat", b"first")
    write_durably(tmp_path / "seat", b"2")
    assert (tmp_path / "seat").read_bytes() == b"2"
    assert len(list(tmp_path.iterdir())) == 1
