from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.draws import Mechanism
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.crypto.roster import Entries
from p2pdp.ledger import records
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.ledger.records import CHOSEN, DRAWN, POOL, SALT_BYTES, Record
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.draws import AHEAD_NUMBERS_MAX, POOL_MAX, Meetings, RecordedDraws
from p2pdp.wire.codec import unpack_value
from tests.support.toys import UniqueDraws, credentials

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


def expecting(times: int, shape: tuple[int, ...] = ()) -> tuple[Disk, Journal, RecordedDraws, UniqueDraws]:
    journal, sampler = Journal(), UniqueDraws()
    return Disk(), journal, RecordedDraws(journal, sampler, ENTROPY, expected={(GAUSSIAN, shape): times}), sampler


def test_at_rest_what_is_expected_is_laid_in_one_pool_at_a_time_and_used_first() -> None:
    disk, journal, draws, sampler = expecting(5 * POOL_MAX + 1)
    draws.prepare()
    assert sampler.drawn == [], "but not when there is only a moment"
    for pools in range(1, 6):
        assert draws.lack
        draws.prepare(ahead=True)
        assert len(sampler.drawn) == pools * POOL_MAX
    assert not draws.lack, "of less than a pool there is none"
    draws.prepare(ahead=True)
    values = [draws.noise(GAUSSIAN, ()) for _ in range(5 * POOL_MAX)]
    assert sampler.drawn == values
    assert not draws.lack
    disk.store(journal)
    pools, drawn = disk.pools(), disk.records(VIEW, DRAWN)
    assert [pools[record.body.pool][record.body.offset] for record in drawn] == values
    assert disk.order[2:7] == [PRIVATE] * 5, "it was recorded before it was used"
    assert set(disk.order[7:]) == {VIEW}


def test_after_a_restart_what_was_drawn_before_is_not_expected_again() -> None:
    disk, journal, draws, _ = expecting(5 * POOL_MAX)
    for _ in range(3 * POOL_MAX):
        draws.noise(GAUSSIAN, ())
    disk.store(journal)
    again, sampler = Journal(disk.files[VIEW], disk.files[PRIVATE]), UniqueDraws()
    draws = RecordedDraws(again, sampler, ENTROPY, expected={(GAUSSIAN, ()): 5 * POOL_MAX})
    while again.replaying:
        draws.noise(GAUSSIAN, ())
    while draws.lack:
        draws.prepare(ahead=True)
    assert len(sampler.drawn) == 2 * POOL_MAX


def test_nobody_lays_in_what_is_not_expected() -> None:
    _, _, draws, sampler = fresh()
    for _ in range(1000):
        draws.noise(GAUSSIAN, ())
    before = len(sampler.drawn)
    assert not draws.lack
    draws.prepare(ahead=True)
    assert len(sampler.drawn) == before


@pytest.mark.parametrize(("shape", "pool"), [((), 128), ((100,), 10), ((5000,), 1)])
def test_what_is_laid_in_is_bounded(shape: tuple[int, ...], pool: int) -> None:
    _, _, draws, sampler = expecting(10**9, shape)
    while draws.lack:
        before = len(sampler.drawn)
        draws.prepare(ahead=True)
        assert len(sampler.drawn) == before + pool
    assert len(sampler.drawn) * math.prod(shape) <= AHEAD_NUMBERS_MAX


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


def test_who_has_no_valid_entry_is_met_by_nobody() -> None:
    place = credentials(0, N)
    entries = list(place.roster.entries)
    entries[3] = replace(entries[3], box=bytes(32))
    spoilt = replace(
        place, roster=replace(place.roster, entries=Entries(b"".join(entry.to_bytes() for entry in entries)))
    )
    assert meetings(spoilt).toss(1, 1.0) == [1, 2, 4, 5]
