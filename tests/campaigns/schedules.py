"""Schedules: what happens to one simulated run, all of it from a protocol and a seed.

A schedule has a spec of the protocol, a network that loses, repeats, delays and reorders, partitions and pauses,
crashes with or without torn writes, disks that change or are rolled back, and none, one or two liars. Which of these
come together is itself thrown (a swarm), so that rare combinations are met and simple ones too. Faults that may put an
honest user out (it is gone for good, away for longer than the patience, or its disk is damaged) are remembered as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Final

from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.ledger.journal import PRIVATE, VIEW
from p2pdp.sim.faults import Crash, DiskFault, Faults, Harm, Partition
from tests.campaigns.behaviours import KINDS, kinds_for
from tests.campaigns.specs import PATIENCE_S, prepared, specs_of
from tests.campaigns.worlds import TAILS, LyingWorld

_BEGUN: Final = 12  # records of a user that has surely taken its seat
_TEARS: Final = (None, None, 0, 3, 30)


@dataclass(frozen=True)
class Schedule:
    """One case. `excused` are those honest peers who may be put out, or may stop, for what happens to them."""

    protocol: str
    seed: int
    text: str
    faults: Faults
    lies: Mapping[Peer, tuple[str, ...]] = field(default_factory=dict)
    excused: frozenset[Peer] = frozenset()
    quiet_s: float = 0.0

    @property
    def kinds(self) -> list[str]:
        return sorted({kind for kinds in self.lies.values() for kind in kinds})

    def world(self) -> LyingWorld:
        dice = Random(f"lies {self.protocol} {self.seed}")  # noqa: S311 - schedules are no secret
        liars = {
            user: [KINDS[kind].behaviour(Random(dice.random())) for kind in kinds]  # noqa: S311 - the same
            for user, kinds in sorted(self.lies.items())
        }
        return LyingWorld(self.text, self.seed, self.faults, liars, self.quiet_s)

    def said(self) -> str:
        lies = ", ".join(f"{user}: {'+'.join(kinds)}" for user, kinds in sorted(self.lies.items())) or "nobody"
        return f"{self.protocol} seed {self.seed}; liars {lies}; {self.faults}; spec:\n{self.text}"


@cache
def calm(text: str) -> tuple[float, dict[Peer, int]]:
    """Return how long a run without faults takes, and how many records each peer writes."""
    world = LyingWorld(text, 1, Faults(), {})
    world.run_to_end()
    return world.now_s, {peer: process.disk.records for peer, process in world.processes.items()}


def schedule(protocol: str, seed: int, *, kinds: tuple[str, ...] | None = None, calm_network: bool = False) -> Schedule:
    """Throw a schedule; `kinds` are the lies of its liar, which are thrown too where that is None."""
    dice = Random(f"{protocol}/{seed}")  # noqa: S311 - schedules are no secret
    text = dice.choice(specs_of(protocol))
    users = prepared(text).run.n
    lies = _lies(dice, protocol, users) if kinds is None else _told(dice, kinds, users)
    thrown = (_Thrown if calm_network else _thrown)(dice, text, frozenset(lies))
    if any(KINDS[kind].with_gone for told in lies.values() for kind in told):
        thrown.gone()
    return Schedule(protocol, seed, text, thrown.faults(), lies, frozenset(thrown.excused), thrown.quiet_s)


def _lies(dice: Random, protocol: str, users: int) -> dict[Peer, tuple[str, ...]]:
    if dice.random() < 0.4:
        return {}
    possible = kinds_for(protocol)
    kinds = tuple(dice.sample(possible, dice.choice((1, 1, 1, 2))))
    return _told(dice, kinds, users)


def _told(dice: Random, kinds: tuple[str, ...], users: int) -> dict[Peer, tuple[str, ...]]:
    count = max((KINDS[kind].liars for kind in kinds), default=0)
    return dict.fromkeys(sorted(dice.sample(range(users), count)), kinds)


class _Thrown:
    """The faults of one schedule as they are thrown."""

    def __init__(self, dice: Random, text: str, liars: frozenset[Peer]) -> None:
        self.dice, self.text, self.liars = dice, text, liars
        self.users = prepared(text).run.n
        self.excused: set[Peer] = set()
        self.quiet_s = 0.0
        self.crashes: list[Crash] = []
        self.partitions: list[Partition] = []
        self.loss = self.duplication = 0.0
        self.delay_s, self.jitter_s = 0.001, 0.0005
        self.reordering = False

    def faults(self) -> Faults:
        return Faults(
            loss=self.loss, duplication=self.duplication, reordering=self.reordering, delay_s=self.delay_s,
            jitter_s=self.jitter_s, crashes=tuple(self.crashes), partitions=tuple(self.partitions),
        )  # fmt: skip

    @property
    def duration_s(self) -> float:
        """Guess how long the run will take."""
        return calm(self.text)[0] * max(1.0, self.delay_s / 0.002)

    def anybody(self) -> Peer:
        return self.dice.choice((BOOTSTRAP, CURATOR, *range(self.users)))

    def at_record(self, peer: Peer, *, begun: bool = False) -> int:
        least, most = _BEGUN if begun else 1, calm(self.text)[1][peer] + 4
        return self.dice.randint(min(least, most), most)

    def network(self) -> None:
        dice = self.dice
        self.loss = dice.choice((0.0, 0.02, 0.1, 0.2))
        self.duplication = dice.choice((0.0, 0.02, 0.1))
        self.reordering = dice.random() < 0.5
        self.delay_s = dice.choice((0.0005, 0.002, 0.02))
        self.jitter_s = dice.choice((0.0, 0.0005, 0.01, 0.05))

    def crash(self) -> None:
        peer = self.anybody()
        down_s = self.dice.choice((0.0, 0.01, 0.2, 0.5)) * PATIENCE_S
        at = self.at_record(peer)
        self.crashes.append(Crash(peer, at_record=at, down_s=down_s, torn_bytes=self.dice.choice(_TEARS)))

    def pause(self) -> None:
        """Somebody, or several, are cut off from all others for less than the patience."""
        start_s = self.dice.random() * self.duration_s
        end_s = start_s + self.dice.choice((0.05, 0.3, 0.6)) * PATIENCE_S
        size = self.dice.choice((1, 1, 2))
        side = frozenset(self.dice.sample((BOOTSTRAP, CURATOR, *range(self.users)), size))
        self.partitions.append(Partition(start_s, end_s, side))
        self.quiet_s = max(self.quiet_s, end_s)

    def long_pause(self) -> None:
        """Users are cut off for longer than the patience, so that bootstrap may put them out."""
        start_s = self.dice.random() * self.duration_s
        end_s = start_s + self.dice.choice((1.5, 2.5, 4.0)) * PATIENCE_S
        side = frozenset(self.dice.sample(range(self.users), self.dice.choice((1, 1, 2))))
        self.partitions.append(Partition(start_s, end_s, side))
        self.excused |= side
        self.quiet_s = max(self.quiet_s, end_s)

    def gone(self) -> None:
        """An honest user is gone for good."""
        user = self.dice.choice([user for user in range(self.users) if user not in self.liars])
        at = self.at_record(user, begun=True)
        self.crashes.append(Crash(user, at_record=at, down_s=None, torn_bytes=self.dice.choice(_TEARS)))
        self.excused.add(user)

    def rollback(self) -> None:
        """A disk comes back as it was some records before."""
        peer = self.anybody()
        at = self.at_record(peer, begun=is_user(peer))
        back = self.dice.randint(1, max(1, at - 2))
        self.crashes.append(Crash(peer, at_record=at, down_s=0.05, rolled_back_to=back))
        self.excused.add(peer)

    def disk(self) -> None:
        """A disk changes what is on it, or has something behind the end, which does no harm."""
        peer = self.anybody()
        harm = self.dice.choice(tuple(Harm))
        fault = DiskFault(
            self.dice.choice((VIEW, PRIVATE)), harm, self.dice.random(), self.dice.choice((1, 16, 64, 300))
        )
        at = self.at_record(peer, begun=is_user(peer))
        self.crashes.append(Crash(peer, at_record=at, down_s=0.05, disk=fault))
        if harm not in TAILS:
            self.excused.add(peer)


def _thrown(dice: Random, text: str, liars: frozenset[Peer]) -> _Thrown:
    thrown = _Thrown(dice, text, liars)
    if dice.random() < 0.7:
        thrown.network()
    if dice.random() < 0.5:
        for _ in range(dice.choice((1, 1, 2, 3))):
            thrown.crash()
    if dice.random() < 0.25:
        thrown.pause()
    if dice.random() < 0.3:
        dice.choice((thrown.long_pause, thrown.gone, thrown.rollback, thrown.disk))()
    return thrown
