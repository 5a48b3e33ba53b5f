from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.admission import Admission, counted_address


def made(addresses: str) -> Admission[int]:
    admission = Admission[int]()
    for number, address in enumerate(addresses):
        admission.add(number, address)
    return admission


def test_the_first_of_the_address_with_most_goes_first() -> None:
    admission = made("abaca")
    assert admission.first_to_go() == 0
    admission.discard(0)
    assert admission.first_to_go() == 2
    for gone in (2, 2, 9):
        admission.discard(gone)
    assert (list(admission), len(admission), 2 in admission, 4 in admission) == ([1, 3, 4], 3, False, True)
    assert admission.first_to_go() == 1, "where all have as many, whoever came first"


def test_only_those_go_who_may() -> None:
    admission = made("aaabb")
    assert admission.first_to_go(lambda member: member > 1) == 3
    assert admission.first_to_go(lambda member: member == 2) == 2
    assert admission.first_to_go(lambda _member: False) is None
    assert Admission[int]().first_to_go() is None


@given(st.lists(st.sampled_from("abcdef"), max_size=60), st.integers(1, 8))
def test_a_flood_displaces_nobody_who_has_no_more_places_than_others(flood: list[str], places: int) -> None:
    admission, came = Admission[int](), dict[int, str]()
    admission.add(-1, "honest")
    for number, address in enumerate(flood):
        came[number] = address
        admission.add(number, address)
        if len(admission) > places + 1:
            gone = admission.first_to_go()
            assert gone is not None
            admission.discard(gone)
            assert gone != -1 or len({came[one] for one in admission}) == places + 1, "each has one place"
    assert len(admission) <= places + 1


@pytest.mark.parametrize(
    ("name", "counted"),
    [(("10.0.0.1", 7000), "10.0.0.1"), (("::ffff:10.0.0.1", 1, 0, 0), "10.0.0.1"),
     (("2001:db8:1:2:3:4:5:6", 1, 0, 0), "2001:db8:1:2::"), (("fe80::1%eth0", 1, 0, 2), "fe80::"), ("", ""),
     (b"\0abstract", ""), (None, ""), (("name", 3), "name")],
)  # fmt: skip
def test_what_an_address_counts_as(name: object, counted: str) -> None:
    assert counted_address(name) == counted
