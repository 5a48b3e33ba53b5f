"""Simulated runs of pairwise sums, with what their ledgers alone say of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from p2pdp.auditor.audit import Audit, audit_run
from p2pdp.auditor.verify import Verification, verify
from p2pdp.core.errors import RunFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.ledger.records import (
    PUBLISHED,
    SENT,
    Record,
    public_message,
    read,
    whole_message,
)
from p2pdp.protocols.decision import SURVIVORS, Survivors
from p2pdp.protocols.pairwise.plan import MASKED, PAIR_KEY, SEEDS, SHARE, Gone, Owners
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.replay.evidence import Recorded
from p2pdp.sim.faults import Crash, Faults
from p2pdp.sim.world import World
from p2pdp.wire.codec import pack_value
from tests.support.fault_worlds import WatchedWorld, prepared
from tests.support.pairwise_folders import noised_sum
from tests.support.run_oracle import evidence_of


class MaskedWorld(WatchedWorld):
    """Remembers what users ever revealed, also if their disks have forgotten it since."""

    def __init__(self, text: str, seed: int, faults: Faults) -> None:
        super().__init__(text, seed, faults)
        self.pairs: set[tuple[Peer, Peer]] = set()
        self.parts: set[tuple[Peer, Peer]] = set()

    def _remember(self, peer: Peer, record: Record) -> None:
        if record.kind != SENT or not is_user(peer):
            return
        message, to = whole_message(record), record.body.receiver
        if message.type == PAIR_KEY:
            self.pairs.add((peer, Gone(*message.fields).peer))
        elif message.type == SEEDS:
            self.parts |= {(peer, owner) for owner in Owners(*message.fields).users[1:]}
        assert not self.pairs & self.parts, "of a neighbour a user reveals one thing only"
        if message.type in (SHARE, MASKED, PAIR_KEY, SEEDS):
            assert to == CURATOR or message.type == SHARE
            known = self.left.setdefault((peer, to, message.type, str(message.fields)), message.value)  # type: ignore[call-overload]
            assert pack_value(known) == pack_value(message.value), "what is sent again is the same"


@dataclass
class Ran:
    world: MaskedWorld
    run: RunPlan
    rows: Callable[[Peer], Any]

    @property
    def recorded(self) -> Recorded:
        disks = {peer: bytes(process.disk.view) for peer, process in self.world.processes.items()}
        return Recorded(self.run, {peer: read(disk) for peer, disk in disks.items() if disk})


def masked_world(text: str, seed: int = 1, *crashes: Crash, **network: Any) -> MaskedWorld:
    return MaskedWorld(text, seed, Faults(crashes=crashes, **{"reordering": bool(crashes or network)} | network))


def simulated(text: str, seed: int, *crashes: Crash, **network: Any) -> Ran:
    world = masked_world(text, seed, *crashes, **network)
    world.run_to_end()
    return Ran(world, world.run, prepared(text)[1].user)


class Judged(NamedTuple):
    survivors: list[Peer]
    verification: Verification
    audit: Audit | None  # where what was published can be told


def judged(world: MaskedWorld) -> Judged:
    """All that must hold after a run that came to its end, from its ledgers."""
    evidence = evidence_of(world)
    stopped = {peer for peer, process in world.processes.items() if process.host is not None and process.host.stopped}
    verification = verify(evidence)
    assert verification.problems == []
    assert verification.excluded == sorted(world.out)
    recorded = Recorded(world.run, {peer: evidence.contents(peer) for peer in evidence.views})
    published = recorded.transcript.published
    assert published is not None
    survivors = decided_in(world)
    assert len(survivors) >= world.run.plan.needed
    weights = published[0].expand()
    kinds = {source.kind for source in weights}
    if "unknown" in kinds:
        assert stopped & set(survivors), "only a ledger that forgot what its user had sent leaves a gap"
    else:
        assert kinds == ({"input", "draw"} if world.run.plan.noise.name != "none" else {"input"})
        assert set(weights.values()) == {1.0}
        assert sorted(source.peer for source in weights if source.kind == "input") == survivors
    for peer in stopped & world.forgotten.keys():
        world.processes[peer].disk.view[:], world.processes[peer].disk.private[:] = world.forgotten[peer]
    assert np.array_equal(published_in(world), expected_of(world, survivors))
    audit = None if "unknown" in kinds else audit_run(world.run, recorded, verification.cut_short, 1e-5, ())
    return Judged(survivors, verification, audit)


def completes(world: MaskedWorld) -> Judged:
    try:
        world.run_to_end()
        return judged(world)
    except (AssertionError, RunFailed) as error:
        error.add_note(world.story)
        raise


def expected_of(world: World, users: Sequence[Peer]) -> Any:
    """The sum of what the private ledgers of these users keep: each one's value, and its first draw."""
    disks = {user: world.processes[user].disk for user in users}
    views = {user: read(bytes(disk.view)).records for user, disk in disks.items()}
    private = {user: bytes(disk.private) for user, disk in disks.items()}
    return noised_sum(views, private, users, noised=world.run.plan.noise.name != "none")


def decided_in(world: World) -> list[Peer]:
    records = read(bytes(world.processes[BOOTSTRAP].disk.view)).records
    said = [public_message(record) for record in records if record.kind == PUBLISHED]
    (absent,) = [Survivors(*message.fields).absent for message in said if message.type == SURVIVORS]
    return sorted(set(range(world.run.n)) - set(absent))


def published_in(world: World) -> Any:
    records = read(bytes(world.processes[CURATOR].disk.view)).records
    (published,) = [whole_message(record).value for record in records if record.kind == PUBLISHED]
    return published
