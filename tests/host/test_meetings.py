from __future__ import annotations

from dataclasses import replace

from p2pdp.crypto.roster import Entries
from p2pdp.host.meetings import Meetings
from p2pdp.host.seat import Seat
from tests.support.toys import seat

N = 6


def meetings(place: Seat) -> Meetings:
    return Meetings(place, place.channel)


def test_both_ends_of_each_pair_meet_in_the_same_rounds() -> None:
    all_of_them = [meetings(seat(user, N)) for user in range(N)]
    met = [[one.toss(number, 0.5) for number in range(1, 20)] for one in all_of_them]
    for user, rounds in enumerate(met):
        for number, peers in enumerate(rounds):
            assert set(peers) == {peer for peer in range(N) if user in met[peer][number]}
    assert len({tuple(map(tuple, rounds)) for rounds in met}) == N


def test_the_coins_of_another_run_fall_otherwise() -> None:
    here = seat(0, N)
    there = replace(here, roster=replace(here.roster, run_id=bytes([9] * 16)))
    tosses = [[meetings(place).toss(number, 0.5) for number in range(1, 30)] for place in (here, there)]
    assert tosses[0] != tosses[1]


def test_keys_are_agreed_on_when_the_first_coin_is_tossed_and_with_users_only() -> None:
    place, asked = seat(2, N), []

    def channel(peer: int) -> object:
        asked.append(peer)
        return place.channel(peer)

    made = Meetings(place, channel)  # type: ignore[arg-type]
    assert asked == []
    made.toss(1, 0.5)
    made.toss(2, 0.5)
    assert asked == [0, 1, 3, 4, 5]


def test_who_has_no_valid_entry_is_met_by_nobody() -> None:
    place = seat(0, N)
    entries = list(place.roster.entries)
    entries[3] = replace(entries[3], box=bytes(32))
    spoilt = replace(
        place, roster=replace(place.roster, entries=Entries(b"".join(entry.to_bytes() for entry in entries)))
    )
    assert meetings(spoilt).toss(1, 1.0) == [1, 2, 4, 5]
