"""When somebody is gone for good: guardian, exclusion, settlement (guide/architecture.md, section 4)."""

from __future__ import annotations

import pytest

from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.core.messages import OUT
from p2pdp.ledger.records import CLOSED, OWN, RECEIVED, SENT, public_message, read
from p2pdp.sim.faults import Crash
from tests.support.crash_specs import LOSSY
from tests.support.fault_worlds import HISTOGRAM, chance, completes, ends, record_counts, ring, walk, world_of

WALKS = (
    walk(4, 8),
    walk(5, 8, "path"),
    walk(5, 10, "regular"),
    walk(4, 8, tokens=2),
    walk(2, 4),
    walk(4, 6, task=HISTOGRAM),
)
PLACES = [(text, user) for text in WALKS for user in range(int(text.partition("nodes = ")[2].split()[0]))]
BLOCKED = "the run is blocked"


@pytest.mark.parametrize(("text", "user"), PLACES)
def test_a_walk_goes_round_whoever_is_gone(text: str, user: int) -> None:
    for record in range(1, record_counts(text)[user] + 1):
        world = world_of(text, 1, Crash(user, at_record=record, down_s=None))
        assert completes(world).verification.verified == "incomplete"
        assert world.out == [user]


@pytest.mark.parametrize(("text", "user"), PLACES[:12])
def test_who_returns_after_its_exclusion_learns_that_it_is_out_and_closes(text: str, user: int) -> None:
    for record in range(8, record_counts(text)[user] + 1):
        world = world_of(text, 1, Crash(user, at_record=record, down_s=60.0))
        completes(world)
        assert world.out == [user]
        written = read(bytes(world.processes[user].disk.view)).records
        assert written[-1].kind == CLOSED
        told = [at for at in written if at.kind == RECEIVED and public_message(at).type == OUT]
        assert len(told) <= 1  # none where it had closed before, of itself
        if told:
            assert all(at.kind != RECEIVED for at in written[written.index(told[0]) + 1 :])


@pytest.mark.parametrize("user", range(3))
def test_a_ring_cannot_go_round_and_names_who_is_gone(user: int) -> None:
    text, blocked = ring(3, 2), 0
    for record in range(1, record_counts(text)[user] + 1):
        world = world_of(text, 1, Crash(user, at_record=record, down_s=None))
        reason = ends(world, f"the run is blocked: {user} is gone, and a ring cannot go round")
        blocked += bool(reason)
        assert world.out == ([] if reason else [user])  # put out only once everything was published
    assert blocked > record_counts(text)[user] // 2


@pytest.mark.parametrize("user", range(3))
def test_a_blocked_ring_goes_on_when_the_user_is_back(user: int) -> None:
    for record in range(1, record_counts(ring(3, 2))[user] - 4):
        world = world_of(ring(3, 2), 1, Crash(user, at_record=record, down_s=90.0))
        assert completes(world).verification.verified == "complete"


def test_the_starter_is_gone_before_it_passes_anything_on() -> None:
    for text in (walk(4, 8), walk(5, 8, "path"), walk(4, 8, tokens=2)):
        world = world_of(text, 1, Crash(0, at_record=9, down_s=None))
        judged = completes(world)
        assert world.out == [0]
        assert all(0 not in path for path in judged.path.values())


def test_where_a_curator_or_nobody_is_left_the_run_says_so() -> None:
    assert "curator is gone" in ends(world_of(walk(4, 8), 1, Crash(CURATOR, at_record=8, down_s=None)), BLOCKED, "gone")
    assert "0 is gone" in ends(world_of(walk(1, 4), 1, Crash(0, at_record=12, down_s=None)), BLOCKED)
    assert "bootstrap" in ends(world_of(walk(4, 8), 1, Crash(BOOTSTRAP, at_record=18, down_s=None)), "standstill")


@pytest.mark.parametrize("first", range(3))
def test_guardian_and_holder_both_gone(first: int) -> None:
    """Not lost unless nobody alive held the item before, and even then nothing is doubled."""
    text = walk(3, 5)
    counts = record_counts(text)
    second = (first + 1) % 3
    for one in range(7, counts[first] + 1):
        for other in range(7, counts[second] + 1, 3):
            crashes = Crash(first, at_record=one, down_s=None), Crash(second, at_record=other, down_s=None)
            ends(world_of(text, 1, *crashes), "standstill", BLOCKED)


@pytest.mark.parametrize("role", [BOOTSTRAP, CURATOR])
def test_bootstrap_and_curator_may_crash_during_an_exclusion(role: int) -> None:
    for text in WALKS[:3]:
        for user, record in ((0, 16), (1, 14), (2, 9)):
            for at in range(14, 40, 5):
                crashes = Crash(user, at_record=record, down_s=None), Crash(role, at_record=at, down_s=1.0 + at)
                completes(world_of(text, 1, *crashes))


def test_what_all_later_holders_took_along_is_sent_again_by_the_only_one_left() -> None:
    """From 0 over 1 to 2, who is away for a while; 1 is gone; 2 passes on to 3, who is gone, and then goes too."""
    text = walk(4, 8, "path")
    seed = next(seed for seed in range(999) if _path(text, seed)[:4] == [0, 1, 2, 3])
    away = Crash(1, at_s=1.0, down_s=None), Crash(3, at_s=1.0, down_s=None), Crash(2, at_record=9, down_s=12.0)
    world = world_of(text, seed, *away, Crash(2, at_s=20.0, down_s=None))
    assert completes(world).path[0] == [0] * 8
    assert sorted(world.out) == [1, 2, 3]


def test_who_has_an_item_back_is_watched_by_bootstrap() -> None:
    """1 and 2 are gone, so 0 is told to send again; at any record of doing so it is gone too, and 3 begins anew."""
    text = walk(4, 8)
    seed = next(seed for seed in range(999) if _path(text, seed)[:3] == [0, 1, 2])
    both = Crash(2, at_record=9, down_s=None), Crash(1, at_s=2.0, down_s=None)
    begun_anew = 0
    for record in range(17, 45):  # before that nobody who knew of it is left
        world = world_of(text, seed, *both, Crash(0, at_record=record, down_s=None))
        begun_anew += completes(world).path[0] == [3] * 8
    assert begun_anew > 5


def _path(text: str, seed: int) -> list[int]:
    return completes(world_of(text, seed)).path[0]


@pytest.mark.parametrize("part", range(10))
def test_any_schedule(part: int) -> None:
    """Up to four crashes, some for good, some for longer than anybody's patience; half of the networks are bad."""
    for seed in range(60 * part, 60 * part + 30):
        dice = chance(seed)
        text = dice.choice(WALKS)
        counts = record_counts(text)
        crashes = [
            Crash(
                peer,
                at_record=dice.randint(1, counts[peer] + 10),
                down_s=dice.choice((1.0, 3.0, 15.0, 25.0, 60.0, None) if peer >= 0 else (1.0, 5.0, 30.0, 60.0)),
                torn_bytes=dice.choice((None, 3, 30)),
            )
            for peer in dice.sample(sorted(counts), min(len(counts), dice.randint(1, 4)))
        ]
        ends(world_of(text, seed, *crashes, **dice.choice(({}, LOSSY))), BLOCKED)


def test_a_value_that_went_round_is_the_same_value() -> None:
    """`WatchedWorld` compares all that is ever sent for one step; here it is seen that some was sent twice."""
    again = 0
    for record in range(8, record_counts(walk(4, 8))[1] + 1):
        world = world_of(walk(4, 8), 1, Crash(1, at_record=record, down_s=None))
        completes(world)
        for user in (0, 2, 3):
            written = read(bytes(world.processes[user].disk.view)).records
            passed = [message.fields for at in written if at.kind in (SENT, OWN) for message in [public_message(at)]]
            tokens = [fields for fields in passed if len(fields) == 2]
            again += len(tokens) - len(set(tokens))
    assert again
