from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from p2pdp.core.errors import NotReady, UsageError
from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.files.keys import (
    AUDITOR_PUBLIC_FILE,
    AUDITOR_SECRET_FILE,
    PUBLIC_FILE,
    SECRET_FILE,
    read_auditor_key,
    read_identity,
    write_auditor_key,
    write_identity,
)

SEED = bytes(range(32))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    public = write_identity(tmp_path / "a" / "b", SEED)
    assert public == Identity(SEED).public.hex()
    assert (tmp_path / "a" / "b" / PUBLIC_FILE).read_text() == public + "\n"
    assert read_identity(tmp_path / "a" / "b" / SECRET_FILE).public.hex() == public
    assert (tmp_path / "a" / "b" / SECRET_FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("half", [SECRET_FILE, PUBLIC_FILE])
def test_nothing_is_overwritten_and_no_half_is_left(half: str, tmp_path: Path) -> None:
    (tmp_path / half).write_text("precious")
    with pytest.raises(UsageError, match="holds an identity already"):
        write_identity(tmp_path, SEED)
    assert [path.name for path in tmp_path.iterdir()] == [half]
    assert (tmp_path / half).read_text() == "precious"


def test_a_full_disk_leaves_no_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("p2pdp.files.keys.os.fdopen", full)
    with pytest.raises(NotReady, match="No space left"):
        write_identity(tmp_path, SEED)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match="--out"):
            write_identity(place, SEED)


@pytest.mark.parametrize("content", [b"", b"00", b"g" * 64, b"0" * 63, b"0" * 66, b"\xff" * 64])
def test_what_is_no_key_is_refused_without_being_quoted(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "some.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(UsageError, match="is not an identity key") as caught:
        read_identity(path)
    assert "gggg" not in str(caught.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660])
def test_a_key_that_others_can_read_is_refused(mode: int, tmp_path: Path) -> None:
    write_identity(tmp_path, SEED)
    (tmp_path / SECRET_FILE).chmod(mode)
    with pytest.raises(UsageError, match="chmod 600"):
        read_identity(tmp_path / SECRET_FILE)


def test_a_key_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none"):
        read_identity(tmp_path / "none.key")


def test_an_auditors_key_is_no_identity_and_is_kept_as_one(tmp_path: Path) -> None:
    public = write_auditor_key(tmp_path, SEED)
    assert public == RunKey(SEED).public.hex()
    assert read_auditor_key(tmp_path / AUDITOR_SECRET_FILE).public.hex() == public
    assert (tmp_path / AUDITOR_PUBLIC_FILE).read_text() == public + "\n"
    assert (tmp_path / AUDITOR_SECRET_FILE).stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="already"):
        write_auditor_key(tmp_path, SEED)
    with pytest.raises(UsageError, match="--auditor"):
        read_auditor_key(_text(tmp_path / "short", "00"))
    (tmp_path / AUDITOR_SECRET_FILE).chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        read_auditor_key(tmp_path / AUDITOR_SECRET_FILE)


def _text(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path
