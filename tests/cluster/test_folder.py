from __future__ import annotations

from pathlib import Path

import pytest

from p2pdp.cluster.folder import RunFolder
from p2pdp.core.errors import UsageError


def test_a_folder_is_found_again_as_it_was_made(tmp_path: Path) -> None:
    made = RunFolder.make(tmp_path / "run", "[run]\n")
    again = RunFolder(tmp_path / "run")
    assert (again.run_id, again.started, again.spec_text) == (made.run_id, made.started, "[run]\n")
    assert made.tokens(3) == again.tokens(3)
    assert len(set(made.tokens(3))) == 3
    assert not again.is_done
    assert RunFolder.make(tmp_path / "other", "").run_id != made.run_id


def test_what_is_no_live_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not the folder of a live run"):
        RunFolder(tmp_path)
    with pytest.raises(UsageError, match="not empty"):
        RunFolder.make(Path(__file__).parent, "")
