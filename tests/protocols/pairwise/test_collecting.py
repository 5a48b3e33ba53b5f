"""The curator's collector alone, and beside whole runs."""

from __future__ import annotations

from typing import Any

import pytest

from p2pdp.core.ids import CURATOR
from p2pdp.core.step import Message
from p2pdp.core.values import LinearForm, Source
from p2pdp.protocols.pairwise.collecting import MaskCollector
from p2pdp.protocols.pairwise.masking import CONTRADICTION
from p2pdp.protocols.pairwise.plan import MASKED, PAIR_KEY, SEEDS
from tests.support.pairwise_world import SmallWorld, pairwise

TEXT = pairwise(4, terms="survivors_min = 2", privacy="colluders_max = 1")


class Told:
    """A collector that is told what users sent to the curator in a run of its own."""

    def __init__(self, seed: int = 1) -> None:
        self.world = SmallWorld(TEXT, seed)
        self.world.play(0)
        self.collector = MaskCollector(self.world.run.plan)
        sent = [(sender, message) for sender, to, message in self.world.sent if to == CURATOR]
        self.said = {(sender, message.type): message for sender, message in sent}

    def takes(self, sender: int, kind: str) -> str | None:
        return self.collector.take(sender, self.said[sender, kind])

    def masked(self, *users: int) -> Told:
        for user in users:
            assert self.takes(user, MASKED) is None
        return self

    def gives(self, sender: int, kind: str, field: Any, value: Any) -> str | None:
        return self.collector.take(sender, Message(kind, (field,), value))


def test_it_asks_for_the_decision_when_all_who_are_in_have_given_what_they_can() -> None:
    told = Told().masked(0, 1, 2)
    assert told.collector.collected is None
    told.masked(3)
    assert told.collector.collected == []
    told.collector.excluded(1)
    assert told.collector.collected is None  # keys are missing
    for user in (0, 2, 3):
        key = told.world.draws[user].pair_key(1, 0)
        assert told.gives(user, PAIR_KEY, 1, key) is None
        assert told.gives(user, PAIR_KEY, 1, key) == "unexpected_message"
    assert told.collector.collected == [1]
    assert told.collector.decided([]) == CONTRADICTION
    assert told.collector.decided([1]) is None
    assert told.collector.collected is None
    assert told.collector.decided([1]) == CONTRADICTION
    for user in (0, 2):
        assert not told.collector.complete
        assert told.gives(user, SEEDS, *_without(told, user, 1)) is None
    assert told.collector.complete  # user 3's key follows from parts
    assert told.collector.result() == told.world.expected([0, 2, 3])


def _without(told: Told, user: int, gone: int) -> tuple[list[int], list[Any]]:
    message = told.said[user, SEEDS]
    kept = [(one, key) for one, key in zip(message.fields[0], message.value, strict=True) if one != gone]
    return [one for one, _ in kept], [key for _, key in kept]


def test_a_key_may_come_before_it_hears_of_the_exclusion() -> None:
    told = Told().masked(0, 1, 2, 3)
    for user in (0, 2, 3):
        assert told.gives(user, PAIR_KEY, 1, told.world.draws[user].pair_key(1, 0)) is None
    told.collector.excluded(1)
    assert told.collector.collected == [1]


def test_who_is_excluded_after_the_decision_still_counts() -> None:
    told = Told().masked(0, 1, 2, 3)
    assert told.collector.decided([]) is None
    told.collector.excluded(2)
    for user in (0, 1, 3):
        assert told.takes(user, SEEDS) is None
    assert told.collector.complete
    assert told.collector.result() == told.world.expected([0, 1, 2, 3])


def test_seeds_may_come_before_the_decision() -> None:
    told = Told().masked(0, 1, 2, 3)
    for user in range(4):
        assert told.takes(user, SEEDS) is None
    assert not told.collector.complete
    assert told.collector.decided([]) is None
    assert told.collector.complete


@pytest.mark.parametrize(
    ("sender", "kind", "field", "value", "fault"),
    [
        (0, MASKED, [1, 2, 3], 5, "unexpected_message"),
        (3, MASKED, [1, 3], 5, "malformed"),
        (3, PAIR_KEY, 1, bytes(32), "unexpected_message"),
        (3, SEEDS, [3], [bytes(32)], "unexpected_message"),
        (0, PAIR_KEY, 0, bytes(32), "unexpected_message"),
        (0, SEEDS, [1], [bytes(32)], "malformed"),
        (0, SEEDS, [0, 4], [bytes(32), bytes(33)], "malformed"),
        (0, "finished", [], 5, "unexpected_message"),
    ],
)
def test_what_nobody_should_say_is_a_fault_and_changes_nothing(
    sender: int, kind: str, field: Any, value: Any, fault: str
) -> None:
    told = Told().masked(0, 1, 2)
    assert told.gives(sender, kind, field, value) == fault
    told.masked(3)
    assert told.collector.decided([]) is None
    for user in range(4):
        assert told.takes(user, SEEDS) is None
    assert told.collector.result() == told.world.expected([0, 1, 2, 3])


def test_seeds_come_once_and_keys_of_pairs_only_before_the_decision() -> None:
    told = Told().masked(0, 1, 2, 3)
    assert told.collector.decided([]) is None
    assert told.takes(0, SEEDS) is None
    assert told.takes(0, SEEDS) == "unexpected_message"
    assert told.gives(0, PAIR_KEY, 1, bytes(32)) == "unexpected_message"


def test_what_the_ledger_of_a_user_would_tell_stays_unknown_in_the_result() -> None:
    told, unknown = Told(), Source("unknown", 0, 1)
    form = LinearForm.of(Source("input", 9, 0))
    for user in range(4):
        around = [peer for peer in range(4) if peer != user]
        assert told.gives(user, MASKED, around, form) is None
    assert told.collector.decided([]) is None
    for user in range(4):
        assert told.gives(user, SEEDS, [user], LinearForm.of(unknown)) is None
    assert told.collector.result().expand() == {Source("input", 9, 0): 4.0, unknown: -4.0}
