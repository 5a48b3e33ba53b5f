from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from p2pdp.cluster.standing import Kind, is_at_work, kind_of
from p2pdp.core.errors import UsageError


@pytest.mark.parametrize(
    ("file", "kind"), [("node.json", Kind.NODE), ("bootstrap.json", Kind.BOOTSTRAP), ("run.json", Kind.LOCAL)]
)
def test_a_folder_is_known_by_what_is_in_it(tmp_path: Path, file: str, kind: Kind) -> None:
    assert kind_of(tmp_path) == Kind.SIMULATED
    (tmp_path / file).touch()
    assert kind_of(tmp_path) == kind
    with pytest.raises(UsageError):
        kind_of(tmp_path / file)


@pytest.mark.parametrize("file", ["node.json", "run.json"])
def test_a_lock_says_that_somebody_works_and_asking_does_not_keep_it(tmp_path: Path, file: str) -> None:
    assert not is_at_work(tmp_path)
    (tmp_path / file).touch()
    assert not is_at_work(tmp_path)
    with (tmp_path / file).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert is_at_work(tmp_path)
    assert not is_at_work(tmp_path)
