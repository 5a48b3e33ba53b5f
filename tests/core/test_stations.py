from __future__ import annotations

import pytest

from p2pdp.core.stations import ROLES_STATION, STATION_LETTERS_MAX, is_station, user_station


@pytest.mark.parametrize("name", [ROLES_STATION, user_station(0), user_station(12345), "a.b_c@d-e", "x" * 64])
def test_names_of_stations(name: str) -> None:
    assert is_station(name)


@pytest.mark.parametrize("name", ["", "a/b", "a+", "#", "ä", "a b", "x" * (STATION_LETTERS_MAX + 1), "a\n", "a:1"])
def test_what_could_be_no_part_of_a_topic(name: str) -> None:
    assert not is_station(name)


def test_users_stations_differ() -> None:
    assert len({user_station(number) for number in range(20_000)}) == 20_000
