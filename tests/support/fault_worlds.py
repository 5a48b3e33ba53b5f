"""Worlds for tests: a spec as one line, and a world that remembers what ever left a process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from random import Random
from typing import Any

from p2pdp.core.errors import RunFailed
from p2pdp.core.ids import Peer, is_user
from p2pdp.core.messages import TOKEN, TOTAL
from p2pdp.files.data import DataSet, load_data
from p2pdp.files.spec import parse_spec, spec_digest
from p2pdp.ledger import records
from p2pdp.ledger.journal import VIEW
from p2pdp.ledger.records import whole_message
from p2pdp.peer.effects import Effects
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.sim.faults import NO_FAULTS, Crash, Faults, Harm
from p2pdp.sim.process import Process
from p2pdp.sim.world import World
from tests.support.run_oracle import Judged, judge, same

TAILS = (Harm.ZEROS, Harm.GARBAGE)  # behind the end, which restarts cut off
_UNIFORM = '[data]\nkind = "uniform"\nclip = [0.0, 1.0]'
SUM = 'protocol = "walk.sum"', f'[noise]\nmechanism = "gaussian"\nsigma = 2.0\n{_UNIFORM}'
_CATEGORIES = '[data]\nkind = "categories"\n[task]\nkind = "histogram"\ncategories = 3'
HISTOGRAM = (
    'protocol = "walk.histogram"',
    f'[noise]\nmechanism = "randomized_response"\nepsilon = 1.0\n{_CATEGORIES}',
)


def ring(n: int, laps: int, task: tuple[str, str] = SUM, tokens: int = 1) -> str:
    return _spec(n, "ring", f'order = "ring"\nlaps = {laps}\ntokens = {tokens}', task)


def walk(n: int, hops: int, kind: str = "complete", task: tuple[str, str] = SUM, tokens: int = 1) -> str:
    return _spec(n, kind, f'order = "random"\nhops = {hops}\ntokens = {tokens}', task)


def _spec(n: int, kind: str, order: str, task: tuple[str, str]) -> str:
    graph = 'regular"\ndegree = 2' if kind == "regular" else f'{kind}"'
    return f'[run]\n{task[0]}\nnodes = {n}\nseed = 1\n[graph]\nkind = "{graph}\n[walk]\n{order}\n{task[1]}\n'


@cache
def prepared(text: str) -> tuple[RunPlan, DataSet, bytes]:
    spec = parse_spec(text, None)
    data = load_data(spec, spec.run.nodes)
    return plan_run(spec, spec.run.nodes, data.dimensions, sampler="seeded"), data, spec_digest(spec)


class WatchedWorld(World):
    """Remembers each value that a user ever sent for a step, also if its disk has forgotten it since."""

    def __init__(self, text: str, seed: int, faults: Faults) -> None:
        run, data, digest = prepared(text)
        super().__init__(run, data.user, text, digest, seed, faults)
        self.story = f"seed {seed}, {faults}, spec:\n{text}"
        self.left: dict[tuple[Peer, int, int], Any] = {}
        self.forgotten: dict[
            Peer, tuple[bytes, bytes]
        ] = {}  # disks as they were before they were rolled back or changed

    def _carry_out(self, process: Process, effects: Effects) -> None:
        stopped = process.host is not None and process.host.stopped
        super()._carry_out(process, effects)
        if process.host is None:  # it crashed before anything could leave
            return
        for name, data in effects.writes:
            if name == VIEW and data != records.LEDGER_MAGIC:
                assert not stopped, "a peer whose disk was rolled back records nothing more"
                for record in records.read(records.LEDGER_MAGIC + data).records:
                    self._remember(process.peer, record)

    def _crash(self, process: Process, crash: Crash) -> None:
        disk = process.disk
        rolled_back = crash.rolled_back_to is not None and crash.rolled_back_to < disk.view_records
        if process.up and (rolled_back or (crash.disk is not None and crash.disk.harm not in TAILS)):
            self.forgotten[process.peer] = bytes(disk.view), bytes(disk.private)
        super()._crash(process, crash)

    def _boot(self, process: Process) -> None:
        """What a restart finds on its disk, it may send."""
        super()._boot(process)
        for record in records.read(bytes(process.disk.view)).records if process.up and process.disk.view else ():
            self._remember(process.peer, record)

    def _remember(self, peer: Peer, record: records.Record) -> None:
        if record.kind != records.SENT or not is_user(peer):
            return
        message = whole_message(record)
        if message.type in (TOKEN, TOTAL):
            known = self.left.setdefault((peer, *message.fields), message.value)
            assert same(known, message.value), "noise was drawn twice for one contribution"


def chance(seed: int) -> Random:
    """Decides which faults happen; a failure prints its seed."""
    return Random(seed)  # noqa: S311 - nothing is kept secret with it


def world_of(text: str, seed: int = 1, *crashes: Crash, **network: Any) -> WatchedWorld:
    faults = Faults(crashes=crashes, **{"reordering": True} | network) if crashes or network else NO_FAULTS
    return WatchedWorld(text, seed, faults)


def completes(world: WatchedWorld) -> Judged:
    """The world runs to its end, and all is as it must be."""
    try:
        world.run_to_end()
        return judge(world, world.forgotten)
    except (AssertionError, RunFailed) as error:
        error.add_note(world.story)
        raise


def ends(world: WatchedWorld, *reasons: str) -> str:
    """The world runs to its end, with all as it must be, or says that it cannot for one of these reasons."""
    try:
        completes(world)
    except RunFailed as error:
        if not any(reason in str(error) for reason in reasons):
            raise
        return str(error)
    return ""


@cache
def record_counts(text: str, seed: int = 1) -> dict[Peer, int]:
    """How many records each peer writes in a run without faults: all the places where it can crash."""
    world = world_of(text, seed)
    world.run_to_end()
    return {peer: process.disk.records for peer, process in world.processes.items()}


def crashed_at_a_fourth(text: str, peer: Peer) -> Iterator[WatchedWorld]:
    """Worlds in which `peer` crashes at each fourth record, at every third of a role's; users take turns."""
    first, step = (1, 3) if peer < 0 else (1 + peer % 4, 4)
    for record in range(first, record_counts(text)[peer] + 1, step):
        yield world_of(text, 1, Crash(peer, at_record=record, torn_bytes=(None, 0, 40)[record % 3]))


def crashed_twice(texts: Sequence[str], seeds: Iterable[int], **network: Any) -> Iterator[tuple[WatchedWorld, str]]:
    """Worlds of these specs with two crashes at any records, and what the network does besides."""
    for seed in seeds:
        dice = chance(seed)
        text = dice.choice(texts)
        counts = record_counts(text)
        crashes = [
            Crash(peer, at_record=dice.randint(1, counts[peer] + 4), torn_bytes=dice.choice((None, 3, 30)))
            for peer in dice.choices(sorted(counts), k=2)
        ]
        yield world_of(text, seed, *crashes, **network), text
