from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.draws import UNIFORM, Mechanism
from p2pdp.core.errors import VerificationFailed
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.crypto.pair_coins import noise_key
from p2pdp.ledger import records
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.ledger.records import CHOSEN, DRAWN, PAIRED, POOL, SALT_BYTES, Record, to_skeleton
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.draws import AT_ONCE_MAX, POOL_MAX, POOL_NUMBERS_MAX, Meetings, RecordedDraws
from p2pdp.wire.codec import unpack_value
from tests.support.toys import UniqueDraws, credentials, roster

GAUSSIAN, LAPLACE = Mechanism("gaussian", 4.0), Mechanism("laplace", 2.0)
ENTROPY = SeededEntropy(3, "draws")


class Disk:
    def __init__(self) -> None:
        self.files = {VIEW: b"", PRIVATE: b""}
        self.order: list[str] = []

    def store(self, journal: Journal) -> None:
        for name, data in journal.take_writes():
            self.files[name] += data
            self.order.append(name)

    def records(self, name: str, kind: int) -> list[Record]:
        return [record for record in records.read(self.files[name]).records if record.kind == kind]

    def pools(self) -> list[list[Any]]:
        return [unpack_value((record.value or b"")[SALT_BYTES:]) for record in self.records(PRIVATE, POOL)]

    def again(self) -> tuple[Journal, RecordedDraws, UniqueDraws]:
        journal, sampler = Journal(self.files[VIEW], self.files[PRIVATE]), UniqueDraws()
        return journal, RecordedDraws(journal, sampler, ENTROPY), sampler


def fresh() -> tuple[Disk, Journal, RecordedDraws, UniqueDraws]:
    disk = Disk()
    return disk, *disk.again()


def test_pools_double_up_to_the_maximum() -> None:
    disk, journal, draws, _ = fresh()
    for _ in range(600):
        draws.noise(GAUSSIAN, ())
    disk.store(journal)
    assert [len(pool) for pool in disk.pools()] == [1, 2, 4, 8, 16, 32, 64, 128, 128, 128, 128]
    assert POOL_MAX == 128


def test_who_draws_once_draws_one_value() -> None:
    disk, journal, draws, sampler = fresh()
    value = draws.noise(GAUSSIAN, ())
    disk.store(journal)
    assert disk.pools() == [[value]] == [sampler.drawn]


def test_a_large_vector_is_drawn_ahead_from_its_second_use_on() -> None:
    disk, journal, draws, sampler = fresh()
    shape, drawn = (POOL_NUMBERS_MAX,), []
    for uses in range(1, 5):
        draws.noise(GAUSSIAN, shape)
        draws.prepare()
        draws.prepare()
        drawn.append(len(sampler.drawn))
        assert drawn[-1] == uses + (uses > 1)
    disk.store(journal)
    assert [len(pool) for pool in disk.pools()] == [1] * drawn[-1]


def test_a_sampler_that_can_draws_a_large_vector_beside_other_work() -> None:
    class Ahead(UniqueDraws):
        asked: ClassVar[list[object]] = []

        def ahead(self, *terms: object) -> None:
            self.asked.append(terms)

    journal, sampler = Journal(), Ahead()
    draws = RecordedDraws(journal, sampler, ENTROPY)
    shape = (AT_ONCE_MAX + 1,)
    for uses in range(1, 4):
        draws.noise(GAUSSIAN, shape)
        draws.prepare()
        assert len(sampler.drawn) == uses, "the pool is recorded when it is used"
        assert sampler.asked == [(GAUSSIAN, shape, 1)] * (uses - 1)
    draws.noise(GAUSSIAN, (AT_ONCE_MAX,))
    draws.noise(GAUSSIAN, (AT_ONCE_MAX,))
    before = journal.pools_drawn
    draws.prepare()
    assert journal.pools_drawn == before + 1, "a smaller one is drawn and recorded at once"
    assert len(sampler.asked) == 3


def test_a_draw_is_named_by_pool_and_offset_once_and_its_value_is_there() -> None:
    disk, journal, draws, _ = fresh()
    values = [draws.noise(mechanism, ()) for mechanism in (GAUSSIAN, LAPLACE, GAUSSIAN) for _ in range(9)]
    disk.store(journal)
    pools, drawn = disk.pools(), disk.records(VIEW, DRAWN)
    names = [(record.body.pool, record.body.offset) for record in drawn]
    assert len(set(names)) == len(names) == 27
    assert [pools[pool][offset] for pool, offset in names] == values
    assert len(set(values)) == 27
    assert [record.body.number for record in drawn] == list(range(27))


def test_each_mechanism_and_shape_has_pools_of_its_own() -> None:
    disk, journal, draws, _ = fresh()
    for mechanism, shape in ((GAUSSIAN, ()), (LAPLACE, ()), (GAUSSIAN, (2,)), (Mechanism("gaussian", 8.0), ())):
        draws.noise(mechanism, shape)
    disk.store(journal)
    pools = disk.records(PRIVATE, POOL)
    assert [record.body[1:] for record in pools] == [
        (0, "unique", "gaussian", 4.0, 0, [], 1),
        (1, "unique", "laplace", 2.0, 0, [], 1),
        (2, "unique", "gaussian", 4.0, 0, [2], 1),
        (3, "unique", "gaussian", 8.0, 0, [], 1),
    ]


def test_a_pool_is_written_before_its_first_use() -> None:
    disk, journal, draws, _ = fresh()
    journal.take_writes()
    draws.noise(GAUSSIAN, ())
    draws.noise(GAUSSIAN, ())
    disk.store(journal)
    assert disk.order == [PRIVATE, VIEW, PRIVATE, VIEW]


def test_no_value_of_a_draw_is_in_the_view() -> None:
    disk, journal, draws, _ = fresh()
    value = draws.noise(GAUSSIAN, ())
    disk.store(journal)
    assert int(value).to_bytes(2, "big") not in disk.files[VIEW]
    assert all(not record.value for record in records.read(disk.files[VIEW]).records)


def test_idle_moments_top_up_what_is_used_up_and_nothing_else() -> None:
    disk, journal, draws, sampler = fresh()
    draws.prepare()
    assert sampler.drawn == []
    draws.noise(GAUSSIAN, ())
    draws.prepare()
    draws.prepare()
    disk.store(journal)
    assert [len(pool) for pool in disk.pools()] == [1, 2]
    draws.noise(GAUSSIAN, ())
    draws.prepare()
    disk.store(journal)
    assert [len(pool) for pool in disk.pools()] == [1, 2]
    draws.noise(GAUSSIAN, ())
    draws.noise(GAUSSIAN, ())
    disk.store(journal)
    assert [len(pool) for pool in disk.pools()] == [1, 2, 4]


@given(st.integers(0, 20), st.integers(0, 20))
def test_a_restart_gives_the_same_values_and_drops_the_rest_of_a_pool(before: int, after: int) -> None:
    disk, journal, draws, _ = fresh()
    first = [draws.noise(GAUSSIAN, ()) for _ in range(before)]
    disk.store(journal)
    left = {(pool, at) for pool, values in enumerate(disk.pools()) for at in range(len(values))}
    left -= {(record.body.pool, record.body.offset) for record in disk.records(VIEW, DRAWN)}
    journal, draws, sampler = disk.again()
    assert [draws.noise(GAUSSIAN, ()) for _ in range(before)] == first
    assert sampler.drawn == []
    more = [draws.noise(GAUSSIAN, ()) for _ in range(after)]
    disk.store(journal)
    assert set(more) <= set(sampler.drawn)
    used = [(record.body.pool, record.body.offset) for record in disk.records(VIEW, DRAWN)]
    assert len(set(used)) == len(used) == before + after
    assert not left & set(used)


def test_choices_are_recorded_and_repeated() -> None:
    disk, journal, draws, _ = fresh()
    first = [draws.choice(options) for options in (3, 1, 1000)]
    disk.store(journal)
    assert [record.body for record in disk.records(VIEW, CHOSEN)] == [(3, first[0]), (1, 0), (1000, first[2])]
    _, draws, _ = disk.again()
    assert [draws.choice(options) for options in (3, 1, 1000)] == first


def test_who_ran_out_says_so() -> None:
    said: list[int] = []
    disk = Disk()
    journal = Journal()
    draws = RecordedDraws(journal, UniqueDraws(), ENTROPY, on_used_up=lambda: said.append(1))
    for _ in range(7):
        draws.noise(GAUSSIAN, ())
    disk.store(journal)
    assert len(said) == len(disk.pools()) == 3


def test_used_up_pools_are_freed() -> None:
    _, journal, draws, _ = fresh()
    for _ in range(2000):
        draws.noise(GAUSSIAN, ())
    assert journal._pools == {}  # they are with the draws as long as there is something left of them
    assert [len(pool.values) for pool in draws._open.values()] == [POOL_MAX]


N = 6


def meetings(place: Credentials) -> Meetings:
    return Meetings(place, place.channel)


def test_both_ends_of_each_pair_meet_in_the_same_rounds() -> None:
    all_of_them = [meetings(credentials(user, N)) for user in range(N)]
    met = [[one.toss(number, 0.5) for number in range(1, 20)] for one in all_of_them]
    for user, rounds in enumerate(met):
        for number, peers in enumerate(rounds):
            assert set(peers) == {peer for peer in range(N) if user in met[peer][number]}
    assert len({tuple(map(tuple, rounds)) for rounds in met}) == N


def test_the_coins_of_another_run_fall_otherwise() -> None:
    here = credentials(0, N)
    there = replace(here, roster=replace(here.roster, run_id=bytes([9] * 16)))
    tosses = [[meetings(place).toss(number, 0.5) for number in range(1, 30)] for place in (here, there)]
    assert tosses[0] != tosses[1]


def test_keys_are_agreed_on_when_the_first_coin_is_tossed_and_with_users_only() -> None:
    place, asked = credentials(2, N), []

    def channel(peer: int) -> object:
        asked.append(peer)
        return place.channel(peer)

    made = Meetings(place, channel)  # type: ignore[arg-type]
    assert asked == []
    made.toss(1, 0.5)
    made.toss(2, 0.5)
    assert asked == [0, 1, 3, 4, 5]


def test_both_ends_of_a_pair_draw_the_same_and_record_it_under_the_same_digest() -> None:
    drawn, digests = [], []
    for me, other in ((1, 4), (4, 1)):
        disk, journal = Disk(), Journal()
        draws = RecordedDraws(journal, UniqueDraws(), ENTROPY, meetings(credentials(me, N)))
        drawn.append([draws.pair(other, number, UNIFORM, (3,)).tolist() for number in (0, 1)])
        disk.store(journal)
        paired = records.read(to_skeleton(disk.files[VIEW])).records
        assert [record.kind for record in paired] == [PAIRED, PAIRED]
        assert [tuple(record.body) for record in paired] == [(other, n, *UNIFORM, [3]) for n in (0, 1)]
        digests.append([record.digest for record in paired])
        assert draws.pair_key(other, 1) == noise_key(credentials(me, N).channel(other).pair_secret, 1)
    assert drawn[0] == drawn[1]
    assert digests[0] == digests[1]
    assert len(set(digests[0])) == 2
    assert drawn[0][0] != drawn[0][1]


def test_a_restart_unfolds_the_same_pair_draw_and_refuses_another_key() -> None:
    disk, journal = Disk(), Journal()
    shared = meetings(credentials(1, N))
    before = RecordedDraws(journal, UniqueDraws(), ENTROPY, shared).pair(4, 0, UNIFORM, (3,)).tolist()
    disk.store(journal)
    again = Journal(disk.files[VIEW], disk.files[PRIVATE])
    assert RecordedDraws(again, UniqueDraws(), ENTROPY, shared).pair(4, 0, UNIFORM, (3,)).tolist() == before
    assert again.take_writes() == []
    for peer, number in ((3, 0), (4, 1)):
        other = Journal(disk.files[VIEW], disk.files[PRIVATE])
        with pytest.raises(VerificationFailed):
            RecordedDraws(other, UniqueDraws(), ENTROPY, shared).pair(peer, number, UNIFORM, (3,))


def test_a_peer_that_shares_nothing_has_no_pair_draws() -> None:
    _, _, draws, _ = fresh()
    with pytest.raises(LookupError):
        draws.pair(1, 0, UNIFORM, ())


def test_who_has_no_valid_entry_is_met_by_nobody() -> None:
    place = credentials(0, N)
    unsigned = replace(place.roster.held(3), box=bytes(32))
    spoilt = replace(place, roster=roster(N, spoilt={3: unsigned}))
    assert meetings(spoilt).toss(1, 1.0) == [1, 2, 4, 5]
