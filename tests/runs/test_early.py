from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import p2pdp
from p2pdp.cluster import blocks
from p2pdp.cluster.begun import Begun
from p2pdp.cluster.blocks import Cores
from p2pdp.core.errors import VerificationFailed
from p2pdp.files.folder import read_evidence
from p2pdp.replay.evidence import Evidence
from p2pdp.runs.audit import audit_evidence
from p2pdp.runs.early import begun_early
from tests.support.gossip_learners import gossip_learning
from tests.support.small import RING, recorded

GOSSIP = (
    '[run]\nprotocol = "gossip.average"\nnodes = 8\nseed = 5\n[graph]\nkind = "hypercube"\n[gossip]\nrounds = 6\n'
    '[noise]\nmechanism = "gaussian"\nsigma = 2.0\n[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n'
    "[privacy]\ndelta = 1e-5\n"
)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let work be dealt out however little it is."""
    monkeypatch.setattr(blocks, "ALONE_S", 0.0)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows were taken, each time that some were."""
    found: list[int] = []
    take = Begun.take

    def counting(begun: Begun) -> Any:
        rows = take(begun)
        found.append(len(rows))
        return rows

    monkeypatch.setattr(Begun, "take", counting)
    return found


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def audited(evidence: Evidence, workers: int) -> Any:
    found = audit_evidence(evidence, cores=Cores(workers, ahead=True))
    return found.to_json(), found.leak.tobytes(), found.epsilon.tobytes()


@pytest.mark.usefixtures("at_once")
def test_what_users_learn_by_gossip_is_begun_early_and_comes_out_the_same(tmp_path: Path, taken: list[int]) -> None:
    place, before = recorded(tmp_path, GOSSIP), children()
    taken.clear()
    alone = audited(read_evidence(place), 1)
    assert taken == []
    for workers in (2, 3):
        assert audited(read_evidence(place), workers) == alone
        assert 8 in taken
        taken.clear()
    assert children() <= before


@pytest.mark.parametrize("other", ['gossip.publish="all"', 'graph.kind="complete"'])
@pytest.mark.usefixtures("at_once")
def test_nothing_is_begun_where_it_takes_more_than_the_graph(tmp_path: Path, other: str) -> None:
    with begun_early(read_evidence(recorded(tmp_path, GOSSIP, other)), Cores(2, ahead=True)) as ahead:
        assert ahead(None) is None
        assert not children_begun(ahead)


def test_nothing_is_begun_of_gradients_which_no_account_takes(tmp_path: Path) -> None:
    evidence = read_evidence(recorded(tmp_path, gossip_learning(6)))
    assert evidence.run.protocol.analysis().ahead(evidence) is None


def children_begun(ahead: object) -> bool:
    return "taking" in getattr(ahead, "__name__", "")


@pytest.mark.usefixtures("at_once")
def test_an_audit_that_asks_for_something_else_gets_nothing_and_ends_what_was_begun(tmp_path: Path) -> None:
    evidence, before = read_evidence(recorded(tmp_path, GOSSIP)), children()
    with begun_early(evidence, Cores(2, ahead=True)) as ahead:
        assert len(children() - before) == 1
        assert ahead("something else") is None
        assert children() <= before
        about = evidence.run.protocol.analysis().ahead(evidence)
        assert about is not None
        assert ahead(about.about) is None, "it was ended"
    with begun_early(evidence, Cores(2, ahead=True)) as ahead:
        assert len(ahead(about.about) or ()) == 8
        assert ahead(about.about) is None, "it was taken"
    assert children() <= before


@pytest.mark.usefixtures("at_once")
def test_an_audit_that_is_refused_ends_what_was_begun(tmp_path: Path) -> None:
    place, before = recorded(tmp_path, GOSSIP), children()
    ledger = place / "nodes" / "0003" / "view.ledger"
    data = bytearray(ledger.read_bytes())
    data[len(data) // 2] ^= 1
    ledger.write_bytes(data)
    with pytest.raises(VerificationFailed, match="node 3"):
        audit_evidence(read_evidence(place), cores=Cores(2, ahead=True))
    assert children() <= before


def test_nothing_is_begun_for_a_small_run_or_one_of_another_kind(tmp_path: Path) -> None:
    for name, text in (("gossip", GOSSIP), ("walk", RING)):
        (tmp_path / name).mkdir()
        with begun_early(read_evidence(recorded(tmp_path / name, text)), Cores(2, ahead=True)) as ahead:
            assert not children_begun(ahead)
    assert p2pdp.audit(tmp_path / "gossip" / "run").claims
