"""Input files: plain or packed, and what is said when they cannot be read."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from p2pdp.core.errors import UsageError
from p2pdp.files import reading
from p2pdp.files.reading import read_bytes, read_text


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
