from __future__ import annotations

import pytest

from p2pdp.core.ids import CURATOR
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.crypto.identity import verify_labelled
from p2pdp.ledger import records
from p2pdp.ledger.heads import HEAD_LABEL, head_parts
from p2pdp.ledger.journal import PRIVATE, VIEW, Journal
from p2pdp.ledger.records import CLOSED, NOTE, STARTED
from p2pdp.peer.closing import SKELETON_PIECE_BYTES, close, hand_in
from p2pdp.peer.effects import Timing
from p2pdp.peer.peers import Peers
from p2pdp.wire.codec import unpack_message
from tests.support.toys import RUN_ID, credentials, identity

SEAT = credentials(0)


def closed_files(*, stop_between: bool = False) -> dict[str, bytes]:
    journal = Journal()
    journal.append(STARTED, (1.0,))
    journal.append_private(NOTE, (0,), b"x", bytes(16))
    close(journal, SEAT)
    files = {VIEW: b"", PRIVATE: b""}
    for name, data in journal.take_writes():
        if not (stop_between and name == VIEW and records.read(files[PRIVATE] or records.LEDGER_MAGIC).records[1:]):
            files[name] += data
    return files


@pytest.mark.parametrize("role", [VIEW, PRIVATE])
def test_each_ledger_ends_with_a_signature_over_its_role_run_peer_and_head(role: str) -> None:
    *before, last = records.read(closed_files()[role]).records
    assert last.kind == CLOSED
    (signature,) = last.body
    parts = head_parts(role, RUN_ID, 0, last.index, before[-1].hash)
    assert verify_labelled(identity(0).public, signature, HEAD_LABEL, *parts)
    other = head_parts(PRIVATE if role == VIEW else VIEW, RUN_ID, 0, last.index, before[-1].hash)
    assert not verify_labelled(identity(0).public, signature, HEAD_LABEL, *other)


def test_a_stop_between_the_two_ends_closes_the_view_only() -> None:
    files = closed_files(stop_between=True)
    journal = Journal(files[VIEW], files[PRIVATE])
    assert journal.private_closed
    assert not journal.closed
    while journal.replaying:
        journal.take_stored()
    close(journal, SEAT)
    assert [name for name, _ in journal.take_writes()] == [VIEW]
    assert journal.closed


@pytest.mark.parametrize("size", [1, SKELETON_PIECE_BYTES, SKELETON_PIECE_BYTES + 1, 3 * SKELETON_PIECE_BYTES - 1])
def test_a_skeleton_goes_before_the_head_in_pieces_that_fit_together(size: int) -> None:
    peers = Peers(SEAT, SeededEntropy(1, "a"), Timing())
    content = bytes(number % 251 for number in range(size))
    hand_in(b"h" * 32, peers, lambda: content, 5.0)
    *pieces, head = [unpack_message(item.message, item.value[16:]) for item in peers.link(CURATOR).in_flight]
    assert (head.type, head.fields, head.value) == ("head", (b"h" * 32,), None)
    assert {piece.type for piece in pieces} == {"skeleton"}
    assert [piece.fields for piece in pieces] == [(at, size) for at in range(0, size, SKELETON_PIECE_BYTES)]
    assert b"".join(piece.value for piece in pieces) == content


def test_without_the_owners_consent_only_the_head_goes_out() -> None:
    peers = Peers(SEAT, SeededEntropy(1, "a"), Timing())
    hand_in(b"h" * 32, peers, None, 5.0)
    assert len(peers.link(CURATOR).in_flight) == len(peers.frames) == 1


def test_what_is_handed_in_is_the_same_each_time() -> None:
    digests = set()
    for seed in range(2):
        peers = Peers(SEAT, SeededEntropy(seed, "a"), Timing())
        hand_in(b"h" * 32, peers, lambda: b"skeleton" * 9000, float(seed))
        digests.add(peers.link(CURATOR).sent_digest)
    assert len(digests) == 1
