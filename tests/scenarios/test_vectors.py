"""Vectors in gossip worlds with crashes: large ones, which a ledger stores once, and such as go in fewer bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from p2pdp.auditor.verify import COMPLETE, verify
from p2pdp.core.ids import is_user
from p2pdp.ledger.entries import LARGE_BYTES
from p2pdp.ledger.records import SENT, carries_value, whole_message
from p2pdp.sim.faults import Crash
from tests.support.fault_worlds import WatchedWorld, world_of
from tests.support.gossip_specs import LOSSY, evidence_of, gossip

USERS, ROUNDS = 4, 3
SHORT = f'rounds = {ROUNDS}\nprecision = "short"'
FULL = f"rounds = {ROUNDS}"


def spec(folder: Path, numbers: int, terms: str) -> str:
    np.save(folder / "rows.npy", np.random.default_rng(numbers).random((USERS, numbers)))
    data = f'kind = "npy"\npath = "{folder / "rows.npy"}"'
    return gossip(USERS, "complete", terms).replace('kind = "uniform"', data)


def sent_values(world: WatchedWorld, text: str) -> dict[int, list[np.ndarray]]:
    """The vectors that each user sent to others, after a run that is in order."""
    world.run_to_end()
    evidence = evidence_of(world, text)
    assert verify(evidence).verified == COMPLETE
    return {
        peer: [
            np.asarray(whole_message(record).value)
            for record in evidence.contents(peer).records
            if record.kind == SENT and is_user(record.body.receiver) and carries_value(record)
        ]
        for peer in range(USERS)
    }


@pytest.mark.parametrize("terms", [SHORT, FULL])
@pytest.mark.parametrize("at_record", [3, 9, 14])
def test_a_large_vector_is_stored_once_and_sent_again_as_it_was(tmp_path: Path, terms: str, at_record: int) -> None:
    numbers = 1 + LARGE_BYTES // 5
    text = spec(tmp_path, numbers, terms)
    world = world_of(text, 1, Crash(1, at_record, 0.5), **LOSSY)
    for peer, values in sent_values(world, text).items():
        assert len(values) == ROUNDS * (USERS - 1)
        for first in range(0, len(values), USERS - 1):
            assert all((value == values[first]).all() for value in values[first : first + USERS - 1])
        number_bytes = 5 if terms == SHORT else 8
        stored = (USERS - 1 + 1) * ROUNDS * numbers * number_bytes  # what came, and once what went
        own = numbers * 8  # its last state
        assert stored + own < len(world.processes[peer].disk.view) < 1.1 * (stored + own)


def test_states_in_steps_are_those_of_the_grid_with_the_same_course(tmp_path: Path) -> None:
    short, full = (sent_values(world_of(text), text) for text in (spec(tmp_path, 50, terms) for terms in (SHORT, FULL)))
    for peer in range(USERS):
        for one, other in zip(short[peer], full[peer], strict=True):
            assert 0.0 < np.abs(one - other).max() < 1e-3
