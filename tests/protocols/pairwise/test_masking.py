"""Users of pairwise sums, in any order of messages, with anybody vanishing at any moment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.core.step import Message
from p2pdp.protocols.decision import SURVIVORS
from p2pdp.protocols.pairwise.masking import CONTRADICTION, Masking, Phase, wrapped
from p2pdp.protocols.pairwise.plan import MASKED, PAIR_KEY, SEEDS, SHARE
from tests.support.pairwise_world import COUNTS, SmallWorld, pairwise
from tests.support.walk_world import SeededDraws

SPECS = {
    "complete": pairwise(6, terms="survivors_min = 3", privacy="colluders_max = 2"),
    "regular": pairwise(10, '"regular"\ndegree = 4', "survivors_min = 5", privacy="colluders_max = 1"),
    "ring": pairwise(6, '"ring"', "survivors_min = 2"),
    "star": pairwise(6, '"star"', "survivors_min = 2"),
    "gaussian": pairwise(
        7,
        terms='masks = "gaussian"\nsurvivors_min = 4',
        noise='mechanism = "gaussian"\nsigma = 1.0\npair_sigma = 3.0',
        privacy="colluders_max = 1",
    ),
    "counts": pairwise(6, terms="survivors_min = 3", data=COUNTS),
    "bare": pairwise(6, terms="survivors_min = 3", noise='mechanism = "none"'),
    "one": pairwise(1),
}
UNSETTLED = {
    "uniform": pairwise(5, terms='settle = "none"'),
    "gaussian": pairwise(
        6,
        terms='settle = "none"\nmasks = "gaussian"\nsurvivors_min = 3',
        noise='mechanism = "gaussian"\nsigma = 1.0\npair_sigma = 3.0',
    ),
}


def never_both(world: SmallWorld) -> None:
    pairs, parts = world.revealed()
    assert not pairs & parts
    assert all(message.type != PAIR_KEY or count == 1 for message, count in _counted(world))


def _counted(world: SmallWorld) -> list[tuple[Message, int]]:
    said = [(sender, message) for sender, _, message in world.sent if message.type in (PAIR_KEY, SEEDS, MASKED)]
    names = [(sender, message.type, str(message.fields)) for sender, message in said]
    return [(message, names.count(name)) for (_, message), name in zip(said, names, strict=True)]


def right(world: SmallWorld) -> None:
    """The result is that of the survivors, exactly, or there is none because bootstrap waits for somebody."""
    never_both(world)
    published = world.curator.published
    if published is None:
        assert world.blocked
        assert world.ended == set()
        return
    survivors = world.survivors
    assert survivors is not None
    assert len(survivors) >= world.run.plan.needed
    assert np.array_equal(published, world.expected(survivors))
    assert world.ended >= set(survivors) - world.gone - set(world.bootstrap.out)


@pytest.mark.parametrize("name", SPECS)
def test_the_sum_of_everybody_is_exact(name: str) -> None:
    for seed in range(20):
        world = SmallWorld(SPECS[name], seed)
        world.play(0)
        assert world.faults == []
        assert world.survivors == list(range(world.run.n))
        right(world)
        assert world.curator.published is not None


@pytest.mark.parametrize("name", [name for name in SPECS if name != "one"])
@given(seed=st.integers(0, 2**32), vanishing=st.integers(1, 4))
@settings(max_examples=150, deadline=None)
def test_whoever_vanishes_the_sum_of_the_survivors_is_exact_and_nobody_reveals_both(
    name: str, seed: int, vanishing: int
) -> None:
    world = SmallWorld(SPECS[name], seed)
    world.play(vanishing)
    right(world)


@pytest.mark.parametrize("name", ["complete", "regular", "gaussian"])
@given(seed=st.integers(0, 2**32), vanishing=st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_so_if_somebody_only_seems_to_be_gone(name: str, seed: int, vanishing: int) -> None:
    """What it still sends is refused by those who know that it is out, and it reveals no more than they."""
    world = SmallWorld(SPECS[name], seed)
    world.play(vanishing, seems=True)
    right(world)


def test_few_enough_may_vanish_without_stopping_the_run() -> None:
    ended = 0
    for seed in range(60):
        world = SmallWorld(SPECS["complete"], seed)
        world.play(3)
        ended += world.curator.published is not None
    assert ended >= 40  # some vanish between the decision and what it takes from them


@pytest.mark.parametrize("name", UNSETTLED)
def test_without_shares_nothing_is_revealed(name: str) -> None:
    world = SmallWorld(UNSETTLED[name], 4)
    world.play(0)
    right(world)
    assert {message.type for _, _, message in world.sent} & {SHARE, PAIR_KEY, SEEDS} == set()


def test_gaussian_masks_of_those_who_are_gone_stay_in_a_sum_without_shares() -> None:
    off = []
    for seed in range(30):
        world = SmallWorld(UNSETTLED["gaussian"], seed)
        world.play(2)
        survivors = world.survivors
        if world.curator.published is not None and survivors is not None and len(survivors) < 6:
            off.append(float(world.curator.published - world.expected(survivors)) / world.run.plan.mask.scale)
    assert len(off) > 5
    assert 0.5 < float(np.std(off)) < 6.0  # of one edge or a few


def test_uniform_masks_without_shares_take_everybody() -> None:
    world = SmallWorld(UNSETTLED["uniform"], 1)
    world.vanish(2)
    world.play(0)
    assert world.blocked == [2]
    assert world.curator.published is None


# One machine alone: user 1 of three, neighbour of all


class Alone:
    def __init__(self, text: str = pairwise(3, terms="survivors_min = 1")) -> None:
        self.world = SmallWorld(text, 0)
        self.draws = SeededDraws(1)
        self.machine = Masking(self.world.run.plan, 1, [0, 2], self.world.inputs[1])

    def gets(self, sender: int, kind: str, *fields: Any, value: Any = None) -> Any:
        return self.machine.receive(sender, Message(kind, fields, value), 0.0, self.draws)

    def masked(self) -> Alone:
        assert kinds(self.machine.start(0.0, self.draws)) == [SHARE, SHARE]
        self.gets(0, SHARE, value=bytes(33))
        step = self.gets(2, SHARE, value=bytes(33))
        assert [send.message.type for send in step.sends] == [MASKED]
        return self

    def decides(self, *absent: int) -> Any:
        return self.gets(BOOTSTRAP, SURVIVORS, list(absent), bytes(64))


def kinds(step: Any) -> list[str]:
    return [send.message.type for send in step.sends]


def test_the_value_waits_for_the_parts_of_all_who_are_in() -> None:
    one = Alone()
    assert kinds(one.machine.start(0.0, one.draws)) == [SHARE, SHARE]
    assert kinds(one.gets(0, SHARE, value=bytes(33))) == []
    step = one.machine.excluded(2, 0.0, one.draws)
    assert kinds(step) == [MASKED, PAIR_KEY]
    assert step.sends[0].message.fields == ([0, 2],)
    assert {send.to for send in step.sends} == {CURATOR}


def test_a_neighbour_that_never_was_in_gets_no_part() -> None:
    one = Alone()
    assert kinds(one.machine.excluded(0, 0.0, one.draws)) == []
    step = one.machine.start(0.0, one.draws)
    assert [send.to for send in step.sends] == [2]


def test_a_part_comes_once() -> None:
    one = Alone()
    assert kinds(one.machine.start(0.0, one.draws)) == [SHARE, SHARE]
    one.gets(0, SHARE, value=bytes(33))
    assert [fault.kind for fault in one.gets(0, SHARE, value=bytes(33)).faults] == ["unexpected_message"]


def test_after_the_decision_no_pair_key_is_revealed() -> None:
    one = Alone().masked()
    step = one.decides()
    assert kinds(step) == [SEEDS]
    assert step.sends[0].message.fields == ([1, 0, 2],)
    assert one.machine.excluded(2, 0.0, one.draws).sends == ()
    assert [fault.kind for fault in one.decides().faults] == ["unexpected_message"]


@pytest.mark.parametrize(
    ("out", "absent"),
    [((2,), ()), ((), (2,)), ((), (1,)), ((2,), (0,)), ((), (0, 1, 2)), ((2,), (2, 7))],
    ids=["revealed", "not told", "itself", "another", "nobody", "unknown"],
)
def test_a_decision_that_contradicts_what_it_was_told_reveals_nothing_any_more(
    out: tuple[int, ...], absent: tuple[int, ...]
) -> None:
    one = Alone().masked()
    for peer in out:
        assert kinds(one.machine.excluded(peer, 0.0, one.draws)) == [PAIR_KEY]
    step = one.decides(*absent)
    assert ([fault.kind for fault in step.faults], step.sends) == ([CONTRADICTION], ())
    for right_one in ((), out):
        assert one.decides(*right_one).sends == ()
    assert one.machine.excluded(0, 0.0, one.draws).sends == ()


def test_a_decision_with_too_few_survivors_is_none() -> None:
    one = Alone(pairwise(3, terms="survivors_min = 3")).masked()
    assert kinds(one.machine.excluded(0, 0.0, one.draws)) == [PAIR_KEY]
    assert [fault.kind for fault in one.decides(0).faults] == [CONTRADICTION]


def test_a_decision_before_the_value_is_sent_reveals_nothing() -> None:
    one = Alone()
    assert kinds(one.machine.start(0.0, one.draws)) == [SHARE, SHARE]
    step = one.decides()
    assert ([fault.kind for fault in step.faults], step.sends) == ([CONTRADICTION], ())
    assert one.machine._phase is Phase.SHARING


@pytest.mark.parametrize("value", [0, 5, -5, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 3 * 2**64 + 7])
def test_numbers_wrap_as_arrays_do(value: int) -> None:
    assert wrapped(value) == int(np.array([value % 2**64], dtype=np.uint64).astype(np.int64)[0])
