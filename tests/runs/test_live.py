from __future__ import annotations

import json
from pathlib import Path

import pytest

from p2pdp.cluster.launcher import Cluster
from p2pdp.core.errors import RunFailed, UsageError, VerificationFailed
from p2pdp.files.spec import parse_spec
from p2pdp.runs.live import resume, run_spec
from p2pdp.runs.status import status_of
from tests.support.finished_runs import finished
from tests.support.local import SPEC


def test_what_cannot_run_live_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    mqtt = parse_spec(SPEC.replace("seed = 1", 'seed = 1\ntransport = "mqtt"') + "[transport]\nport = 1\n", tmp_path)
    with pytest.raises(UsageError, match=r"\[transport\] port: .* add host"):
        run_spec(mqtt, tmp_path / "run", lambda _event: None)
    csv = SPEC.replace('kind = "uniform"', 'kind = "csv"\npath = "d.csv"')
    with pytest.raises(UsageError, match="seed"):
        run_spec(parse_spec(csv, tmp_path), tmp_path / "run", lambda _event: None)
    assert not (tmp_path / "run").exists()


def test_only_a_live_run_can_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="live run"):
        resume(tmp_path, lambda _event: None)


@pytest.fixture
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(_self: Cluster) -> None:
        raise AssertionError("nothing is to be started")

    monkeypatch.setattr(Cluster, "run", started)


@pytest.mark.usefixtures("no_processes")
async def test_what_processes_left_becomes_a_result(tmp_path: Path) -> None:
    job = await finished(tmp_path / "run")
    left = job.folder / "nodes" / "0002" / "run.key"
    left.write_bytes(bytes(32))
    result = resume(job.folder, lambda _event: None)
    assert (result.nodes, result.hops, result.missing, result.seeded, result.faults) == (3, 6, [], False, {})
    assert result.started == "2024-01-01T00:00:00+00:00"
    assert isinstance(result.error, float)
    assert isinstance(result.standard_error, float)
    assert abs(result.error) <= 8 * result.standard_error
    assert result.bytes > 1000
    assert result.startup_seconds > 0.0
    assert result.folder == str(job.folder)
    document = result.to_json()
    assert document.pop("folder") == str(job.folder)
    assert document == json.loads((job.folder / "result.json").read_text())
    audited = json.loads((job.folder / "audit.json").read_text())
    assert (document["headline"], document["worst"]) == (audited["headline"], audited["worst"])
    assert document["headline"]["observer"] == "node"
    assert not left.exists()
    assert resume(job.folder, lambda _event: None) == result


@pytest.mark.usefixtures("no_processes")
async def test_audit_false_leaves_the_audit_to_whoever_wants_it(tmp_path: Path) -> None:
    job = await finished(tmp_path / "run", SPEC.replace("seed = 1", "seed = 1\naudit = false"))
    resume(job.folder, lambda _event: None)
    assert not (job.folder / "audit.json").exists()


@pytest.mark.usefixtures("no_processes")
@pytest.mark.parametrize("place", range(-420, -20, 40))
async def test_a_result_of_altered_ledgers_says_so_if_there_is_one(tmp_path: Path, place: int) -> None:
    """Wherever the byte is: in a hash, in a length, in a record that then is none."""
    job = await finished(tmp_path / "run")
    ledger = job.folder / "nodes" / "0001" / "view.ledger"
    data = bytearray(ledger.read_bytes())
    data[place] ^= 1
    ledger.write_bytes(data)
    try:
        result = resume(job.folder, lambda _event: None)
    except VerificationFailed:
        assert not (job.folder / "result.json").exists()
        return
    assert "node 1" in str(result.audit_problem)
    assert (result.headline, result.truth) == (None, None)
    assert json.loads((job.folder / "result.json").read_text())["audit_problem"] == result.audit_problem
    assert "Verification failed" in (job.folder / "report.html").read_text()
    assert not (job.folder / "audit.json").exists()
    assert status_of(str(job.folder)).problems[0].endswith(str(result.audit_problem))


async def test_a_run_without_a_result_can_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await finished(tmp_path / "run")
    (job.folder / "curator" / "run.key").write_bytes(bytes(32))
    (job.folder / "curator" / "bootstrap" / "run.key").write_bytes(bytes(32))
    ran: list[Cluster] = []

    def runs(self: Cluster) -> None:
        ran.append(self)

    monkeypatch.setattr(Cluster, "run", runs)
    (job.folder / "curator" / "view.ledger").write_bytes(b"")
    with pytest.raises(RunFailed, match="nothing was published"):
        resume(job.folder, lambda _event: None)
    assert len(ran) == 1


def test_a_folder_that_is_not_empty_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("text")
    with pytest.raises(UsageError, match="not empty"):
        run_spec(parse_spec(SPEC, tmp_path), tmp_path, lambda _event: None)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
