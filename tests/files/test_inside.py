from __future__ import annotations

import zlib
from contextlib import suppress
from pathlib import Path

import pytest

import p2pdp
from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.files.folder import read_evidence
from p2pdp.files.inside import UNPACKED_BYTES_LEAST, inside, unpacked
from tests.support.small import recorded


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
