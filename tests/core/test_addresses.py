from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.addresses import (
    ROLES_STATION,
    STATION_LETTERS_MAX,
    Address,
    AddressError,
    Station,
    is_station,
    is_wildcard,
    join_address,
    split_address,
    split_option,
    user_station,
)
from p2pdp.core.errors import UsageError

HOSTS = st.one_of(
    st.sampled_from(["localhost", "10.66.0.2", "::1", "fe80::1%eth0", "node-3.example.org"]),
    st.from_regex(r"[a-z0-9.-]{1,60}", fullmatch=True),
)


@pytest.mark.parametrize(
    "name", [ROLES_STATION.name, user_station(0).name, user_station(12345).name, "a.b_c@d-e", "x" * 64]
)
def test_names_of_stations(name: str) -> None:
    assert is_station(name)


@pytest.mark.parametrize("name", ["", "a/b", "a+", "#", "ä", "a b", "x" * (STATION_LETTERS_MAX + 1), "a\n", "a:1"])
def test_what_could_be_no_part_of_a_topic(name: str) -> None:
    assert not is_station(name)


def test_users_stations_differ() -> None:
    assert len({user_station(number) for number in range(20_000)}) == 20_000


@given(HOSTS, st.integers(0, 65535))
def test_addresses_come_back(host: str, port: int) -> None:
    assert split_address(join_address(host, port)) == (host, port)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "host",
        "host:",
        ":7000",
        "host:70000",
        "host:-1",
        "host:7x",
        "::1:7000",
        "[host]:7000",
        "[::1]",
        "[]:1",
        "a b:1",
        "a#b:1",
        "höst:1",
        "host:٣",
        "host:000080",
        "h" * 300 + ":1",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(AddressError):
        split_address(text)


def test_wildcards_are_told_from_places() -> None:
    assert [is_wildcard(host) for host in ("0.0.0.0", "::", "127.0.0.1", "::1", "localhost")] == [  # noqa: S104
        *(True, True, False, False, False)
    ]


def test_an_address_and_a_station_are_never_each_other() -> None:
    assert str(Address("::1", 7)) == "[::1]:7"
    assert str(Station("a")) == "a"
    assert Station("a") != Address("a", 0)
    for name in ("a:1", "", "a/b"):
        with pytest.raises(ValueError, match="station"):
            Station(name)


def test_an_option_is_named_in_what_is_wrong_with_it() -> None:
    assert split_option("--listen", "here:7") == ("here", 7)
    with pytest.raises(UsageError, match=r"^--listen here: must read HOST:PORT"):
        split_option("--listen", "here")
