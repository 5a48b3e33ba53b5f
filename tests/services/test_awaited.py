from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from p2pdp.services.awaited import FIRST_MAX, Awaited


@given(st.integers(0, 300), st.lists(st.sets(st.integers(0, 299)), max_size=6))
def test_the_first_are_those_with_the_lowest_numbers(n: int, gone: list[set[int]]) -> None:
    awaited, left = Awaited(n), set(range(n))
    for some in ({*()}, *gone, set(range(0, 300, 2))):
        awaited.users -= some
        left -= some
        assert awaited.first() == tuple(sorted(left)[:FIRST_MAX])
        assert awaited.users == left
