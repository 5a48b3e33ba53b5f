from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import p2pdp
from p2pdp.cluster import together
from p2pdp.cluster.together import read_together
from p2pdp.files.folder import read_evidence
from p2pdp.ledger.records import LedgerError
from p2pdp.replay import evidence as reading
from p2pdp.replay.evidence import Evidence
from tests.support import small


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("together")
    p2pdp.simulate(p2pdp.load_spec(small.spec_file(place, small.RING)), place / "run")
    return place / "run"


@pytest.fixture
def readers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """By which threads ledgers were parsed."""
    names: list[str] = []
    parse = reading.contents_of

    def noted(*arguments: Any) -> Any:
        names.append(threading.current_thread().name)
        return parse(*arguments)

    monkeypatch.setattr(reading, "contents_of", noted)
    return names


def contents(evidence: Evidence) -> list[Any]:
    return [evidence.contents(peer, role) for role in ("view", "private") for peer in sorted(evidence.views)]


def test_what_is_read_together_is_what_is_read_alone(
    folder: Path, readers: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(together, "LARGE_BYTES", 1)
    evidence, before = read_evidence(folder), threading.active_count()
    read_together(evidence, 2)
    assert len(readers) == len(evidence.views) + len(evidence.private)
    assert {name.split("_")[0] for name in readers} == {"ledgers"}
    assert threading.active_count() == before, "processes may be forked"
    assert contents(evidence) == contents(read_evidence(folder))


def test_what_is_wrong_is_for_others_to_find(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "LARGE_BYTES", 1)
    evidence = read_evidence(folder)
    evidence = replace(evidence, views={**evidence.views, 1: b"p2pdp ledger 01\n"})
    read_together(evidence, 3)
    with pytest.raises(LedgerError, match="version 1"):
        evidence.contents(1)
    assert len(evidence.contents(0).records) > 1


@pytest.mark.parametrize(("threads", "large_bytes"), [(1, 1), (2, 1 << 20)])
def test_alone_or_of_small_ledgers_nothing_is_read_before(
    folder: Path, readers: list[str], monkeypatch: pytest.MonkeyPatch, threads: int, large_bytes: int
) -> None:
    monkeypatch.setattr(together, "LARGE_BYTES", large_bytes)
    read_together(read_evidence(folder), threads)
    assert readers == []
