"""Values in pieces in worlds with crashes: who starts again goes on from the pieces that it had."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from p2pdp.auditor.verify import COMPLETE, verify
from p2pdp.core.ids import Peer
from p2pdp.peer import pieces
from p2pdp.sim.faults import Crash, Faults
from p2pdp.sim.process import Process
from tests.support.fault_worlds import WatchedWorld
from tests.support.gossip_specs import evidence_of, gossip

USERS, ROUNDS, NUMBERS = 3, 2, 40
PIECE_BYTES = 100  # a value has four
WHO: Peer = 1


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(pieces, "PIECE_BYTES", PIECE_BYTES)
    np.save(tmp_path / "rows.npy", np.random.default_rng(5).random((USERS, NUMBERS)))
    data = f'kind = "npy"\npath = "{tmp_path / "rows.npy"}"'
    return gossip(USERS, "complete", f"rounds = {ROUNDS}").replace('kind = "uniform"', data)


class Traced(WatchedWorld):
    """Keeps what came to one user in each of its lives, and at which of its records pieces did."""

    def __init__(self, text: str, *crashes: Crash) -> None:
        super().__init__(text, 1, Faults(crashes=crashes))
        self.lives: list[list[bytes]] = [[]]
        self.processes[WHO].wire = self.lives[0]
        self.had: list[dict[Peer, int]] = []

    def _crash(self, process: Process, crash: Crash) -> None:
        self.had.append({peer: len(kept) for peer, kept in process.disk.pieces.items()})
        self.lives.append([])
        process.wire = self.lives[-1]
        super()._crash(process, crash)

    def pieces_of(self, life: int) -> Counter[tuple[Peer, int, int]]:
        """How often each piece came in a life: its sender, message and place."""
        told = [json.loads(line) for line in self.lives[life]]
        came = [(said["from"], said["control"]["piece"]) for said in told if "piece" in said["control"]["flags"]]
        return Counter((sender, number, at) for sender, (number, at, of, _) in came if at < of)


def kept_at(text: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of records of the user that are pieces, in a run without crashes."""
    found: list[int] = []
    keep = Process.keep

    def keeps(self: Process, peer: Peer, before: bytes, data: bytes) -> None:
        keep(self, peer, before, data)
        if self.peer == WHO:
            found.append(self.disk.records)

    with monkeypatch.context() as patch:
        patch.setattr(Process, "keep", keeps)
        Traced(text).run_to_end()
    return found


def test_a_receiver_that_crashes_at_any_piece_gets_none_of_those_again_that_it_has(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = kept_at(text, monkeypatch)
    assert len(records) == 4 * ROUNDS * (USERS - 1)
    resumed = 0
    for number, record in enumerate(records):
        torn_bytes = (None, None, 0, 40)[number % 4]
        world = Traced(text, Crash(WHO, at_record=record, torn_bytes=torn_bytes))
        world.run_to_end()
        assert verify(evidence_of(world, text)).verified == COMPLETE
        assert world.out == []
        before, after = world.pieces_of(0), world.pieces_of(1)
        assert sum((before & after).values()) <= (torn_bytes is not None), (record, before & after)
        assert world.processes[WHO].disk.pieces == {}
        resumed += sum(world.had[0].values()) > 0
    assert resumed > len(records) / 2


def test_it_may_crash_at_each_of_them_in_turn(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    records = kept_at(text, monkeypatch)
    world = Traced(text, *(Crash(WHO, at_record=record) for record in range(records[0], 3 * records[-1])))
    world.run_to_end()
    assert verify(evidence_of(world, text)).verified == COMPLETE
    assert len(world.lives) > len(records)
