"""The oracle sees what it is there for: liars whom it takes for honest break its rules."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from p2pdp.core.errors import RunFailed
from p2pdp.core.ids import CURATOR
from tests.campaigns.judging import _unharmed, run_schedule
from tests.campaigns.schedules import schedule
from tests.campaigns.worlds import Hung


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("conflict", "conflict"),
        ("skips", "gap"),
        ("double", "doubled"),
        ("wrongfields", "malformed"),
        ("garbage", "unreadable"),
    ],
)
def test_a_liar_that_is_taken_for_honest_breaks_a_rule(kind: str, rule: str) -> None:
    seen = set()
    for seed in range(6):
        world = schedule("walk.sum", seed, kinds=(kind,), calm_network=True).world()
        world.oracle._liars = frozenset()
        with suppress(RunFailed, Hung):
            world.run_to_end()
        seen |= {violation.kind for violation in world.oracle.violations}
    assert rule in seen


def test_a_second_value_for_the_same_step_is_seen() -> None:
    world = schedule("walk.sum", 1, kinds=(), calm_network=True).world()
    world.oracle._said = _Forgets(world.oracle._said)
    world.run_to_end()
    assert {violation.kind for violation in world.oracle.violations} == {"redrawn"}


class _Forgets(dict[tuple[object, ...], tuple[bytes, int, int]]):
    """Remembers another value than what was said."""

    def setdefault(
        self, key: tuple[object, ...], default: tuple[bytes, int, int] = (b"", 0, 0)
    ) -> tuple[bytes, int, int]:
        return super().setdefault(key, (default[0] + b"?", *default[1:]))


def test_honest_runs_are_clean_and_frames_are_counted() -> None:
    world, found = run_schedule(schedule("gossip.average", 0, kinds=(), calm_network=True))
    traffic = world.oracle.traffic
    assert found == []
    assert 0 < traffic.messages < traffic.frames < world.network.frames


@pytest.mark.parametrize(("forgot", "done", "told"), [(False, True, True), (True, True, False), (True, False, True)])
def test_an_honest_user_that_is_out_is_told_unless_it_was_done_and_a_role_forgot(
    forgot: bool, done: bool, told: bool
) -> None:
    case = schedule("gossip.average", 0, kinds=(), calm_network=True)
    world, found = run_schedule(case)
    assert found == []
    world.out.append(1)
    if not done:
        world.processes[1].host = None
    judged = _unharmed(replace(case, excused=frozenset({CURATOR} if forgot else ())), world)
    assert ("out" in {violation.kind for violation in judged}) is told


@pytest.mark.parametrize(
    ("set_back", "took", "lies", "told"),
    [
        (False, 0, False, True),
        (True, 1, False, True),
        (True, 0, False, False),
        (True, 1, True, False),
        (False, 1, True, True),
    ],
)
def test_a_second_content_is_a_conflict_unless_a_disk_forgot_what_nobody_honest_remembers(
    set_back: bool, took: int, told: bool, *, lies: bool
) -> None:
    world = schedule("walk.sum", 11, kinds=("double",)).world()
    with suppress(RunFailed, Hung):
        world.run_to_end()
    (sender, receiver), messages = next(
        (way, sent) for way, sent in world.oracle._sent.items() if len(sent) > 1 and not world.oracle._liars & set(way)
    )
    packed, _ = messages[0]
    oracle = world.oracle
    oracle.violations.clear()
    oracle._took = lambda _receiver, _sender: took
    oracle.set_back = {sender} if set_back else set()
    oracle._liars |= {receiver} if lies else set()
    oracle._data(sender, receiver, 1, packed + b"!", b"")
    assert ("conflict" in {violation.kind for violation in oracle.violations}) is told
