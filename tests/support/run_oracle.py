"""What must be true of the disks of a world when it has come to rest, recomputed from the records alone.

Nothing here drives a machine: the path of each token is followed backwards, from the total that the curator
received, through the records of those who passed it on, and every number on it is added up again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from p2pdp.auditor.verify import Verification, verify
from p2pdp.core.draws import Mechanism
from p2pdp.core.ids import CURATOR, Peer
from p2pdp.core.messages import RESULT, TOKEN, TOTAL
from p2pdp.core.values import snapped
from p2pdp.ledger.records import (
    DRAWN,
    EVENT_KINDS,
    INPUTS,
    OWN,
    POOL,
    PUBLISHED,
    RECEIVED,
    SALT_BYTES,
    SENT,
    Record,
    read,
    whole_message,
)
from p2pdp.mechanisms import dither
from p2pdp.protocols.learning import inputs_again
from p2pdp.protocols.walk.sgd import SgdPlan
from p2pdp.replay.evidence import Evidence
from p2pdp.sim.world import World
from p2pdp.wire.codec import unpack_value


class Visit(NamedTuple):
    """A user's contribution at one step of a token, as its ledger tells of it."""

    sender: Peer
    before: Any
    draws: tuple[tuple[int, int], ...]  # pool and offset
    number: int  # the user's visits so far


@dataclass
class Diary:
    """What one user did with tokens."""

    visits: dict[tuple[int, int], Visit] = field(default_factory=dict)
    passed: dict[tuple[int, int], list[tuple[Peer, Any]]] = field(default_factory=dict)  # in order of sending
    pools: dict[int, list[Any]] = field(default_factory=dict)
    inputs: list[Any] = field(default_factory=list)
    dummies: int = 0


def same(one: Any, other: Any) -> bool:
    return bool(np.array_equal(np.asarray(one), np.asarray(other)))


def diary_of(user: Peer, view: bytes, private: bytes) -> Diary:
    diary = Diary()
    for record in read(private).records:
        if record.kind == POOL:
            diary.pools[record.body.number] = unpack_value((record.value or b"")[SALT_BYTES:])
        elif record.kind == INPUTS:
            assert not diary.inputs, "inputs are recorded once"
            diary.inputs = unpack_value((record.value or b"")[SALT_BYTES:])
    used: set[tuple[int, int]] = set()
    at: tuple[int, int] | None = None
    for record in read(view).records:
        if record.kind in EVENT_KINDS:
            at = _visit(diary, user, record)
        elif record.kind == DRAWN:
            where = (record.body.pool, record.body.offset)
            assert where not in used, "a draw is used once"
            used.add(where)
            assert at is not None, "noise is for contributions"
            diary.visits[at] = diary.visits[at]._replace(draws=(*diary.visits[at].draws, where))
        elif record.kind == SENT and whole_message(record).type in (TOKEN, TOTAL):
            _passed(diary, record.body.receiver, record)
    return diary


def _visit(diary: Diary, user: Peer, record: Record) -> tuple[int, int] | None:
    if record.kind not in (RECEIVED, OWN) or whole_message(record).type != TOKEN:
        return None
    message = whole_message(record)
    if record.kind == OWN:
        _passed(diary, user, record)
    item, step = message.fields
    assert (item, step) not in diary.visits, "a user contributes once at a step"
    sender = user if record.kind == OWN else record.body.sender
    diary.visits[item, step] = Visit(sender, message.value, (), len(diary.visits))
    return item, step


def _passed(diary: Diary, to: Peer, record: Record) -> None:
    message = whole_message(record)
    sends = diary.passed.setdefault(message.fields, [])
    assert all(same(value, message.value) for _, value in sends), "what is sent again has the same value"
    sends.append((to, message.value))


NOBODY: Mapping[Peer, tuple[bytes, bytes]] = MappingProxyType({})


class Judged(NamedTuple):
    total: Any
    path: dict[int, list[Peer]]  # item -> the user at each step
    verification: Verification


def evidence_of(world: World, forgotten: Mapping[Peer, tuple[bytes, bytes]] = NOBODY) -> Evidence:
    """The disks as they would be collected: without what a crash tore for good, and as before a disk changed them."""
    for process in world.processes.values():
        if process.faults["unusable_disk"]:
            process.disk.view[:], process.disk.private[:] = forgotten[process.peer]
        before = len(process.disk.view) + len(process.disk.private)
        process.disk.cut_torn_tails()
        cut = before != len(process.disk.view) + len(process.disk.private)
        assert not cut or process.peer in world.out, "only somebody who is out leaves a torn ledger behind"
    views = {peer: bytes(process.disk.view) for peer, process in world.processes.items() if process.disk.view}
    private = {peer: bytes(process.disk.private) for peer, process in world.processes.items() if process.disk.private}
    return Evidence(world.run.spec, world.roster.spec_digest, world.roster, views, private)


def judge(world: World, forgotten: Mapping[Peer, tuple[bytes, bytes]]) -> Judged:
    """Everything that must hold after a run that came to its end.

    `forgotten` are the disks of those who were stopped because theirs were rolled back or changed, as they were before.
    """
    evidence = evidence_of(world, forgotten)
    verification = verify(evidence)
    assert verification.problems == []
    assert verification.excluded == sorted(world.out)
    if not world.out:
        assert verification.verified == "complete"
    stopped = {peer for peer, process in world.processes.items() if process.host is not None and process.host.stopped}
    disks = {user: (evidence.views[user], evidence.private[user]) for user in evidence.private if user >= 0}
    disks.update({peer: disk for peer, disk in forgotten.items() if peer in stopped})
    diaries = {user: diary_of(user, *disk) for user, disk in disks.items()}
    totals, published = _at_the_curator(evidence.views[CURATOR])
    paths = {}
    for item in range(world.run.plan.tokens):
        paths[item] = _follow(world, diaries, item, *totals[item])
    assert sorted(totals) == list(range(world.run.plan.tokens))
    values = [totals[item][1] for item in sorted(totals)]
    total = sum(values[1:], start=values[0])
    if isinstance(world.run.plan, SgdPlan):
        total = total * (1.0 / len(totals))
    assert same(published, total), "the result is the sum of the totals, or the mean of the models"
    for user in range(world.run.n):
        if user not in world.out:
            assert _result_of(evidence.views[user], published), "everybody who is left has the result"
            strays = {at for at in diaries[user].visits if paths[at[0]][at[1] - 1] != user}
            assert not strays, "what a user who is left contributed is in the total"
    return Judged(total, paths, verification)


def _result_of(view: bytes, published: Any) -> bool:
    results = [
        whole_message(record)
        for record in read(view).records
        if record.kind == RECEIVED and whole_message(record).type == RESULT
    ]
    return len(results) == 1 and same(results[0].value, published)


def _at_the_curator(view: bytes) -> tuple[dict[int, tuple[Peer, Any]], Any]:
    totals: dict[int, tuple[Peer, Any]] = {}
    published = []
    for record in read(view).records:
        if record.kind == RECEIVED and whole_message(record).type == TOTAL:
            message = whole_message(record)
            assert message.fields[0] not in totals, "a total arrives once"
            totals[message.fields[0]] = (record.body.sender, message.value)
        elif record.kind == PUBLISHED:
            published.append(whole_message(record).value)
    assert len(published) == 1, "the result is published once"
    return totals, published[0]


def _follow(world: World, diaries: dict[Peer, Diary], item: int, holder: Peer, total: Any) -> list[Peer]:
    """Goes back along the path of one token and adds up what it carries."""
    plan, path, receiver, after = world.run.plan, [], CURATOR, total
    for step in range(plan.steps, 0, -1):
        diary = diaries[holder]
        visit = diary.visits[item, step]
        last_to, value = diary.passed[item, step + 1][-1]
        assert last_to == receiver, "the last one it was passed to is the one who had it"
        assert same(value, after), "a value arrives as it was sent"
        if isinstance(plan, SgdPlan):
            expected = learned(plan, diary, step, visit)
        else:
            expected = visit.before + contribution(world, diary, item, step, visit)
        assert same(expected, after), "a value changes by the contribution and the draws recorded for it"
        path.append(holder)
        after, receiver, holder = visit.before, holder, visit.sender
    assert not np.any(np.asarray(after)), "a token begins with nothing"
    return path[::-1]


def contribution(world: World, diary: Diary, item: int, step: int, visit: Visit) -> Any:
    plan = world.run.plan
    draws = [diary.pools[pool][offset] for pool, offset in visit.draws]
    value = diary.inputs[visit.number % len(diary.inputs)]
    expected = plan.draws_at(step)
    withheld = visit.number >= plan.contributions_max
    if withheld and plan.noise.name == "randomized_response":
        cover = Mechanism("uniform_counts", 1.0, plan.noise.categories)
        value, expected = np.zeros(plan.shape, dtype=np.int64), [*expected, cover]
    elif withheld:
        value = np.zeros(plan.shape, dtype=np.int64)
    elif plan.noise.categories:
        dummies = (step == 1 and plan.dummies > 0) + (step == plan.steps and plan.dummies > 0)
        reported = np.zeros(plan.shape, dtype=np.int64)
        if plan.noise.name == "randomized_response":
            response = draws.pop(0)
            value = value if response < 0 else response
        reported[value] = 1
        value, expected = reported, [*expected, *([plan.dummy_mechanism] * dummies)]
    assert len(draws) == len(expected), "there is as much noise as the plan says"
    return value + sum(draws)


def learned(plan: SgdPlan, diary: Diary, step: int, visit: Visit) -> Any:
    """The model after one noised step from the one before, over the rows that the private ledger keeps."""
    inputs = inputs_again(plan.descent, diary.inputs)
    draws = [diary.pools[pool][offset] for pool, offset in visit.draws]
    if visit.number == 0 and plan.dither is not None:
        draws.pop()  # the seed of all dithers
    assert len(draws) == len(plan.draws_at(step)), "there is as much noise as the plan says"
    withheld = visit.number >= plan.contributions_max
    direction = inputs.zero() if withheld else inputs.gradient(visit.before, visit.number)
    for drawn in draws:
        direction = direction + drawn * plan.descent.step
    model = plan.descent.moved(visit.before, direction, plan.rate_at(step))
    return model if plan.dither is None else snapped(model, plan.fine) + _dither(plan, diary, visit.number) * plan.fine


def _dither(plan: SgdPlan, diary: Diary, number: int) -> Any:
    """What the seed of the first visit unfolds to for this one: of each block the last comes first."""
    pool, offset = next(visit for visit in diary.visits.values() if visit.number == 0).draws[-1]
    size = plan.shape[0]
    draws = max(1, min(128, 1024 // size))
    block = dither.unfolded(diary.pools[pool][offset], number // draws, draws * size).reshape(draws, size)
    return block[-1 - number % draws]
