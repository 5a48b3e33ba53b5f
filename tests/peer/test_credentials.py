from __future__ import annotations

import pytest

from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.crypto.channel import context_bytes
from p2pdp.crypto.roster import RosterError
from p2pdp.ledger.records import FORMAT_VERSION
from tests.support.toys import RUN_ID, SPEC_DIGEST, credentials


@pytest.mark.parametrize("me", [0, 1, 2, BOOTSTRAP, CURATOR])
def test_with_everybody_for_a_neighbour_all_others_are_peers(me: int) -> None:
    everybody = {BOOTSTRAP, CURATOR, 0, 1, 2}
    place = credentials(me, 3)
    assert set(place.peers()) == everybody - {me}
    assert {peer for peer in range(-5, 10) if place.knows(peer)} == everybody - {me}


def test_a_user_knows_its_neighbours_and_the_roles_only() -> None:
    place = credentials(1, 5, (0, 3))
    assert place.peers() == [BOOTSTRAP, CURATOR, 0, 3]
    assert [peer for peer in range(-5, 10) if place.knows(peer)] == [CURATOR, BOOTSTRAP, 0, 3]


def test_n_of_one() -> None:
    assert credentials(0, 1).peers() == credentials(0, 1, ()).peers() == [BOOTSTRAP, CURATOR]
    assert not credentials(0, 1).knows(0)


def test_the_context_binds_format_run_roster_and_spec() -> None:
    place = credentials(0, 2)
    assert place.context == context_bytes(FORMAT_VERSION, RUN_ID, place.roster.digest, SPEC_DIGEST)
    assert place.context == credentials(1, 2).context
    assert len({place.context, credentials(0, 3).context, credentials(0, 2, protocol="x").context}) == 3


def test_both_ends_make_the_same_channel() -> None:
    body = credentials(0, 2).channel(1).seal(b"payload", bytes(24))
    assert credentials(1, 2).channel(0).open(body) == b"payload"


def test_there_is_no_channel_to_whom_the_roster_does_not_name() -> None:
    with pytest.raises(RosterError):
        credentials(0, 2).channel(2)
