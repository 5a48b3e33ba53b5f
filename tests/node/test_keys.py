from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from p2pdp.core.errors import NotReady, VerificationFailed
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


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the name is made durable too; a crash before leaves the old file as it was."""
    path = tmp_path / "run.key"
    synced: list[tuple[bool, bool]] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append((path.exists(), stat.S_ISDIR(os.fstat(descriptor).st_mode)))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    write_durably(path, b"secret")
    assert synced == [(False, False), (True, True)]

    def crashes(_descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", crashes)
    with pytest.raises(KeyboardInterrupt):
        write_durably(path, b"other")
    assert path.read_bytes() == b"secret"


def test_a_half_written_file_of_a_crash_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "run.key.half").write_bytes(b"a longer text than the secret that was to be written here")
    secret = durable_secret(tmp_path / "run.key")
    assert (tmp_path / "run.key").read_bytes() == secret
    assert [path.name for path in tmp_path.iterdir()] == ["run.key"]


def test_where_nothing_can_be_written_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotReady):
        durable_secret(tmp_path / "file" / "run.key")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NotReady, match="No space left"):
        durable_secret(tmp_path / "run.key")
    assert not (tmp_path / "run.key").exists()
