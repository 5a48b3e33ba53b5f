"""What links say beside messages, and bootstrap before anybody is excluded, depends on nothing that a route decides."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest

from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, is_user
from p2pdp.core.messages import ALIVE, BEGIN, GO, HEAD, PROBE, READY
from p2pdp.ledger.records import RECEIVED, SENT, other_end, public_message, read
from p2pdp.peer.payloads import CONTROL, DATA, POKE, Payload, parse_payload
from p2pdp.peer.peers import Peers
from p2pdp.protocols.gossip.plan import ACTIVATIONS
from p2pdp.sim.faults import Crash
from tests.support.fault_worlds import ring, walk, world_of
from tests.support.gossip_specs import PAIRS, RING
from tests.support.shuffle_specs import ALL as SHUFFLE

WORLDS = (walk(6, 40), walk(6, 20, "path"), walk(5, 20, tokens=2), ring(4, 2), RING, PAIRS, SHUFFLE)

Said = list[
    tuple[Peer, Peer, Payload, int]
]  # sender, receiver, what, and how many of its messages the sender has taken


@contextmanager
def heard() -> Iterator[Said]:
    """All that links say, as it is before it is sealed."""
    said: Said = []
    whole = Peers.frame

    def frame(self: Peers, peer: Peer, payload: bytes, value: bytes = b"") -> None:
        said.append((self._credentials.me, peer, parse_payload(payload + value), self.link(peer).received))
        whole(self, peer, payload, value)

    with patch.object(Peers, "frame", frame):
        yield said


@pytest.mark.parametrize("text", WORLDS)
@pytest.mark.parametrize("crashes", [(), (Crash(1, at_record=9, down_s=4.0),)])
def test_beside_messages_a_frame_tells_what_came_of_its_receiver_and_nothing_else(
    text: str, crashes: tuple[Crash, ...]
) -> None:
    with heard() as said:
        world_of(text, 3, *crashes, loss=0.1).run_to_end()
    assert any(payload.flags & CONTROL for _, _, payload, _ in said)
    for sender, _, payload, taken in said:
        assert payload.acknowledged == taken
        if payload.flags == DATA:
            assert payload.hello == []
        else:
            assert (payload.number, payload.message, payload.value) == (0, b"", b"")
            assert payload.hello == [] or len(payload.hello) == 3
            assert not payload.flags & POKE or sender == BOOTSTRAP


@pytest.mark.parametrize("text", WORLDS)
def test_without_an_exclusion_users_and_bootstrap_say_the_same_whatever_the_route(text: str) -> None:
    """Users that were away for a while included: bootstrap hears and says nothing of what they hold."""
    told = set()
    for seed in range(3):
        patience_s = 3.0 if "patience_s = 3.0" in text else 10.0
        world = world_of(text, seed, Crash(1, at_record=8, down_s=1.4 * patience_s))
        world.run_to_end()
        assert world.out == []
        stored = read(bytes(world.processes[BOOTSTRAP].disk.view)).records
        said = [
            (record.kind, other_end(record), public_message(record))
            for record in stored
            if record.kind in (SENT, RECEIVED)
        ]
        users = sorted((kind, peer, message.type, *message.fields) for kind, peer, message in said if is_user(peer))
        assert {kind for _, _, kind, *_ in users} <= {READY, GO, BEGIN, ACTIVATIONS, PROBE, ALIVE}
        told.add(tuple(entry for entry in users if entry[2] != ACTIVATIONS))
    assert len(told) == 1


def test_what_the_curator_gets_of_a_closed_ledger_does_not_tell_how_long_it_is() -> None:
    """Of reports the count would tell how many a user relayed."""
    counts: set[tuple[int, ...]] = set()
    shapes: set[tuple[object, ...]] = set()
    for seed in range(6):
        world = world_of(SHUFFLE, seed)
        world.run_to_end()
        counts.add(tuple(world.processes[user].disk.view_records for user in range(world.run.n)))
        stored = read(bytes(world.processes[CURATOR].disk.view)).records
        heads = [public_message(record) for record in stored if record.kind == RECEIVED and is_user(record.body.sender)]
        found = [(message.type, *map(type, message.fields)) for message in heads if message.type == HEAD]
        shapes.add(tuple(found))
        assert {len(message.fields[-1]) for message in heads if message.type == HEAD} == {32}
    assert len(counts) > 1
    assert shapes == {((HEAD, bytes),) * 4}
