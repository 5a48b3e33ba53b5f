from __future__ import annotations

from pathlib import Path

from p2pdp.files.secret import make_secret_file


def test_a_file_is_made_for_its_owner_and_one_that_is_there_stays(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_text("kept")
    old.chmod(0o640)
    for file in (new, old, tmp_path / "no" / "folder"):
        make_secret_file(file)
    assert (new.read_text(), new.stat().st_mode & 0o777) == ("", 0o600)
    assert (old.read_text(), old.stat().st_mode & 0o777) == ("kept", 0o640)
    assert not (tmp_path / "no").exists()
