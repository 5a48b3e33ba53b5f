from __future__ import annotations

from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import CURATOR
from p2pdp.replay.findings import Finding, NotFollowed, not_followed


def test_the_text_is_that_of_the_first_and_names_peer_and_record() -> None:
    error = NotFollowed([Finding(3, 7, "is wrong"), Finding(1, None, "too")], [2])
    assert isinstance(error, VerificationFailed)
    assert str(error) == "node 3, record 7: is wrong"
    assert str(error.findings[1]) == "node 1: too"
    assert error.unjudged == (2,)


def test_roles_are_called_by_their_names() -> None:
    assert str(not_followed(CURATOR, 2, "is early")).startswith("node curator, record 2")
