from __future__ import annotations

import pytest

from p2pdp.core.ids import BOOTSTRAP, CURATOR, is_user, peer_name


def test_the_roles_have_names_and_are_no_users() -> None:
    assert (peer_name(BOOTSTRAP), peer_name(CURATOR)) == ("bootstrap", "curator")
    assert not is_user(BOOTSTRAP)
    assert not is_user(CURATOR)
    assert BOOTSTRAP != CURATOR


@pytest.mark.parametrize("user", [0, 1, 2**31 - 1])
def test_users_are_named_by_their_number(user: int) -> None:
    assert peer_name(user) == user
    assert is_user(user)
