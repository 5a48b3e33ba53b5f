"""Long values in pieces: more is sent of what was lost, and of nothing else, and what arrives is what was sent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.ids import Peer
from p2pdp.core.step import Message
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.ledger.records import SALT_BYTES
from p2pdp.peer import pieces
from p2pdp.peer.effects import Timing
from p2pdp.peer.limits import REPEATS
from p2pdp.peer.payloads import CONTROL, DATA, PIECE, RESEND, Arrival, Payload, Piece
from p2pdp.peer.peers import Peers
from p2pdp.peer.pieces import NO_SHELF, PIECE_BYTES, VALUE_BYTES_MAX, Parts, Shelf
from p2pdp.sim.faults import DiskFault, Harm
from p2pdp.wire.codec import pack_message
from p2pdp.wire.padding import FRAME_BYTES_MAX, FRAME_SIZES, FrameTooLarge
from tests.support.toys import credentials, forged, link_to, opened

PACKED = pack_message(Message("model", (1,)))


class Kept(dict[Peer, bytes]):
    """A shelf whose owner comes back."""

    def read(self, peer: Peer) -> bytes:
        return self.get(peer, b"")

    def write(self, peer: Peer, at: int, head: bytes, data: bytes) -> None:
        self[peer] = self.read(peer)[:at] + head + data

    def drop(self, peer: Peer) -> None:
        self.pop(peer, None)


def peers_of(me: int, shelf: Shelf = NO_SHELF) -> Peers:
    peers = Peers(credentials(me, 2), SeededEntropy(me, "pieces"), Timing())
    peers.shelf = shelf
    return peers


def again(me: int, came: list[bytes], shelf: Shelf) -> Peers:
    """The receiver in its next life: its ledger has what it took, and the shelf what it had of the rest."""
    peers = peers_of(me, shelf)
    for value in came:
        peers.link(1 - me).took(PACKED, value)
    return peers


def frames_of(peers: Peers) -> list[bytes]:
    frames = [frame for _, frame in peers.frames]
    peers.frames.clear()
    return frames


def said(frame: bytes, receiver: int) -> Payload:
    return opened(1 - receiver, receiver, frame)


def take(peers: Peers, frame: bytes, now_s: float = 1.0) -> Arrival | None:
    """Takes a frame as a host does, but records nothing."""
    link = peers.open(frame)
    assert link is not None
    arrival = peers.read(link, now_s)
    if arrival is not None:
        peers.took(arrival, now_s)
    return arrival


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> int:
    """Pieces so short that a small value has some."""
    monkeypatch.setattr(pieces, "PIECE_BYTES", 100)
    return 100


def value_of(size: int, first: int = 0) -> bytes:
    return bytes((first + at * 7) % 251 for at in range(size))


def test_a_piece_fills_a_frame_of_one_of_the_sizes() -> None:
    sender = peers_of(0)
    sender.send(1, PACKED, bytes(2 * PIECE_BYTES + 1), 0.0)
    sizes = [len(frame) for frame in frames_of(sender)]
    assert sizes[:2] == [2**20, 2**20]
    assert sizes[2:] == [FRAME_SIZES[0]] * 2
    assert 2**20 in FRAME_SIZES


def test_what_fits_into_one_piece_comes_in_one_frame(short: int) -> None:
    sender, receiver = peers_of(0), peers_of(1)
    sender.send(1, PACKED, value_of(short), 0.0)
    (frame,) = frames_of(sender)
    arrival = take(receiver, frame)
    assert arrival is not None
    assert arrival.value == value_of(short)


def test_pieces_come_before_their_message_and_say_where_they_belong(short: int) -> None:
    sender = peers_of(0)
    value = value_of(250)
    sender.send(1, PACKED, value, 0.0)
    payloads = [said(frame, 1) for frame in frames_of(sender)]
    assert [payload.flags for payload in payloads] == [CONTROL | PIECE] * 3 + [DATA | PIECE]
    assert [payload.piece for payload in payloads[:3]] == [Piece(1, at, 250) for at in (0, 100, 200)]
    assert b"".join(payload.value for payload in payloads[:3]) == value
    end = Piece(1, 250, 250, sender.link(1).sent_digest)
    assert (payloads[3].message, payloads[3].value, payloads[3].piece) == (PACKED, b"", end)


def test_a_broken_connection_costs_what_was_on_its_way_only(short: int) -> None:
    """What is sent again by itself is the message without its value; the rest is what the receiver lacks."""
    sender, receiver = peers_of(0), peers_of(1)
    value = value_of(10 * short)
    sender.send(1, PACKED, value, 0.0)
    for frame in frames_of(sender)[:7]:
        assert take(receiver, frame) is None
    sender.send_again(sender.link(1), 2.0)
    (head,) = frames_of(sender)
    assert take(receiver, head) is None
    (question,) = frames_of(receiver)
    asked = said(question, 0)
    assert (asked.flags, asked.piece) == (CONTROL | PIECE | RESEND, Piece(1, 700, 0))
    take(sender, question)
    *rest, message = frames_of(sender)
    assert [said(frame, 1).piece for frame in rest] == [Piece(1, at, 1000) for at in (700, 800, 900)]
    assert [take(receiver, frame) for frame in rest] == [None] * 3
    arrival = take(receiver, message)
    assert arrival is not None
    assert arrival.value == value
    assert receiver.link(0).received == 1
    assert receiver.link(0).parts.there(1) == 0


def test_a_sender_that_starts_again_goes_on_where_its_receiver_is(short: int) -> None:
    first, receiver = peers_of(0), peers_of(1)
    value = value_of(5 * short)
    first.send(1, PACKED, value, 0.0)
    for frame in frames_of(first)[:2]:
        take(receiver, frame)
    again = peers_of(0)  # in its next life: the ledger has the message, and nothing of what crossed the wire
    again.link(1).push(PACKED, value)
    again.send_again(again.link(1), 5.0)
    (head,) = frames_of(again)
    take(receiver, head)
    (question,) = frames_of(receiver)
    take(again, question)
    frames = frames_of(again)
    assert len(frames) == 4
    arrivals = [take(receiver, frame) for frame in frames]
    assert arrivals[-1] is not None
    assert arrivals[-1].value == value


@pytest.mark.parametrize("there", range(6))
def test_a_receiver_that_starts_again_goes_on_where_it_was(short: int, there: int) -> None:
    sender, shelf = peers_of(0), Kept()
    value = value_of(5 * short - 20)
    sender.send(1, PACKED, value, 0.0)
    *frames, head = frames_of(sender)
    before = peers_of(1, shelf)
    for frame in frames[:there]:
        take(before, frame)
    receiver = again(1, [], shelf)
    arrival = take(receiver, head)
    if there < 5:
        assert arrival is None
        (question,) = frames_of(receiver)
        assert said(question, 0).piece == (Piece(1, there * short, 0) if there else None)
        take(sender, question)
        *rest, end = frames_of(sender)
        assert len(rest) == 5 - there
        assert [take(receiver, frame) for frame in rest] == [None] * len(rest)
        arrival = take(receiver, end)
    assert arrival is not None
    assert arrival.value == value
    assert shelf == {}


def test_a_receiver_without_a_shelf_gets_all_of_it_again(short: int) -> None:
    sender = peers_of(0)
    value = value_of(5 * short)
    sender.send(1, PACKED, value, 0.0)
    *frames, head = frames_of(sender)
    for receiver in (peers_of(1), again(1, [], NO_SHELF)):
        take(receiver, frames[0])
        take(receiver, head)
    (question,) = frames_of(receiver)
    assert said(question, 0).piece == Piece(1, short, 0)


@given(
    there=st.integers(1, 5),
    harms=st.lists(
        st.builds(DiskFault, st.just(""), st.sampled_from(Harm), st.floats(0.0, 1.0), st.integers(1, 150)), min_size=1
    ),
    cut=st.floats(0.0, 1.0),
)
def test_what_a_disk_does_to_the_shelf_is_sent_again_and_never_taken(
    there: int, harms: list[DiskFault], cut: float
) -> None:
    before, pieces.PIECE_BYTES = pieces.PIECE_BYTES, 100
    try:
        sender, shelf = peers_of(0), Kept()
        value = value_of(500)
        sender.send(1, PACKED, value, 0.0)
        *frames, head = frames_of(sender)
        first = peers_of(1, shelf)
        for frame in frames[:there]:
            take(first, frame)
        kept = bytearray(shelf[0])
        for harm in harms:
            harm.strike(kept)
        same = next((at for at, (one, other) in enumerate(zip(kept, shelf[0], strict=False)) if one != other), None)
        whole = len(shelf[0]) // there
        least = there if same is None else same // whole
        del kept[int(cut * len(kept)) + 1 :]
        shelf[0] = bytes(kept)
        receiver = again(1, [], shelf)
        assert receiver.link(0).parts.there(1) == 100 * min(least, there, len(kept) // whole)
        arrival = take(receiver, head)
        if arrival is None:
            take(sender, frames_of(receiver)[0])
            arrival = [take(receiver, frame) for frame in frames_of(sender)][-1]
        assert arrival is not None
        assert arrival.value == value
    finally:
        pieces.PIECE_BYTES = before


def test_a_shelf_of_another_run_peer_or_message_is_not_looked_at(short: int) -> None:
    shelf, data = Kept(), value_of(short)
    for number in (1, 2):
        assert Parts(number, 0, shelf, b"run").add(Piece(number, 0, 300), data)
        assert Parts(number, 0, shelf, b"run").there(number) == short
        assert Parts(number, 0, shelf, b"another run").there(number) == 0
        assert Parts(number + 1, 0, shelf, b"run").there(number) == 0
        assert Parts(number, 1, shelf, b"run").there(number) == 0
    late = Parts(3, 0, shelf, b"run")
    assert late.add(Piece(3, 0, 300), data)
    assert late.add(Piece(3, 100, 300), data)
    assert Parts(3, 0, shelf, b"run").there(3) == 2 * short
    assert len(shelf[0]) < 3 * short


def test_pieces_of_a_message_that_its_sender_forgot_are_not_mixed_with_those_of_another(short: int) -> None:
    """Its disk was set back to before it; nobody else remembers, and noise is drawn again."""
    shelf, old, new = Kept(), value_of(3 * short, 1), value_of(3 * short, 2)
    first, receiver = peers_of(0), peers_of(1, shelf)
    first.send(1, PACKED, old, 0.0)
    for frame in frames_of(first)[:2]:
        take(receiver, frame)
    sender = peers_of(0)
    sender.send(1, PACKED, new, 5.0)
    arrivals: list[Arrival | None] = []
    for turn in range(1, 4):
        arrivals += [take(receiver, frame, 10.0 * turn) for frame in frames_of(sender)]
        for frame in frames_of(receiver):
            take(sender, frame, 10.0 * turn)
    assert [arrival.value for arrival in arrivals if arrival is not None] == [new]


def test_who_takes_nothing_any_more_keeps_nothing_and_asks_for_nothing(short: int) -> None:
    sender, shelf = peers_of(0), Kept()
    receiver = peers_of(1, shelf)
    receiver.closed = True
    sender.send(1, PACKED, value_of(3 * short), 0.0)
    for frame in frames_of(sender):
        assert take(receiver, frame) is None
    assert shelf == {}
    assert frames_of(receiver) == []


def test_what_came_from_a_peer_that_is_out_is_dropped(short: int) -> None:
    sender, shelf = peers_of(0), Kept()
    receiver = peers_of(1, shelf)
    sender.send(1, PACKED, value_of(3 * short), 0.0)
    take(receiver, frames_of(sender)[0])
    assert list(shelf) == [0]
    receiver.refuse(0)
    assert shelf == {}


@given(
    sizes=st.lists(st.integers(0, 45), min_size=1, max_size=5),
    chances=st.lists(st.sampled_from("keep keep keep lose twice late crash".split()), max_size=60),
)
def test_values_arrive_in_order_once_and_unchanged_whatever_gets_lost_doubled_or_late_and_who_crashes(
    sizes: list[int], chances: list[str]
) -> None:
    before, pieces.PIECE_BYTES = pieces.PIECE_BYTES, SALT_BYTES
    try:
        values = [b"" if size == 0 else value_of(SALT_BYTES + size, number) for number, size in enumerate(sizes)]
        assert delivered(values, iter(chances)) == values
    finally:
        pieces.PIECE_BYTES = before


def delivered(values: list[bytes], chances: Iterator[str]) -> list[bytes]:
    """The values that a receiver takes, over a network that has these chances and is good afterwards."""
    shelf = Kept()
    ends = [peers_of(0), peers_of(1, shelf)]
    for value in values:
        ends[0].send(1, PACKED, value, 0.0)
    came: list[bytes] = []
    late: list[tuple[int, bytes]] = []
    for turn in range(1, 200):
        now_s = 10.0 * turn
        flight = late + [(1 - me, frame) for me, end in enumerate(ends) for frame in frames_of(end)]
        late = []
        for to, frame in flight:
            chance = next(chances, "keep")
            if chance == "late":
                late.append((to, frame))
            if chance == "crash":
                ends[1] = again(1, came, shelf)
            for _ in range({"keep": 1, "twice": 2}.get(chance, 0)):
                arrival = take(ends[to], frame, now_s)
                if arrival is not None:
                    came.append(arrival.value)
        for end in ends:
            end.tick(now_s)
        if not ends[0].link(1).in_flight:
            return came
    raise AssertionError(f"{len(came)} of {len(values)} came")


def test_pieces_of_any_other_message_are_not_kept(short: int) -> None:
    sender, receiver = peers_of(0), peers_of(1)
    for number in (1, 2):
        sender.send(1, PACKED, value_of(3 * short, number), 0.0)
    frames = frames_of(sender)
    first, second = frames[:4], frames[4:]
    for frame in second:
        assert take(receiver, frame) is None
    assert receiver.link(0).parts.there(1) == 0
    assert [take(receiver, frame) is None for frame in first] == [True, True, True, False]


@pytest.mark.parametrize("shelf", [NO_SHELF, Kept()])
def test_what_is_repeated_of_a_message_is_no_news_before_all_of_it_is_there(short: int, shelf: Shelf) -> None:
    """Who repeats the frames of a peer must not pass for it (`fresh`), however often the peer's message was lost."""
    sender = peers_of(0)
    sender.send(1, PACKED, value_of(3 * short), 0.0)
    frames = frames_of(sender)
    for life in range(2):
        receiver = peers_of(1, shelf)  # it starts again
        if life and shelf is not NO_SHELF:
            take(peers_of(1, shelf), frames[0])
            assert receiver.link(0).parts.there(1) == short
        for frame in (*frames[:-2], frames[-1], *frames[:-1], *frames[:-1]):
            assert take(receiver, frame) is None
            assert (receiver.proved, receiver.fresh) == (0, False)
        assert take(receiver, frames[-1]) is not None
        assert receiver.fresh


def test_questions_for_pieces_that_never_come_are_limited(short: int) -> None:
    receiver, link = peers_of(1), link_to(1)
    item = link.push(PACKED, value_of(5 * short))
    *_, (head, length) = link.payloads(item, None)
    frame = forged(0, 1, head + length)
    for _ in range(int(REPEATS.burst) + 100):
        take(receiver, frame)
    assert len(frames_of(receiver)) <= REPEATS.burst + 1
    assert receiver.link(0).received == 0


def test_nobody_keeps_more_of_a_value_than_a_frame_could_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE_BYTES", 2)
    shelf = Kept()
    parts = Parts(1, 0, shelf, b"run")
    for of in (0, VALUE_BYTES_MAX + 1, 2**63):
        assert not parts.add(Piece(1, 0, of), b"xx")
    assert parts.add(Piece(1, 0, 3), b"ab")
    assert not parts.add(Piece(1, 2, 3), b"cd")  # longer than the rest
    assert not parts.add(Piece(1, 1, 3), b"c")  # in another place
    assert not parts.add(Piece(1, 2, 3), b"")
    assert parts.whole(Piece(1, 3, 3)) == b""
    assert parts.add(Piece(1, 2, 3), b"c")
    assert parts.whole(Piece(1, 3, 3)) == parts.whole(Piece(1, 3, 3)) == b"abc"
    assert parts.whole(Piece(2, 3, 3)) == parts.whole(Piece(1, 4, 4)) == b""
    assert not parts.add(Piece(2, 0, 3), b"z")  # shorter than pieces are, which would take more memory than its bytes
    assert parts.add(Piece(2, 0, 1), b"z")  # the next message takes its place
    assert (parts.there(1), parts.there(2)) == (0, 1)
    assert Parts(2, 0, shelf, b"run").whole(Piece(2, 1, 1)) == b"z"


def test_a_value_that_is_too_long_is_refused_where_it_is_sent() -> None:
    sender = peers_of(0)
    with pytest.raises(FrameTooLarge):
        sender.send(1, PACKED, bytes(FRAME_BYTES_MAX + 1), 0.0)
