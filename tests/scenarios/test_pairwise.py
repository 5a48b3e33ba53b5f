"""Pairwise sums whose users vanish, crash and come back: the survivors' sum is exact, and nobody reveals both secrets.

For each neighbour a user reveals the key that the two share or its part of the neighbour's own, never both: with both,
the neighbour's value would stand in the open but for its noise.
"""

from __future__ import annotations

import pytest

from p2pdp.core.errors import RunFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.sim.faults import Crash, Partition
from tests.support.crash_specs import LOSSY, everybody
from tests.support.fault_worlds import chance, record_counts
from tests.support.pairwise_runs import Judged, MaskedWorld, completes, masked_world
from tests.support.pairwise_world import COUNTS, pairwise

COMPLETE = pairwise(5, terms="survivors_min = 3", privacy="colluders_max = 1")
FOUR = pairwise(4, terms="survivors_min = 2", privacy="colluders_max = 1")
RING = pairwise(5, '"ring"', "survivors_min = 2")
GAUSSIAN = pairwise(
    5,
    terms='masks = "gaussian"\nsurvivors_min = 3',
    noise='mechanism = "gaussian"\nsigma = 1.0\npair_sigma = 4.0',
)
SPARSE = pairwise(8, '"regular"\ndegree = 4', "survivors_min = 4", privacy="colluders_max = 1", data=COUNTS)
BARE = pairwise(4, terms="survivors_min = 2", noise='mechanism = "none"')
LARGE = pairwise(12, '"regular"\ndegree = 6', "survivors_min = 8", privacy="colluders_max = 2")
TOO_FEW = ("the result needs", "standstill")


def ends(world: MaskedWorld) -> Judged | None:
    """The result of a run; None if it says that it needs somebody who is gone."""
    try:
        return completes(world)
    except RunFailed as error:
        if not any(reason in str(error) for reason in TOO_FEW):
            raise
        return None


@pytest.mark.parametrize(("text", "peer"), everybody(FOUR))
def test_a_crash_at_every_record_changes_nothing(text: str, peer: Peer) -> None:
    for record in range(1, record_counts(text)[peer] + 1):
        torn_bytes = (None, 0, 40)[(record + peer) % 3]
        world = masked_world(text, 1, Crash(peer, at_record=record, torn_bytes=torn_bytes))
        found = completes(world)
        assert found.verification.verified == "complete"
        assert found.survivors == list(range(world.run.n))
        assert world.pairs == set()


@pytest.mark.parametrize(("text", "user"), [(text, user) for text in (COMPLETE, RING, GAUSSIAN) for user in range(5)])
def test_whoever_is_gone_at_any_record_the_others_have_their_sum(text: str, user: Peer) -> None:
    """Its value counts if it was decided before; then its neighbours unmask it. Neighbours take turns at records."""
    counted = set()
    for record in range(1 + user % 2, record_counts(text)[user] + 1, 2):
        found = completes(masked_world(text, 1, Crash(user, at_record=record, down_s=None)))
        assert set(range(5)) - set(found.survivors) <= {user}
        counted.add(user in found.survivors)
    assert counted == {False, True}


@pytest.mark.parametrize("user", range(5))
def test_who_comes_back_after_its_exclusion_reveals_nothing_more(user: Peer) -> None:
    for record in range(8, record_counts(COMPLETE)[user] + 1):
        world = masked_world(COMPLETE, 1, Crash(user, at_record=record, down_s=60.0))
        found = completes(world)
        if user not in found.survivors:
            assert all(one != user for one, _ in world.parts)
            assert {other for other, gone in world.pairs if gone == user} == set(range(5)) - {user}


@pytest.mark.parametrize("user", range(3))
def test_a_disk_that_was_set_back_to_any_record_reveals_nothing_else(user: Peer) -> None:
    """It is stopped where peers prove that it forgot something; its neighbours go on without it."""
    other = (user + 1) % 5
    last = record_counts(COMPLETE)[user]
    for record in range(10, last + 1, 2):
        for earlier in range(2, record, 5):
            back = Crash(user, at_record=record, down_s=2.0, rolled_back_to=earlier)
            ends(masked_world(COMPLETE, 1, back, Crash(other, at_record=15 + record % 7, down_s=None)))


@pytest.mark.parametrize("part", range(6))
def test_crashes_for_a_while_and_for_good_on_a_bad_network(part: int) -> None:
    ended = 0
    for seed in range(40 * part, 40 * part + 20):
        dice = chance(seed)
        text = dice.choice((COMPLETE, RING, GAUSSIAN, SPARSE, BARE, LARGE))
        counts = record_counts(text)
        users = [peer for peer in counts if peer >= 0]
        crashes = [
            Crash(peer, at_record=dice.randint(1, counts[peer] + 4), torn_bytes=dice.choice((None, 3, 30)))
            for peer in dice.choices(sorted(counts), k=2)
        ]
        gone = dice.sample(users, dice.randint(1, max(1, len(users) // 3)))
        crashes += [Crash(peer, at_record=dice.randint(1, counts[peer]), down_s=None) for peer in gone]
        ended += ends(masked_world(text, seed, *crashes, **dice.choice(({}, LOSSY)))) is not None
    assert ended >= 10


def test_who_is_cut_off_and_put_out_reveals_nothing_to_anybody() -> None:
    for start_s in (0.006, 0.0065, 0.007, 0.0075, 0.008, 0.0085, 0.009, 0.0095):
        world = masked_world(COMPLETE, 1, partitions=(Partition(start_s, 60.0, frozenset({2})),), jitter_s=0.0)
        found = completes(world)
        if 2 not in found.survivors:
            assert all(one != 2 and other != 2 for one, other in world.parts)


@pytest.mark.parametrize("gone", [(0, 1, 2), (1, 2, 3)])
def test_below_the_least_number_of_survivors_the_run_says_so_and_reveals_nothing(gone: tuple[Peer, ...]) -> None:
    world = masked_world(COMPLETE, 1, *(Crash(user, at_s=0.0065, down_s=None) for user in gone))
    with pytest.raises(RunFailed, match="3 survivors"):
        world.run_to_end()
    assert world.parts == set()


@pytest.mark.parametrize("role", [BOOTSTRAP, CURATOR])
def test_without_a_role_there_is_no_result(role: Peer) -> None:
    for record in range(12, record_counts(COMPLETE)[role], 4):
        world = masked_world(COMPLETE, 1, Crash(role, at_record=record, down_s=None))
        try:
            found = completes(world)
        except RunFailed:
            continue
        assert found.survivors == [0, 1, 2, 3, 4]


def test_audits_of_what_is_left_claim_what_the_survivors_hide() -> None:
    """The sum over those who are left has their noise; who vanished in time shows nothing."""
    for seed in range(6):
        world = masked_world(
            LARGE, seed, *(Crash(user, at_s=0.0072 + 0.0004 * user, down_s=None) for user in (1, 4, 7))
        )
        found = completes(world)
        assert found.audit is not None
        exact = {claim.observer: claim for claim in found.audit.claims if claim.method == "exact"}
        assert exact["curator"].mu_max is not None
        assert exact["curator"].mu_max ** 2 * len(found.survivors) == pytest.approx(1.0, rel=1e-6)
        assert not {"curator", "public"} & {refusal.observer for refusal in found.audit.refusals}
