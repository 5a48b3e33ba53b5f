from __future__ import annotations

from pathlib import Path

import pytest

import p2pdp
from p2pdp.core.errors import NotReady, UsageError
from p2pdp.files.folder import read_evidence
from p2pdp.files.samples import samples
from p2pdp.files.spec import parse_spec
from p2pdp.ledger.journal import PRIVATE, VIEW
from p2pdp.protocols.defaults import Analysis
from p2pdp.replay.evidence import Evidence
from p2pdp.runs import memory as module
from p2pdp.runs.memory import OWN_SHARE, PAIR_BYTES, RECORD_BYTES, USER_BYTES, audit_bytes, check_memory
from tests.support.gossip_specs import gossip
from tests.support.small import COMPLETE


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memory") / "run"
    p2pdp.simulate(parse_spec(COMPLETE, None), out=folder, audit=False)
    return folder


@pytest.fixture
def evidence(place: Path) -> Evidence:
    return read_evidence(place)


def records(evidence: Evidence) -> int:
    found = sum(len(evidence.contents(peer, VIEW).records) for peer in evidence.views)
    return found + sum(len(evidence.contents(peer, PRIVATE).records) for peer in evidence.private)


def test_records_and_pairs_count(evidence: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are few users, whose ledgers are all looked at."""
    held = RECORD_BYTES * records(evidence) + USER_BYTES * evidence.roster.n + PAIR_BYTES * evidence.roster.n**2
    assert audit_bytes(evidence, 3) == module.PROCESS_BYTES + held + 3 * int(OWN_SHARE * held)
    analysis = type(evidence.run.protocol.analysis())
    assert analysis.worker_bytes > Analysis.worker_bytes  # spectra of gaps
    monkeypatch.setattr(analysis, "worker_bytes", 1000)
    assert audit_bytes(evidence, 2) == module.PROCESS_BYTES + held + 2000


def test_shuffling_has_no_numbers_of_pairs(tmp_path: Path) -> None:
    p2pdp.simulate(
        next(one.path for one in samples() if one.name == "shuffle_single"), out=tmp_path / "run", audit=False
    )
    evidence = read_evidence(tmp_path / "run")
    held = RECORD_BYTES * records(evidence) + USER_BYTES * evidence.roster.n
    assert audit_bytes(evidence, 1) == module.PROCESS_BYTES + held + int(OWN_SHARE * held)


def test_of_many_users_a_block_of_pairs_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    p2pdp.simulate(parse_spec(gossip(5, "ring"), None), out=tmp_path / "run", audit=False)
    evidence = read_evidence(tmp_path / "run")
    monkeypatch.setattr(type(evidence.run.protocol.analysis()), "worker_bytes", 0)
    all_pairs = audit_bytes(evidence, 1)
    assert all_pairs == audit_bytes(evidence, 1, pairs=True)
    monkeypatch.setattr(module, "HELD_MAX", 4)
    monkeypatch.setattr(module, "BLOCK_PAIRS", 7)
    assert audit_bytes(evidence, 1, pairs=True) == all_pairs
    assert audit_bytes(evidence, 1) == all_pairs - (25 - 7) * PAIR_BYTES
    held = p2pdp.audit(tmp_path / "run", pairs=True)
    assert held.epsilon.shape == (5, 5)
    found = p2pdp.audit(tmp_path / "run")
    assert found.mu is None
    assert found.totals is not None
    assert found.headline == held.headline
    assert found.worst == held.worst
    with pytest.raises(UsageError, match="pairs=True"):
        found.save_pairs(tmp_path / "pairs.npz")
    found.save(tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Not drawn." in page
    assert "worst pair" in page
    assert "typical pair" not in page


def test_walks_hold_all_pairs(evidence: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = audit_bytes(evidence, 1)
    monkeypatch.setattr(module, "HELD_MAX", 1)
    assert audit_bytes(evidence, 1) == expected


def test_a_few_ledgers_tell_of_the_others(evidence: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = audit_bytes(evidence, 1)
    monkeypatch.setattr(module, "_LOOKED_AT", 3)
    assert audit_bytes(evidence, 1) == pytest.approx(exact, rel=0.01)


def test_much_memory_is_told_of_and_little_is_not(evidence: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    check_memory(evidence, 1, told.append)
    assert told == []
    monkeypatch.setattr(module, "PROCESS_BYTES", 3 * 1024**3)
    monkeypatch.setattr(module, "free_bytes", lambda: 4 * 1024**3)
    check_memory(evidence, 1, told.append)
    assert told == ["this audit takes about 3.0 GiB of memory"]


@pytest.mark.parametrize(("workers", "remedy"), [(1, "on a larger machine$"), (2, ", or --workers 1$")])
def test_what_does_not_fit_is_refused_before_it_begins(
    workers: int, remedy: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SAID_FROM", 0)
    monkeypatch.setattr(module, "free_bytes", lambda: 50 * 1024**2)
    with pytest.raises(NotReady, match=r"^an audit of these ledgers takes about 0\.\d GiB .*" + remedy):
        p2pdp.audit(place, workers=workers)


def test_where_nothing_is_known_nothing_is_refused(evidence: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "free_bytes", lambda: None)
    check_memory(evidence, 64)


def test_a_run_whose_audit_does_not_fit_has_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SAID_FROM", 0)
    monkeypatch.setattr(module, "free_bytes", lambda: 0)
    result = p2pdp.simulate(parse_spec(COMPLETE, None), out=tmp_path / "run")
    assert result.estimate is not None
    assert result.headline is None
    assert not (tmp_path / "run" / "audit.json").exists()


def test_a_small_audit_is_refused_by_no_rough_estimate(evidence: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "free_bytes", lambda: 0)
    check_memory(evidence, 64)
