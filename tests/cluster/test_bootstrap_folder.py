from __future__ import annotations

from pathlib import Path

import pytest

from p2pdp.cluster.bootstrap_folder import BootstrapFolder, is_bootstrap_folder
from p2pdp.cluster.folder import RUN_FILE
from p2pdp.core.errors import UsageError
from p2pdp.crypto.tokens import JoinToken
from tests.support.local import SPEC


def test_the_same_spec_goes_on_with_the_same_run_and_tokens(tmp_path: Path) -> None:
    place = tmp_path / "boot"
    assert not is_bootstrap_folder(place)
    folder = BootstrapFolder.open(place, SPEC, 3)
    assert (folder.listen, folder.address, folder.token_count) == (None, None, 3)
    public = folder.identity().public
    secrets = folder.write_tokens("10.0.0.1:7000", "gate:70", public)
    again = BootstrapFolder.open(place, SPEC, 3)
    assert is_bootstrap_folder(place)
    assert (again.run_id, again.started) == (folder.run_id, folder.started)
    assert (again.listen, again.address, again.identity().public) == ("10.0.0.1:7000", "gate:70", public)
    assert again.write_tokens("10.0.0.2:7000", "gate:70", public) == secrets
    assert again.listen == "10.0.0.2:7000"
    assert again.identity("curator").public != public
    for number, secret in enumerate(secrets):
        path = place / "tokens" / f"{number:04d}.token"
        assert JoinToken.from_text(path.read_text()) == JoinToken("gate:70", public, secret, number)
        assert path.stat().st_mode & 0o777 == 0o600
    assert len(set(secrets)) == 3


def test_what_would_be_another_run_is_refused(tmp_path: Path) -> None:
    folder = BootstrapFolder.open(tmp_path / "boot", SPEC, 3)
    folder.write_tokens("here:1", "here:1", bytes(32))
    with pytest.raises(UsageError, match="another spec"):
        BootstrapFolder.open(tmp_path / "boot", SPEC + "\n", 3)
    with pytest.raises(UsageError, match="begun with 3"):
        BootstrapFolder.open(tmp_path / "boot", SPEC, 4)
    with pytest.raises(UsageError, match="its tokens name here:1"):
        folder.write_tokens("here:1", "there:1", bytes(32))
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="not empty"):
        BootstrapFolder.open(tmp_path, SPEC, 3)


def test_a_first_start_that_was_cut_short_is_finished_by_the_next(tmp_path: Path) -> None:
    BootstrapFolder.open(tmp_path / "boot", SPEC, 1)
    (tmp_path / "boot" / RUN_FILE).unlink()
    assert len(BootstrapFolder.open(tmp_path / "boot", SPEC, 1).run_id) == 16


def test_handed_in_skeletons_lie_where_an_audit_looks_for_them(tmp_path: Path) -> None:
    folder = BootstrapFolder.open(tmp_path / "boot", SPEC, 1)
    folder.identity("curator")
    for _ in range(2):
        folder.deposit({0: b"first", 12: b"other"})
    place = tmp_path / "boot" / "curator" / "skeletons"
    assert {path.name: path.read_bytes() for path in place.iterdir()} == {
        "0000.skeleton": b"first",
        "0012.skeleton": b"other",
    }
