"""What the parties of small runs receive, over everything that chance may decide there.

A run is a world in which all routing choices follow a script, and `outcomes` runs it once for each script that there
can be. `Run.view` is everything that some parties received: whole frames after decryption, with their times, as
`--trace-wire` tells them; values are left out, and of sealed reports their owner stands in their place. Random numbers
of these runs (names, hashes, signatures, questions) are renamed in the order in which they appear: what matters of
fresh ones is which are the same.

The world has no jitter, so that times tell how often a token moved between users, as all claims take to be known.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple
from unittest.mock import patch

from p2pdp.assembly.hosts import user_host
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, peer_name
from p2pdp.core.messages import REPORT, RESULT, TOKEN, TOTAL
from p2pdp.core.step import Message
from p2pdp.crypto import identity
from p2pdp.ledger.records import SALT_BYTES
from p2pdp.mechanisms.sampler import SeededSampler
from p2pdp.node.user import handed_in
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.draws import Meetings
from p2pdp.peer.host import Host
from p2pdp.peer.payloads import DATA, parse_payload
from p2pdp.peer.tap import Tap, wire_line
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.shuffle.plan import RELAY, STAY_OPTIONS
from p2pdp.sim import world
from p2pdp.sim.faults import Faults
from p2pdp.sim.process import Process
from p2pdp.sim.world import World
from p2pdp.wire.codec import CodecError, unpack_message
from tests.support.fault_worlds import prepared

OPTIONS_MAX: Final = 64  # more are names, drawn so that nobody can guess them: no script tells those
CALM: Final = Faults(jitter_s=0.0)
_RANDOM: Final = re.compile(r"[0-9a-f]{16,}")
_NAMES_FROM: Final = 1 << 16


class Branch(NamedTuple):
    """A choice that was made: which of how many outcomes, and how likely that one is."""

    outcomes: int
    picked: int
    probability: Fraction


class Script:
    """The choices of a run in the order in which they are made; beyond those that are wanted the first outcome."""

    def __init__(self, wanted: Sequence[int], stay: float) -> None:
        self._wanted = wanted
        self._stay = Fraction(stay)
        self.trail: list[Branch] = []

    def choice(self, options: int) -> int:
        stays = options == STAY_OPTIONS
        outcomes = 2 if stays else options
        picked = self._wanted[len(self.trail)] if len(self.trail) < len(self._wanted) else 0
        chances = (self._stay, 1 - self._stay) if stays else (Fraction(1, options),) * options
        self.trail.append(Branch(outcomes, picked, chances[picked]))
        return picked * (options - 1) if stays else picked

    def next_wanted(self, kept: int) -> list[int] | None:
        """Of the next script that begins with as many of these choices, as when one counts; None after the last."""
        trail = list(self.trail)
        while len(trail) > kept and trail[-1].picked == trail[-1].outcomes - 1:
            trail.pop()
        return [branch.picked for branch in trail[:-1]] + [trail[-1].picked + 1] if len(trail) > kept else None


class _Sampler(SeededSampler):
    def __init__(self, seed: int, stream: str, script: Script) -> None:
        super().__init__(seed, stream)
        self._script = script

    def choice(self, options: int) -> int:
        told = options <= OPTIONS_MAX or options == STAY_OPTIONS
        return self._script.choice(options) if told else super().choice(options)


class Frame(NamedTuple):
    """A frame that was received, after decryption."""

    at_s: float
    receiver: Peer
    sender: Peer
    content: bytes


class _Party(Process):
    run: Run

    @property
    def tap(self) -> Tap:
        run = self.run
        return lambda sender, content: run.frames.append(Frame(run.world.now_s, self.peer, sender, content))

    def sampler(self, seed: int) -> SeededSampler:
        return _Sampler(seed, f"draws/{self.peer}/{self.incarnation}", self.run.script)


Graphs = Sequence[Collection[tuple[Peer, Peer]]]  # of each round the edges


def _met_in(graphs: Graphs) -> Callable[[Meetings, int, float], list[Peer]]:
    def toss(meetings: Meetings, number: int, _coin: float) -> list[Peer]:
        me, edges = meetings._credentials.me, graphs[number % len(graphs)]
        return sorted({*(a for a, b in edges if b == me), *(b for a, b in edges if a == me)})

    return toss


class Run:
    """One run to its end, with all that anybody received."""

    def __init__(
        self,
        text: str,
        faults: Faults,
        wanted: Sequence[int] = (),
        *,
        moved: int = 0,
        graphs: Graphs = (),
        skeletons: bool = False,
    ) -> None:
        """Users have the data of those who are `moved` places further on, and meet in each round as a graph says.

        With `skeletons` they hand these in at the end.
        """
        plan, data, digest = prepared(text)
        self.plan, self.n = plan.plan, plan.n
        self.script = Script(wanted, getattr(plan.spec.options, "stay", 0.0))
        self.frames: list[Frame] = []
        self.world = World(plan, lambda user: data.user((user + moved) % plan.n), text, digest, 1, faults)
        for peer, process in self.world.processes.items():
            party = _Party(**{field.name: getattr(process, field.name) for field in fields(Process)})
            party.run = self
            self.world.processes[peer] = party
        self.graphs, self.moved = graphs, moved
        with (
            patch.object(Meetings, "toss", _met_in(graphs)) if graphs else nullcontext(),
            patch.object(world, "user_host", self._handing_in) if skeletons else nullcontext(),
        ):
            self.world.run_to_end()

    def _handing_in(self, run: RunPlan, credentials: Credentials, *rest: Any, **named: Any) -> Host:
        disk = self.world.processes[credentials.me].disk
        return user_host(
            run, credentials, *rest, skeleton=handed_in(lambda _name: bytes(disk.view), run, credentials), **named
        )

    @property
    def probability(self) -> Fraction:
        found = Fraction(1)
        for branch in self.script.trail:
            found *= branch.probability
        return found

    @cached_property
    def messages(self) -> list[tuple[Frame, Message]]:
        """Messages of frames in the order in which they arrived, repetitions included."""
        found = []
        for frame in self.frames:
            try:
                payload = parse_payload(frame.content)
            except CodecError:
                continue
            if payload.flags & DATA:
                found.append((frame, unpack_message(payload.message, payload.value[SALT_BYTES:])))
        return found

    @cached_property
    def owners(self) -> dict[bytes, Peer]:
        """Whose each sealed report is: nobody has sent it before its owner."""
        found: dict[bytes, Peer] = {}
        for frame, message in self.messages:
            if message.type in (RELAY, REPORT):
                found.setdefault(message.value, frame.sender)
        return found

    @cached_property
    def routes(self) -> tuple[tuple[tuple[int, Peer], ...], ...]:
        """Of each user's report: in which round it came to whom, its owner first."""
        found = {user: {(0, user)} for user in range(self.n)}
        for frame, message in self.messages:
            if message.type == RELAY:
                found[self.owners[message.value]].add((message.fields[-1], frame.receiver))
        return tuple(tuple(sorted(found[user])) for user in range(self.n))

    @cached_property
    def paths(self) -> list[list[Peer]]:
        """Of each token who held it at each step, from who began it on."""
        came: dict[tuple[int, int], Peer] = {}
        for frame, message in self.messages:
            if message.type in (TOKEN, TOTAL):
                came[message.fields] = frame.receiver
        found = []
        for start in self.plan.starts:
            path = [start.user]
            for step in range(1, self.plan.steps + 1):
                path.append(came.get((start.item, step), path[-1]))
            found.append(path)
        return found

    def times(self, observer: Collection[Peer]) -> tuple[Hashable, ...]:
        """When tokens, totals and the result came to the observer for the first time."""
        first: dict[Hashable, float] = {}
        for frame, message in self.messages:
            if frame.receiver in observer and message.type in (TOKEN, TOTAL, RESULT):
                first.setdefault((frame.receiver, message.type, message.fields), round(frame.at_s, 6))
        return tuple(sorted(first.items()))  # type: ignore[type-var]

    def view(self, observer: Collection[Peer], *, owners: bool = False, timed: bool = True) -> tuple[Hashable, ...]:
        """All that the observer received, in order of time, or of senders alone; with `owners` of sealed reports."""
        seen = sorted(
            ((round(frame.at_s, 6) if timed else None, frame.receiver, frame.sender), place)
            for place, frame in enumerate(self.frames)
            if frame.receiver in observer
        )
        names: dict[Hashable, str] = {}
        return tuple((*where, _renamed(self._said(place, owners), names)) for where, place in seen)

    def _said(self, place: int, owners: bool) -> Any:
        frame = self.frames[place]
        line = json.loads(wire_line(frame.sender, frame.content))
        if owners and line["type"] in (RELAY, REPORT):
            line["owner"] = self.owners[parse_payload(frame.content).value[SALT_BYTES + 1 :]]
        return line


def _renamed(item: Any, names: dict[Hashable, str]) -> Hashable:
    """The item as something that can be compared, with random numbers renamed."""
    if isinstance(item, dict):
        return tuple((key, _renamed(part, names)) for key, part in sorted(item.items()))
    if isinstance(item, list):
        return tuple(_renamed(part, names) for part in item)
    random = (isinstance(item, int) and item >= _NAMES_FROM) or (isinstance(item, str) and _RANDOM.fullmatch(item))
    return names.setdefault(item, f"random {len(names)}") if random else item


def outcomes(text: str, faults: Faults = CALM, begin: Sequence[int] = (), *, skeletons: bool = False) -> Iterator[Run]:
    """The run with each script that begins so."""
    wanted: Sequence[int] | None = begin
    while wanted is not None:
        run = Run(text, faults, wanted, skeletons=skeletons)
        yield run
        wanted = run.script.next_wanted(len(begin))


@contextmanager
def remembered_crypto() -> Iterator[None]:
    """All runs have the same keys: what is computed from these alone is computed once."""
    with patch.object(identity, "crypto_box_beforenm", lru_cache(1024)(identity.crypto_box_beforenm)):
        yield


# The law

Observer = Collection[Peer]
ROLES: Final = (BOOTSTRAP, CURATOR)  # in one process: what one sees, the other does


@dataclass(frozen=True)
class Aspect:
    """One thing that must not show: what is `hidden`, and what the observer's claim takes to be `given`."""

    name: str
    observers: Callable[[Run], Iterable[Observer]]
    hidden: Callable[[Run], Hashable]
    given: Callable[[Run, Observer], Hashable]
    owners: bool = False
    timed: bool = True


class Leak(NamedTuple):
    """Two hidden facts that agree with what is given, and yet the observer can tell them apart."""

    aspect: str
    observer: tuple[int | str, ...]
    one: Hashable
    other: Hashable
    where: str


def leaks(runs: Iterable[Run], aspects: Collection[Aspect]) -> tuple[list[Leak], int]:
    """What shows that must not; and how many pairs of hidden facts were compared."""
    laws: dict[Any, dict[Hashable, dict[Hashable, Fraction]]] = defaultdict(lambda: defaultdict(dict))
    for run in runs:
        chance = run.probability
        for aspect in aspects:
            for observer in aspect.observers(run):
                law = laws[aspect, tuple(observer), aspect.given(run, observer)][aspect.hidden(run)]
                view = run.view(observer, owners=aspect.owners, timed=aspect.timed)
                law[view] = law.get(view, Fraction(0)) + chance
    found, compared = [], 0
    for (aspect, observer, _), alternatives in laws.items():
        (one, first), *others = ((hidden, _normal(law)) for hidden, law in alternatives.items())
        compared += len(others)
        for other, law in others:
            if law != first:
                name = tuple(peer_name(peer) for peer in observer)
                found.append(Leak(aspect.name, name, one, other, _difference(first, law)))
    return found, compared


def _normal(law: dict[Hashable, Fraction]) -> dict[Hashable, Fraction]:
    total = sum(law.values())
    return {view: chance / total for view, chance in law.items()}


def _difference(one: dict[Any, Fraction], other: dict[Any, Fraction]) -> str:
    """The first frame of a view that differs."""
    view = next(view for view in one if one[view] != other.get(view))
    nearest = max(other, key=lambda candidate: _common(view, candidate))
    place = _common(view, nearest)
    return f"{view[place : place + 1]} or {nearest[place : place + 1]} (probabilities {one[view]}, {other.get(view)})"


def _common(one: Any, other: Any) -> int:
    return next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))


def own_visits(run: Run, observer: Observer) -> Hashable:
    """When tokens came to a user, from whom, to whom it gave them, and how often they moved in between."""
    (me,) = observer
    return tuple(tuple(_gaps(path, me)) for path in run.paths)


def _gaps(path: list[Peer], me: Peer) -> Iterator[Hashable]:
    """Before each visit and after the last: up to which step, how many moves, who had its first and last step."""
    moves, first = 0, None
    for step, holder in enumerate(path):
        before = path[step - 1] if step else None
        moves += before not in (None, holder)
        if holder == me:
            yield step, moves, first, before
            moves, first = 0, None
        elif before == me:
            first = holder
    yield len(path), moves, first
