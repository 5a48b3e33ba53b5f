from __future__ import annotations

from typing import Any

import pytest

from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.core.step import Message
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.peer.effects import Timing
from p2pdp.peer.forms import apply_after_close, apply_to_links, read_message
from p2pdp.peer.peers import Peers
from p2pdp.wire.codec import pack_message, pack_value
from tests.support.known import cuts
from tests.support.toys import credentials

SALT = bytes(16)


def test_a_value_comes_with_its_salt_and_a_salt_with_its_value() -> None:
    packed, value = pack_message(Message("m")), pack_value(5)
    assert read_message(packed, SALT, value) == Message("m", (), 5)
    assert read_message(packed, b"", b"") == Message("m")
    for salt, content in ((b"", value), (SALT[1:], value), (SALT, b""), (SALT[1:], b"")):
        assert read_message(packed, salt, content) is None


def test_cut_messages_and_values_are_none() -> None:
    packed, value = pack_message(Message("token", (1, 2))), pack_value(5)
    assert all(read_message(cut, SALT, value) is None for cut in cuts(packed))
    assert all(read_message(packed, SALT, cut) is None for cut in cuts(value) if cut)


# What links learn


def user(me: int = 0, n: int = 4) -> Peers:
    return Peers(credentials(me, n, (1, 2)), SeededEntropy(1, "a"), Timing())


def hear(peers: Peers, sender: int, kind: str, *fields: Any) -> None:
    apply_to_links(peers, credentials(0, 4, (1, 2)), sender, Message(kind, fields))


def refused(peers: Peers) -> list[int]:
    return sorted(peer for peer, link in peers.links.items() if link.refused)


def test_only_bootstrap_can_put_somebody_out() -> None:
    peers = user()
    for sender in (1, CURATOR, 0):
        hear(peers, sender, "out", 2, b"")
    assert refused(peers) == []
    hear(peers, BOOTSTRAP, "out", 2, b"")
    assert refused(peers) == [2]


@pytest.mark.parametrize("peer", [3, 99, BOOTSTRAP, CURATOR, -7, 1 << 40])
def test_nobody_but_a_neighbour_can_be_refused(peer: int) -> None:
    peers = user()
    hear(peers, BOOTSTRAP, "out", peer, b"")
    assert refused(peers) == []
    assert peer not in peers.links


def test_who_is_out_itself_hears_bootstrap_only() -> None:
    peers = user()
    hear(peers, BOOTSTRAP, "out", 0, b"")
    assert refused(peers) == [CURATOR, 1, 2]


def test_after_the_end_only_bootstrap_is_heard_and_the_head_goes_out_again() -> None:
    peers, place = user(), credentials(0, 4, (1, 2))
    peers.send(CURATOR, b"head", b"", 0.0)
    peers.frames.clear()
    apply_after_close(peers, place, 1, Message("probe"), 50.0)
    apply_after_close(peers, place, 1, Message("out", (0, b"")), 50.0)
    apply_after_close(peers, place, BOOTSTRAP, Message("lost", (4, 7)), 50.0)
    assert (peers.frames, refused(peers)) == ([], [])
    apply_after_close(peers, place, BOOTSTRAP, Message("probe"), 50.0)
    assert [receiver for receiver, _ in peers.frames] == [CURATOR]
    apply_after_close(peers, place, BOOTSTRAP, Message("out", (0, b"")), 50.0)
    assert refused(peers) == [CURATOR, 1, 2]
    assert not peers.link(CURATOR).in_flight
