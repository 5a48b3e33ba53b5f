"""Input files: plain or packed, and what is said when they cannot be read."""

from __future__ import annotations

import gzip
import os
import zlib
from contextlib import suppress
from pathlib import Path

import pytest

import p2pdp
from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.files import reading
from p2pdp.files.folder import read_evidence
from p2pdp.files.reading import UNPACKED_BYTES_LEAST, in_folder, inside, read_bytes, read_text, unpacked
from tests.support.small import recorded


def test_plain_and_packed_files_read_alike(tmp_path: Path) -> None:
    content = "\ufeffzwölf\r\nTürme\n".encode()
    (tmp_path / "a.txt").write_bytes(content)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(content))
    assert read_bytes(tmp_path / "a.txt") == read_bytes(tmp_path / "a.txt.gz") == content
    assert read_text(tmp_path / "a.txt") == read_text(tmp_path / "a.txt.gz") == "zwölf\r\nTürme\n"


def test_a_packed_file_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "UNPACKED_BYTES_MAX", 1 << 20)
    for more in (0, 1):
        (tmp_path / "zeros.gz").write_bytes(gzip.compress(bytes((1 << 20) + more)))
        if more:
            with pytest.raises(UsageError, match=r"zeros\.gz: holds more than 1 MiB"):
                read_bytes(tmp_path / "zeros.gz")
        else:
            assert len(read_bytes(tmp_path / "zeros.gz")) == 1 << 20


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    whole = gzip.compress(b"1,2\n" * 1000)
    (tmp_path / "plain.gz").write_bytes(b"1,2\n")
    (tmp_path / "torn.gz").write_bytes(whole[:-20])
    (tmp_path / "altered.gz").write_bytes(whole[:-8] + bytes(8))
    for name in ("plain.gz", "torn.gz", "altered.gz"):
        with pytest.raises(UsageError, match=f"{name}: is not a whole gzip file"):
            read_bytes(tmp_path / name)
    with pytest.raises(UsageError, match=r"absent\.txt: cannot be read: No such file"):
        read_bytes(tmp_path / "absent.txt")
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        read_bytes(tmp_path)
    (tmp_path / "latin.txt").write_bytes(b"T\xfcrme")
    with pytest.raises(UsageError, match=r"latin\.txt: is not a text file in UTF-8"):
        read_text(tmp_path / "latin.txt")


def test_links_may_lead_within_the_folder_and_not_out_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "node").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (folder / "within").symlink_to("node")
    assert inside(folder, folder / "within" / "a") == folder / "within" / "a"
    (tmp_path / "link").symlink_to(folder)
    assert inside(tmp_path / "link", tmp_path / "link" / "node")
    (folder / "out").symlink_to(tmp_path / "other")
    (folder / "up").symlink_to("../../etc")
    (folder / "circle").symlink_to("circle")
    for name in ("out", "up", "../other", "out/a"):
        with pytest.raises(VerificationFailed, match="leads out"):
            inside(folder, folder / name)
    with suppress(VerificationFailed):  # newer Pythons see that it leads nowhere
        assert not inside(folder, folder / "circle").is_file()


@pytest.mark.parametrize("name", ["spec.toml", "roster.json", "nodes/0002/view.ledger", "nodes/0001/private.ledger"])
def test_evidence_is_read_from_the_folder_alone(name: str, tmp_path: Path) -> None:
    place = recorded(tmp_path)
    (place / name).rename(tmp_path / "elsewhere")
    (place / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(VerificationFailed, match="leads out"):
        read_evidence(place)


def test_a_whole_folder_of_skeletons_elsewhere_is_not_read(tmp_path: Path) -> None:
    place = recorded(tmp_path)
    (place / "nodes" / "0002" / "view.ledger").unlink()
    (tmp_path / "elsewhere").mkdir()
    (place / "curator" / "skeletons").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(VerificationFailed, match="leads out"):
        read_evidence(place)


def test_what_is_packed_has_a_limit(tmp_path: Path) -> None:
    for content in (b"", b"abc" * 1000, bytes(UNPACKED_BYTES_LEAST)):
        assert unpacked(zlib.compress(content)) == content
    for data in (zlib.compress(bytes(UNPACKED_BYTES_LEAST + 1)), zlib.compress(b"a")[:-1], zlib.compress(b"a") + b"b"):
        with pytest.raises(zlib.error):
            unpacked(data)
    file = tmp_path / "file"
    p2pdp.export(recorded(tmp_path), file)
    magic = file.read_bytes()[:16]
    file.write_bytes(magic + zlib.compress(bytes(UNPACKED_BYTES_LEAST * 2)))
    with pytest.raises(VerificationFailed):
        read_evidence(file)
    file.write_bytes(b"?" + magic)
    with pytest.raises(UsageError):
        read_evidence(file)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_file_is_not_read_from_a_folder(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    with pytest.raises(VerificationFailed, match=r"result\.json"):
        in_folder(tmp_path, "result.json")


def test_what_is_not_there_may_be_asked_for(tmp_path: Path) -> None:
    assert not in_folder(tmp_path, "result.json").exists()
    (tmp_path / "result.json").write_text("{}")
    assert in_folder(tmp_path, "result.json").read_text() == "{}"
