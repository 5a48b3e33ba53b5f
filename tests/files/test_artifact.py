from __future__ import annotations

import os
import stat
import subprocess
import zipfile
from pathlib import Path

import pytest

from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.files.artifact import check_out, digest_of, digests_in, read_artifact, write_artifact
from tests.support.small import contents

FILES = {"artifact.json": b"{}\n", "spec.toml": b"[run]\n", "REPEAT.sh": b"#!/bin/sh\n", "expected/audit.json": b"[]\n"}


@pytest.mark.parametrize("name", ["made", "made.zip"])
def test_what_was_written_is_read(name: str, tmp_path: Path) -> None:
    digest = write_artifact(tmp_path / name, FILES, secret=False)
    assert read_artifact(tmp_path / name) == (FILES, digest)


def test_equal_contents_make_equal_bytes_at_all_times(tmp_path: Path) -> None:
    write_artifact(tmp_path / "a.zip", FILES, secret=False)
    write_artifact(tmp_path / "b.zip", dict(reversed(FILES.items())), secret=False)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.namelist() == sorted([*FILES, "SHA256SUMS"])
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_folder_and_zip_have_the_same_name(tmp_path: Path) -> None:
    digests = {write_artifact(tmp_path / name, FILES, secret=True) for name in ("a", "a.zip")}
    assert digests == {digest_of((tmp_path / "a" / "SHA256SUMS").read_bytes())}


def test_other_tools_can_check_the_digests(tmp_path: Path) -> None:
    write_artifact(tmp_path / "a", FILES, secret=False)
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path / "a", check=True)
    assert digests_in(tmp_path / "a").keys() == {*FILES, "SHA256SUMS"}


def test_a_secret_one_is_for_its_owner_only(tmp_path: Path) -> None:
    for name in ("a", "a.zip"):
        write_artifact(tmp_path / name, FILES, secret=True)
    for path in (tmp_path / "a.zip", *(path for path in (tmp_path / "a").rglob("*") if path.is_file())):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    write_artifact(tmp_path / "b", FILES, secret=False)
    assert os.access(tmp_path / "b" / "REPEAT.sh", os.X_OK)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("change", ["alter", "remove", "add"])
def test_every_change_of_every_file_is_found(change: str, packed: bool, tmp_path: Path) -> None:
    write_artifact(tmp_path / "whole", FILES, secret=False)
    whole = contents(tmp_path / "whole")
    for number, name in enumerate(whole):
        changed = dict(whole)
        if change == "add":
            changed[f"more{number}"] = b""
        else:
            data = changed.pop(name)
            if change == "alter":
                changed[name] = data[:-1] + bytes([data[-1] ^ 1])
        place = tmp_path / f"changed{number}{'.zip' if packed else ''}"
        if packed:
            with zipfile.ZipFile(place, "w") as archive:
                for each, data in changed.items():
                    archive.writestr(each, data)
        else:
            for each, data in changed.items():
                (place / each).parent.mkdir(parents=True, exist_ok=True)
                (place / each).write_bytes(data)
        with pytest.raises(VerificationFailed):
            read_artifact(place)


@pytest.mark.parametrize("name", ["../out", "/etc/x", "a/b/c", ".hidden", "a\\b", "expected/../x"])
def test_names_that_lead_elsewhere_are_refused(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(name, b"")
    with pytest.raises(VerificationFailed, match="no artifact has"):
        read_artifact(tmp_path / "a.zip")


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    write_artifact(tmp_path / "a", FILES, secret=False)
    (tmp_path / "a" / "spec.toml").unlink()
    (tmp_path / "a" / "spec.toml").symlink_to(tmp_path / "secret")
    with pytest.raises(VerificationFailed, match="leads out"):
        read_artifact(tmp_path / "a")


def test_what_unpacks_to_too_much_and_what_is_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("p2pdp.files.artifact.UNPACKED_BYTES_MAX", 1000)
    with zipfile.ZipFile(tmp_path / "big.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("spec.toml", bytes(1001))
    with pytest.raises(VerificationFailed, match="unpacks to more"):
        read_artifact(tmp_path / "big.zip")
    with zipfile.ZipFile(tmp_path / "twice.zip", "w") as archive:
        archive.writestr("spec.toml", b"a")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("spec.toml", b"b")
    with pytest.raises(VerificationFailed, match="twice"):
        read_artifact(tmp_path / "twice.zip")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_is_packed_in_another_way_is_refused(tmp_path: Path, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as archive:
        archive.writestr("spec.toml", b"a")
    with pytest.raises(VerificationFailed, match="packed in a way"):
        read_artifact(tmp_path / "a.zip")


def test_what_is_no_zip_is_refused_and_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(VerificationFailed, match="damaged"):
        read_artifact(tmp_path / "a.zip")
    with pytest.raises(UsageError, match="cannot be read"):
        read_artifact(tmp_path / "nowhere")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    for name in ("a", "a.zip"):
        write_artifact(tmp_path / name, FILES, secret=False)
        with pytest.raises(UsageError, match="--out"):
            check_out(tmp_path / name)
        with pytest.raises(UsageError, match="--out"):
            write_artifact(tmp_path / name, FILES, secret=False)
    (tmp_path / "empty").mkdir()
    check_out(tmp_path / "empty")
