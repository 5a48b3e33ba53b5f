from __future__ import annotations

import json
from pathlib import Path

import pytest

from p2pdp.cluster.folder import RunFolder
from p2pdp.cluster.jobs import job_of
from p2pdp.core.errors import UsageError
from p2pdp.runs.live import resume
from p2pdp.runs.same_data import check_same_data
from tests.support.finished_runs import finished
from tests.support.local import SPEC


def with_file(folder: Path, rows: str) -> str:
    (folder / "rows.csv").write_text(rows)
    text = SPEC.replace("seed = 1\n", "")
    return text.replace('kind = "uniform"', f"kind = \"csv\"\npath = '{folder / 'rows.csv'}'")


async def test_a_run_goes_on_with_the_data_that_it_was_begun_with_and_with_no_other(tmp_path: Path) -> None:
    job = await finished(tmp_path / "run", with_file(tmp_path, "0.1\n0.2\n0.3\n"))
    with_file(tmp_path, "0.1\n0.9\n0.3\n")
    with pytest.raises(UsageError, match="user 1") as refused:
        resume(job.folder, lambda _event: None)
    assert "0.9" not in str(refused.value)
    assert not (job.folder / "result.json").exists()
    with_file(tmp_path, "0.1\n0.2\n0.3\n")
    result = resume(job.folder, lambda _event: None)
    assert result.truth == pytest.approx(1.2, abs=1e-6)


async def test_a_run_that_is_done_asks_for_no_data_and_is_not_written_again(tmp_path: Path) -> None:
    job = await finished(tmp_path / "run", with_file(tmp_path, "0.1\n0.2\n0.3\n"))
    result = resume(job.folder, lambda _event: None)
    kept = {path: path.read_bytes() for path in job.folder.rglob("*") if path.is_file()}
    (tmp_path / "rows.csv").unlink()
    assert resume(job.folder, lambda _event: None).truth == result.truth
    assert {path: path.read_bytes() for path in job.folder.rglob("*") if path.is_file()} == kept


async def test_what_nobody_has_recorded_yet_may_still_be_any_data(tmp_path: Path) -> None:
    job = await finished(tmp_path / "run", with_file(tmp_path, "0.1\n0.2\n0.3\n"))
    for user in range(3):
        (job.folder / "nodes" / f"{user:04d}" / "private.ledger").write_bytes(b"")
    with_file(tmp_path, "0.9\n0.9\n0.9\n")
    run = json.loads((job.folder / "run.json").read_text())
    assert run["run_id"] == job.run_id.hex()
    check_same_data(job_of(RunFolder(job.folder)), range(3))
