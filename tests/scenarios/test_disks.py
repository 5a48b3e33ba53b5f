"""Disks that lie: what a medium does to a ledger is cut off, or ends its node; it never leads to another draw."""

from __future__ import annotations

from collections import Counter

import pytest

from p2pdp.core.ids import Peer, is_user
from p2pdp.ledger.journal import PRIVATE, VIEW
from p2pdp.sim.faults import Crash, DiskFault, Harm
from tests.support.crash_specs import COMPLETE, RING, everybody
from tests.support.fault_worlds import TAILS, chance, completes, ends, record_counts, world_of

WHY = ("rolled back", "is gone", "standstill")


@pytest.mark.parametrize(("text", "peer"), everybody(RING, COMPLETE))
def test_zeros_or_garbage_behind_the_end_of_a_ledger_change_nothing(text: str, peer: Peer) -> None:
    for record in range(1, record_counts(text)[peer] + 1, 2):
        ledger = (VIEW, PRIVATE)[record // 2 % 2]
        fault = DiskFault(ledger, TAILS[record // 4 % 2], size=1 + 97 * record % 5000)
        judged = completes(
            world_of(text, 1, Crash(peer, at_record=record, torn_bytes=(None, 20)[record % 2], disk=fault))
        )
        assert judged.verification.verified == "complete"


@pytest.mark.parametrize("part", range(4))
def test_whatever_else_a_disk_does_the_run_ends_and_nothing_is_drawn_twice(part: int) -> None:
    """The world itself notices when a contribution leaves a user with other noise than before."""
    counted: Counter[str] = Counter()
    for seed in range(60 * part, 60 * part + 60):
        dice = chance(seed)
        text = dice.choice((RING, COMPLETE))
        peer = dice.choice([peer for peer in record_counts(text) if is_user(peer)])
        fault = DiskFault(
            dice.choice((VIEW, PRIVATE)),
            dice.choice([harm for harm in Harm if harm not in TAILS]),
            place=dice.random(),
            size=dice.randint(1, 200),
        )
        at_record = dice.randint(4, record_counts(text)[peer])
        world = world_of(text, seed, Crash(peer, at_record=at_record, disk=fault))
        why = ends(world, *WHY)
        counted["ended" if why else "completed"] += 1
        counted["refused"] += world.processes[peer].faults["unusable_disk"]
    assert min(counted[name] for name in ("ended", "completed", "refused")) > 0
