from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.core.step import Fault, Message, Send, Step
from p2pdp.crypto.entropy import SeededEntropy
from p2pdp.crypto.roster import sign_entry
from p2pdp.crypto.vouchers import NUMBER_BYTES, TAG_BYTES, pack_numbers
from p2pdp.peer import payloads
from p2pdp.peer.credentials import Credentials
from p2pdp.peer.effects import Timing
from p2pdp.peer.limits import QUESTIONS, REPEATS, RESENDS, TOO_MANY, WRONG, Rate
from p2pdp.peer.link import Hello
from p2pdp.peer.outbox import LOGGED_MAX
from p2pdp.peer.payloads import Payload, parse_payload
from p2pdp.peer.peers import BURST_MAX, Arrival, Peers
from p2pdp.wire.codec import pack, pack_message
from p2pdp.wire.frames import Kind, decode_frame, encode_frame
from p2pdp.wire.padding import FRAME_BYTES_MAX
from tests.support.known import cuts, flips
from tests.support.toys import (
    RUN_ID,
    PingPong,
    Quiet,
    Toys,
    consistent,
    credentials,
    forged,
    identity,
    is_data,
    link_to,
    opened,
    roster,
    run_key,
)

HELLO = pack_message(Message("hello there", (1,)))


def peers_of(me: int, n: int = 2, timing: Timing | None = None, its_seat: Credentials | None = None) -> Peers:
    entropy = SeededEntropy(me + 7, "peers")
    return Peers(its_seat or credentials(me, n), entropy, timing or Timing())


def arrive(peers: Peers, frame: bytes, now_s: float) -> Arrival | None:
    """Opens a frame and reads it, as a host does."""
    link = peers.open(frame)
    return None if link is None else peers.read(link, now_s)


def out(peers: Peers) -> list[bytes]:
    frames = [frame for _, frame in peers.frames]
    peers.frames.clear()
    return frames


def kinds(peers: Peers) -> list[str]:
    found = [fault.kind for fault in peers.faults]
    peers.faults.clear()
    return found


def give(peers: Peers, frame: bytes, now_s: float = 1.0) -> Arrival | None:
    """Delivers a frame and takes its message, as a host does once it is recorded."""
    arrival = arrive(peers, frame, now_s)
    if arrival is not None:
        peers.took(arrival, now_s)
    return arrival


def exchange(count: int) -> tuple[Peers, Peers, list[bytes]]:
    """User 0 has sent so many messages to user 1; none has arrived."""
    mine, theirs = peers_of(0), peers_of(1)
    for number in range(count):
        mine.send(1, pack_message(Message("m", (number,))), b"", 0.0)
    return mine, theirs, out(mine)


# In order, once


def test_messages_are_taken_in_order_and_once() -> None:
    _, theirs, frames = exchange(3)
    taken = [give(theirs, frame) for frame in (frames[0], frames[0], frames[1], frames[0], frames[1], frames[2])]
    assert [arrival is not None for arrival in taken] == [True, False, True, False, False, True]
    assert theirs.link(0).received == 3
    assert kinds(theirs) == []  # a repetition is the network's, and no fault


def test_a_repeated_frame_is_answered_by_the_acknowledgement_it_lacks() -> None:
    mine, theirs, frames = exchange(1)
    give(theirs, frames[0])
    assert out(theirs) == []
    give(theirs, frames[0])
    (answer,) = out(theirs)
    assert arrive(mine, answer, 2.0) is None
    assert not mine.link(1).in_flight


def test_a_gap_asks_once_for_a_resend_and_takes_nothing() -> None:
    mine, theirs, frames = exchange(50)
    assert all(give(theirs, frame) is None for frame in frames[1:])
    assert kinds(theirs) == ["gap"]
    (request,) = out(theirs)
    assert opened(1, 0, request).flags == payloads.CONTROL | payloads.RESEND
    arrive(mine, request, 1.0)
    again = out(mine)
    assert [give(theirs, frame) is not None for frame in again] == [True] * 50
    assert theirs.link(0).received == 50


def test_a_gap_is_asked_for_again_after_a_wait_since_questions_get_lost() -> None:
    _, theirs, frames = exchange(2)
    wait_s = theirs.acknowledgements.resend_s
    asked_at = [at_s for at_s in (1.0, 1.0 + 0.9 * wait_s, 1.0 + 1.1 * wait_s, 1.0 + 1.9 * wait_s, 1.0 + 2.2 * wait_s)
                if give(theirs, frames[1], at_s) is None and out(theirs)]  # fmt: skip
    assert asked_at == [1.0, 1.0 + 1.1 * wait_s, 1.0 + 2.2 * wait_s]
    assert kinds(theirs) == ["gap"] * 3


def test_a_question_that_large_values_answer_counts_for_more() -> None:
    mine, theirs = peers_of(0), peers_of(1)
    mine.send(1, pack_message(Message("m", ())), bytes(4 * 2**20), 0.0)
    out(mine)
    asked, answered = theirs.link(0).control(payloads.RESEND), 0
    for _ in range(100):
        arrive(mine, forged(1, 0, asked), 1.0)
        answered += bool(out(mine))
    assert answered == math.ceil(RESENDS.burst / 5.0)


def test_a_later_gap_is_asked_for_anew() -> None:
    _, theirs, frames = exchange(4)
    give(theirs, frames[1])
    give(theirs, frames[0])
    give(theirs, frames[2])
    assert kinds(theirs) == ["gap", "gap"]


def test_a_resend_has_an_upper_limit() -> None:
    mine, _, _ = exchange(BURST_MAX + 20)
    mine.send_again(mine.link(1), 1.0)
    assert len(out(mine)) == BURST_MAX


def test_the_same_number_with_another_digest_is_a_conflict() -> None:
    _, theirs, frames = exchange(2)
    for frame in frames:
        give(theirs, frame)
    other = link_to(1)
    forged_first = other.data(other.push(pack_message(Message("m", (9,))), b""))
    assert give(theirs, forged(0, 1, forged_first)) is None
    assert kinds(theirs) == ["conflict"]
    (hello,) = out(theirs)  # which proves to the sender what it sent before
    assert Hello.unpacked(opened(1, 0, hello).hello).received == 2
    assert theirs.link(0).received == 2


def test_numbers_far_ahead_and_far_behind_change_nothing() -> None:
    _, theirs, frames = exchange(1)
    give(theirs, frames[0])
    for number in (3, 1 << 24, (1 << 32) - 1):
        payload = payloads.DATA_HEAD.pack(payloads.DATA, number, 0, bytes(16), len(HELLO)) + HELLO
        assert give(theirs, forged(0, 1, payload)) is None
    assert theirs.link(0).received == 1
    assert kinds(theirs) == ["gap"]


# Acknowledgement


def test_an_acknowledgement_waits_for_the_tick() -> None:
    mine, theirs, frames = exchange(2)
    for frame in frames:
        give(theirs, frame, 1.0)
    assert (out(theirs), theirs.acknowledgements.ack_at_s) == ([], 2.0)
    theirs.tick(1.9)
    assert out(theirs) == []
    theirs.tick(2.0)
    (frame,) = out(theirs)  # one, cumulative
    assert (opened(1, 0, frame).flags, opened(1, 0, frame).acknowledged) == (payloads.CONTROL, 2)
    arrive(mine, frame, 2.1)
    assert not mine.link(1).in_flight
    theirs.tick(9.0)
    assert (out(theirs), theirs.acknowledgements.ack_at_s) == ([], None)


def test_an_acknowledgement_goes_along_with_a_message() -> None:
    mine, theirs, frames = exchange(2)
    for frame in frames:
        give(theirs, frame, 1.0)
    theirs.send(0, HELLO, b"", 1.1)
    (frame,) = out(theirs)
    assert opened(1, 0, frame).acknowledged == 2
    give(mine, frame)
    assert not mine.link(1).in_flight
    theirs.tick(2.0)
    assert out(theirs) == []


def test_frames_are_sent_again_with_growing_waits_until_acknowledged() -> None:
    timing = Timing(resend_s=2.0, resend_max_s=10.0)
    mine = peers_of(0, timing=timing)
    mine.send(1, HELLO, bytes(20), 0.0)
    first = opened(0, 1, out(mine)[0])
    sent_s = []
    for tenth in range(1, 601):
        mine.tick(tenth / 10)
        for frame in out(mine):
            again = opened(0, 1, frame)
            assert (again.number, again.message, again.value) == (first.number, first.message, first.value)
            sent_s.append(tenth / 10)
    assert sent_s == [2.0, 4.0, 8.0, 16.0, 26.0, 36.0, 46.0, 56.0]
    theirs = peers_of(1)
    give(theirs, forged(0, 1, mine.link(1).data(mine.link(1).in_flight[0])))
    theirs.flush()
    arrive(mine, out(theirs)[0], 60.0)
    for second in range(60, 200):
        mine.tick(float(second))
    assert out(mine) == []


# What strangers and broken networks can do


def refused(toys: Toys, frame: bytes) -> str:
    """Delivers a frame to user 1: nothing must come of it but one recorded fault, whose kind is given back."""
    before, told = toys.notes(1), list(toys.machines[1].told)
    view = bytes(toys.disks[1]["view"])
    effects = toys.give(1, frame)
    assert effects is not None
    assert len(effects.faults) == 1
    assert toys.machines[1].told == told
    assert bytes(toys.disks[1]["view"]) == view
    (kind,) = toys.notes(1)[len(before) :]
    assert [fault.kind for fault in effects.faults] == [kind]
    return kind


def quiet(n: int = 2, **options: Any) -> Toys:
    toys = Toys(dict.fromkeys(range(n), Quiet), n, **options)
    toys.boot_all()
    return toys


def honest_frame(**signed: Any) -> bytes:
    link = link_to(1)
    return forged(0, 1, link.data(link.push(HELLO, bytes(20))), **signed)


def test_every_flipped_bit_of_a_frame_is_one_fault() -> None:
    toys = quiet()
    kinds_seen: set[str] = set()
    flipped = list(flips(honest_frame()))
    for at in range(0, len(flipped), 150):  # a fresh host each time: notes are capped
        toys = quiet()
        kinds_seen |= {refused(toys, frame) for frame in flipped[at : at + 150]}
    assert kinds_seen == {"malformed", "unknown_peer", "not_authentic"}


def test_every_cut_of_a_frame_is_one_fault() -> None:
    frames = list(cuts(honest_frame()))
    kinds_seen: set[str] = set()
    for at in range(0, len(frames), 150):
        toys = quiet()
        kinds_seen |= {refused(toys, frame) for frame in frames[at : at + 150]}
    assert kinds_seen == {"malformed", "truncated"}


@pytest.mark.parametrize(
    ("signed", "kind"),
    [
        ({"run_id": bytes(16)}, "foreign_run"),
        ({"protocol": "other"}, "foreign_roster"),
        ({"spec_digest": bytes(32)}, "foreign_roster"),
        ({"n": 3}, "foreign_roster"),
    ],
)
def test_a_frame_of_another_run_roster_or_spec_is_refused(signed: dict[str, Any], kind: str) -> None:
    assert refused(quiet(), honest_frame(**signed)) == kind


def test_a_frame_sent_back_to_its_sender_is_refused() -> None:
    toys = quiet()
    link = link_to(0)
    mine = forged(1, 0, link.data(link.push(HELLO, b"")))
    assert refused(toys, mine) == "unknown_peer"  # it names the receiver itself as its sender
    body = decode_frame(mine).body
    assert refused(toys, encode_frame(Kind.BOXED, 0, body)) == "foreign_sender"


def test_a_frame_for_somebody_else_is_refused() -> None:
    link = link_to(2)
    frame = forged(0, 2, link.data(link.push(HELLO, b"")), 3)
    assert refused(quiet(3), frame) == "not_authentic"


def test_oversized_and_foreign_kinds_are_refused() -> None:
    toys = quiet()
    assert refused(toys, bytes(FRAME_BYTES_MAX + 1)) == "malformed"
    assert refused(toys, b"") == "malformed"
    for kind in (Kind.HELLO, Kind.OFFER, Kind.ENROL, Kind.ROSTER):
        assert refused(toys, encode_frame(kind, 0, decode_frame(honest_frame()).body)) == "malformed"


@pytest.mark.parametrize("sender", [2, 7, 1 << 20, (1 << 31) - 1])
def test_strangers_are_refused_and_cost_no_memory(sender: int) -> None:
    toys = quiet()
    frame = encode_frame(Kind.BOXED, sender, decode_frame(honest_frame()).body)
    assert refused(toys, frame) == "unknown_peer"
    peers = toys.hosts[1]._peers
    assert sender not in peers.links
    assert sender not in peers.channels


def test_who_is_no_neighbour_is_a_stranger() -> None:
    peers = peers_of(1, 3, its_seat=credentials(1, 3, (0,)))
    link = link_to(1)
    assert arrive(peers, forged(2, 1, link.data(link.push(HELLO, b"")), 3), 1.0) is None
    assert kinds(peers) == ["unknown_peer"]


def test_an_excluded_peer_is_refused_and_gets_no_answer() -> None:
    toys = quiet()
    link = link_to(1)
    order = link.data(link.push(pack_message(Message("out", (0, bytes(64)))), b""))
    toys.give(1, forged(BOOTSTRAP, 1, order))
    toys.flight.clear()
    assert refused(toys, honest_frame()) == "excluded_peer"
    assert refused(toys, forged(0, 1, link_to(1).control(payloads.POKE | payloads.RESEND))) == "excluded_peer"
    toys.carry(1, toys.hosts[1].connected(0, 5.0))
    toys.run(100.0)
    assert [frame for receiver, frame in toys.flight if receiver == 0] == []


def test_recorded_faults_are_capped_and_counted_on() -> None:
    toys = quiet()
    for number in range(LOGGED_MAX + 300):
        toys.give(1, bytes([2 + number % 254]) * 10)
    assert toys.notes(1) == ["malformed"] * LOGGED_MAX
    assert toys.hosts[1].fault_counts == {"malformed": LOGGED_MAX + 300}
    assert len(toys.hosts[1]._peers.faults) == len(toys.hosts[1]._fault_log.new) == 0


def test_an_entry_of_the_roster_that_is_not_valid_is_a_fault_in_both_directions() -> None:
    good = sign_entry(identity(2), RUN_ID, run_key(2).public)
    bad = roster(3, spoilt={2: replace(good, signature=good.signature[::-1])})
    peers = peers_of(0, its_seat=Credentials(0, bad, identity(0), run_key(0), None))
    peers.send(2, HELLO, b"", 0.0)
    assert (kinds(peers), out(peers)) == (["bad_roster_entry"], [])
    assert arrive(peers, encode_frame(Kind.BOXED, 2, bytes(250)), 1.0) is None
    assert kinds(peers) == ["bad_roster_entry"]


def test_a_signed_key_that_gives_no_secret_is_a_fault_in_both_directions() -> None:
    bad = roster(3, spoilt={2: sign_entry(identity(2), RUN_ID, bytes(32))})
    peers = peers_of(0, its_seat=Credentials(0, bad, identity(0), run_key(0), None))
    for _ in range(2):
        peers.send(2, HELLO, b"", 0.0)
        assert (kinds(peers), out(peers)) == (["weak_key"], [])
        assert arrive(peers, encode_frame(Kind.BOXED, 2, bytes(250)), 1.0) is None
        assert kinds(peers) == ["weak_key"]
    assert 2 not in peers.channels


@pytest.mark.parametrize(
    "control",
    [
        [[[1]], []],
        [[[1, 2, 3]], []],
        [[["a", 2]], []],
        [[5], []],
        [[], [1]],
        [[], 7],
        [[], [1, b"", 1, b"", "x", True]],
        [[[True, 1]], []],
    ],
)
def test_malformed_control_of_a_true_peer_is_one_fault_that_names_it(control: object) -> None:
    toys = quiet()
    frame = forged(0, 1, payloads.HEAD.pack(payloads.CONTROL, 0, 0, bytes(16)) + pack(control))
    assert refused(toys, frame) == "malformed"
    assert toys.faults(1) == [Fault("malformed", 0)]


@given(st.binary(max_size=80))
def test_whatever_a_true_peer_boxes_is_answered_without_an_exception(payload: bytes) -> None:
    peers = peers_of(1)
    arrive(peers, forged(0, 1, payload), 1.0)
    assert len(peers.faults) <= 1
    assert len(peers.frames) <= 1


# Comparing numbers


def test_both_ends_compare_on_a_new_connection_and_send_what_is_missing() -> None:
    mine, theirs, frames = exchange(3)
    give(theirs, frames[0])
    out(theirs)
    theirs.ask(0)
    (hello,) = out(theirs)
    arrive(mine, hello, 1.0)
    (answer,) = out(mine)  # which asks in turn
    assert Hello.unpacked(opened(0, 1, answer).hello).received == 0
    arrive(theirs, answer, 1.0)
    (fresh,) = out(theirs)
    arrive(mine, fresh, 1.0)
    assert [opened(0, 1, frame).number for frame in out(mine)] == [2, 3]
    assert kinds(mine) + kinds(theirs) == []


def test_a_hello_that_was_overtaken_accuses_nobody() -> None:
    mine, theirs, frames = exchange(2)
    give(theirs, frames[0])
    theirs.hello(0, ask=False)
    (old,) = out(theirs)
    give(theirs, frames[1])
    theirs.flush()
    for frame in out(theirs):
        arrive(mine, frame, 1.0)
    arrive(mine, old, 1.0)
    (question,) = out(mine)
    arrive(theirs, question, 1.0)
    (fresh,) = out(theirs)
    arrive(mine, fresh, 1.0)
    (answer,) = out(mine)  # for the other end does not know either whether the question was old
    arrive(theirs, answer, 1.0)
    assert kinds(mine) + kinds(theirs) == []
    assert out(mine) + out(theirs) == []


def test_who_forgot_stops_and_the_other_end_records_what_it_saw() -> None:
    mine, theirs, frames = exchange(2)
    for frame in frames:
        give(theirs, frame)
    forgetful = peers_of(0)
    forgetful.ask(1)
    arrive(theirs, out(forgetful)[0], 1.0)
    (proof,) = out(theirs)
    arrive(forgetful, proof, 1.0)
    assert forgetful.rolled_back
    assert kinds(forgetful) == ["rolled_back"]
    (confession,) = out(forgetful)
    arrive(theirs, confession, 1.0)
    assert kinds(theirs) == ["peer_rolled_back"]
    assert out(theirs) == []
    assert not theirs.rolled_back
    assert not mine.rolled_back


def test_an_acknowledgement_of_what_was_never_sent_is_asked_about_and_stops_us_once_it_is_proved() -> None:
    _, theirs, frames = exchange(1)
    give(theirs, frames[0])
    forgetful = peers_of(0)
    theirs.send(0, HELLO, b"", 1.0)
    assert arrive(forgetful, out(theirs)[0], 1.0) is None
    assert not forgetful.rolled_back
    assert kinds(forgetful) == ["unproven_rollback"]
    (question,) = out(forgetful)
    arrive(theirs, question, 1.0)
    arrive(forgetful, out(theirs)[0], 1.0)
    assert forgetful.rolled_back
    assert arrive(forgetful, honest_frame(), 2.0) is None
    assert kinds(forgetful) == ["rolled_back"]


def test_while_silent_nothing_is_taken_or_sent() -> None:
    mine, theirs, frames = exchange(1)
    theirs.silent = True
    theirs.send(0, HELLO, b"", 1.0)
    assert give(theirs, frames[0]) is None
    assert out(theirs) == []
    mine.ask(1)
    arrive(theirs, out(mine)[0], 1.0)
    (answer,) = out(theirs)
    assert not is_data(opened(1, 0, answer))
    theirs.resume(2.0)
    data, control = out(theirs)
    assert is_data(opened(1, 0, data))
    assert opened(1, 0, control).flags == payloads.CONTROL | payloads.RESEND
    out(mine)
    arrive(mine, control, 2.0)
    (again,) = out(mine)
    assert give(theirs, again) is not None


def test_what_a_hello_tells_of_while_silent_is_asked_for_afterwards() -> None:
    mine, theirs, _lost = exchange(1)
    theirs.silent = True
    mine.hello(1, ask=False)
    arrive(theirs, out(mine)[0], 1.0)
    theirs.resume(2.0)
    (control,) = out(theirs)
    arrive(mine, control, 2.0)
    assert give(theirs, out(mine)[0]) is not None
    theirs.link(0).refused = True
    theirs.resume(3.0)
    assert out(theirs) == []


def test_a_burst_of_senders_is_acknowledged_in_one_tick() -> None:
    hub = peers_of(CURATOR, 5)
    for user in range(5):
        link = link_to(CURATOR)
        give(hub, forged(user, CURATOR, link.data(link.push(HELLO, b"")), 5), 1.0)
    hub.tick(2.0)
    assert sorted(receiver for receiver, _ in hub.frames) == list(range(5))


def test_a_machine_hears_nothing_of_a_host_with_another_seat() -> None:
    toys = quiet()
    toys.machines[0].answer = lambda *_: Step(sends=(Send(1, Message("never")),))
    assert parse_payload(link_to(0).control(0)).hello == []
    toys.settle()
    assert toys.machines[1].told == ["start"]


def peers_of_control(me: int) -> Peers:
    return Peers(credentials(me, 3), SeededEntropy(me, "control"), Timing())


def said(peers: Peers) -> list[Payload]:
    """What was sent to user 1."""
    frames = [frame for _, frame in peers.frames]
    peers.frames.clear()
    return [opened(0, 1, frame, 3) for frame in frames]


def control(flags: int, hello: Hello | None = None) -> Payload:
    return Payload(payloads.CONTROL | flags, 0, 0, bytes(16), b"", b"", hello.packed() if hello else [])


def test_what_is_not_acknowledged_is_sent_again_on_request() -> None:
    peers = peers_of_control(0)
    for number in range(3):
        peers.send(1, b"message", bytes([number]), 1.0)
    first = said(peers)
    peers._out_of_order(peers.link(1), control(payloads.RESEND), 2.0)
    assert said(peers) == first


def test_a_poke_is_answered_with_what_came_of_the_peer_and_nothing_else() -> None:
    peers = peers_of_control(0)
    peers.link(1).received = 4
    peers.link(2).received = 9
    peers.send(2, b"message", b"", 1.0)
    peers.frames.clear()
    peers._out_of_order(peers.link(1), control(payloads.POKE), 2.0)
    voucher = peers.link(1).control(0)[payloads.VOUCHER_AT : payloads.VOUCHER_END]
    assert said(peers) == [Payload(payloads.CONTROL, 0, 4, voucher, b"", b"", [])]


def test_a_hello_that_is_none_is_a_fault_and_changes_nothing() -> None:
    peers = peers_of_control(0)
    peers._out_of_order(peers.link(1), Payload(payloads.CONTROL, 0, 0, bytes(16), b"", b"", ["received"]), 2.0)
    assert (peers.faults, peers.frames) == ([Fault("malformed", 1)], [])


def test_who_seems_to_have_forgotten_is_asked_and_only_its_answer_is_believed() -> None:
    peers, theirs = peers_of_control(0), peers_of_control(1)
    peers.send(1, b"message", b"", 1.0)
    peers.link(1).acknowledge_up_to(1)
    said(peers)
    empty = theirs.link(0).hello()
    peers._out_of_order(peers.link(1), control(0, empty), 2.0)
    (question,) = said(peers)
    asked = Hello.unpacked(question.hello).question
    assert asked
    for _ in range(3):  # however often it comes, and whatever it answers
        peers._out_of_order(peers.link(1), control(0, empty), 3.0)
        peers._out_of_order(peers.link(1), control(0, theirs.link(0).hello(answer=b"another")), 3.0)
    assert (peers.faults, said(peers)) == ([], [])
    peers._out_of_order(peers.link(1), control(0, theirs.link(0).hello(answer=asked)), 4.0)
    assert peers.faults == [Fault("peer_rolled_back", 1)]
    assert said(peers) == []
    assert not peers.rolled_back
    peers._out_of_order(peers.link(1), control(0, theirs.link(0).hello(answer=asked)), 5.0)
    assert peers.faults == [Fault("peer_rolled_back", 1)], "an answer counts once"


@given(st.lists(st.integers(0, 10**4), max_size=80))
def test_old_frames_that_come_again_or_late_accuse_nobody(chances: list[int]) -> None:
    """Whatever the network repeats, loses, keeps back and cuts, while hosts that lose nothing stop and come back."""
    toys = Toys({peer: lambda peer=peer: PingPong(peer, 3, 5) for peer in range(3)}, 3)  # type: ignore[misc]
    toys.boot_all()
    for chance in chances:
        what, which = chance % 8, chance // 8
        sent = [frame for _, effects in toys.log for frame in effects.frames]
        if what < 2 and toys.flight:
            toys.deliver(0 if what else which % len(toys.flight))
        elif what == 2 and toys.flight:
            toys.flight.pop(which % len(toys.flight))
        elif what in (3, 4) and sent:
            toys.give(*sent[which % len(sent)])
        elif what == 5:
            toys.carry(which % 3, toys.hosts[which % 3].connected((which % 3 + 1 + which // 3 % 2) % 3, toys.now_s))
        elif what == 6 and any(at_s is not None for at_s in toys.wake_at_s.values()):
            toys.next_wake()
        elif what == 7 and which % 3 == 0:
            toys.kill(which // 3 % 3)
            toys.boot(which // 3 % 3)
    sent = [frame for _, effects in toys.log for frame in effects.frames]
    for receiver, frame in sent:  # and in the end everything once more
        toys.give(receiver, frame)
    toys.run(toys.now_s + 90.0)
    for peer in range(3):
        assert not {"rolled_back", "peer_rolled_back", "conflict"} & {fault.kind for fault in toys.faults(peer)}
        assert len(toys.machines[peer].took) == 10
    consistent(toys)


def test_a_restart_waits_for_answers_and_not_for_old_words() -> None:
    peers = peers_of_control(0)
    peers.silent, peers.expected_hellos = True, {1}
    peers.ask(1)
    asked = Hello.unpacked(said(peers)[0].hello).question
    theirs = peers_of_control(1).link(0)
    for old in (theirs.hello(), theirs.hello(b"question"), theirs.hello(b"question", b"another")):
        peers._out_of_order(peers.link(1), control(0, old), 2.0)
        assert (peers.expected_hellos, peers.fresh) == ({1}, False)
    assert {Hello.unpacked(payload.hello).question for payload in said(peers)} == {asked}, "it is asked once"
    peers._out_of_order(peers.link(1), control(0, theirs.hello(answer=asked)), 2.0)
    assert (peers.expected_hellos, peers.fresh) == (set(), True)


@pytest.mark.parametrize("both_ask", [False, True])
@pytest.mark.parametrize("copies", [1, 2, 5])
def test_copies_of_hellos_come_to_an_end(copies: int, *, both_ask: bool) -> None:
    """Each frame arrives several times at once, as from a network that repeats it; both are sure in the end."""
    ends = peers_of_control(0), peers_of_control(1)
    for me in (0, 1) if both_ask else (0,):
        ends[me].ask(1 - me)
    frames = 0
    for _ in range(12):
        for me in (0, 1):
            told = [frame for _, frame in ends[me].frames]
            ends[me].frames.clear()
            frames += len(told)
            for frame in told:
                for _ in range(copies):
                    ends[1 - me]._out_of_order(ends[1 - me].link(me), opened(me, 1 - me, frame, 3), 2.0)
    assert [end.frames for end in ends] == [[], []], "they are quiet"
    assert frames <= 2 + 2 * copies + 2 * copies**2
    assert [end.link(1 - me).asked for me, end in enumerate(ends)] == [None, None]


def test_who_is_shown_to_have_forgotten_says_so_and_stops() -> None:
    peers = peers_of_control(0)
    ahead = Hello(5, bytes(16), 0, bytes(16), 0)
    peers._out_of_order(peers.link(1), control(0, ahead), 2.0)
    assert (peers.rolled_back, said(peers)) == (False, [])
    numbers = pack_numbers(5, 0)
    proved = replace(ahead, voucher=numbers[NUMBER_BYTES:] + peers.link(1).stamp.tag(numbers, bytes(16)))
    peers._out_of_order(peers.link(1), control(0, proved), 2.0)
    assert peers.rolled_back
    assert [bool(payload.hello) for payload in said(peers)] == [True]


# What links learn


def user(me: int = 0, n: int = 4) -> Peers:
    return Peers(credentials(me, n, (1, 2)), SeededEntropy(1, "a"), Timing())


def hear(peers: Peers, sender: int, kind: str, *fields: Any) -> None:
    peers.apply(sender, Message(kind, fields), 0.0)


def refused_forms(peers: Peers) -> list[int]:
    return sorted(peer for peer, link in peers.links.items() if link.refused)


def test_only_bootstrap_can_put_somebody_out() -> None:
    peers = user()
    for sender in (1, CURATOR, 0):
        hear(peers, sender, "out", 2, b"")
    assert refused_forms(peers) == []
    hear(peers, BOOTSTRAP, "out", 2, b"")
    assert refused_forms(peers) == [2]


@pytest.mark.parametrize("peer", [3, 99, BOOTSTRAP, CURATOR, -7, 1 << 40])
def test_nobody_but_a_neighbour_can_be_refused(peer: int) -> None:
    peers = user()
    hear(peers, BOOTSTRAP, "out", peer, b"")
    assert refused_forms(peers) == []
    assert peer not in peers.links


def test_who_is_out_itself_hears_bootstrap_only() -> None:
    peers = user()
    hear(peers, BOOTSTRAP, "out", 0, b"")
    assert refused_forms(peers) == [CURATOR, 1, 2]


def test_after_the_end_only_bootstrap_is_heard_and_the_head_goes_out_again() -> None:
    peers = user()
    peers.send(CURATOR, b"head", b"", 0.0)
    peers.frames.clear()
    peers.apply_after_close(1, Message("probe"), 50.0)
    peers.apply_after_close(1, Message("out", (0, b"")), 50.0)
    peers.apply_after_close(BOOTSTRAP, Message("lost", (4, 7)), 50.0)
    assert (peers.frames, refused_forms(peers)) == ([], [])
    peers.apply_after_close(BOOTSTRAP, Message("probe"), 50.0)
    assert [receiver for receiver, _ in peers.frames] == [CURATOR]
    peers.apply_after_close(BOOTSTRAP, Message("out", (0, b"")), 50.0)
    assert refused_forms(peers) == [CURATOR, 1, 2]
    assert not peers.link(CURATOR).in_flight


# Limits


def floods() -> list[tuple[str, bytes, Rate, int]]:
    """What user 1 may send again and again: its name, the frame, the limit that it meets, how many frames answer it."""
    said = Hello(0, link_to(0).received_digest, 0, link_to(0).sent_digest, 0, b"question")
    ahead = payloads.HEAD.pack(payloads.CONTROL, 0, 1 << 20, bytes(TAG_BYTES)) + pack(said.packed())
    return [
        ("hello", forged(1, 0, link_to(0).control(0, said), 3), QUESTIONS, 1),
        ("hello that claims more", forged(1, 0, ahead, 3), QUESTIONS, 1),
        ("poke", forged(1, 0, link_to(0).control(payloads.POKE), 3), QUESTIONS, 1),
        ("resend", forged(1, 0, link_to(0).control(payloads.RESEND), 3), RESENDS, BURST_MAX),
    ]


@pytest.mark.parametrize("flood", floods(), ids=lambda flood: flood[0])
def test_who_asks_without_end_is_answered_at_a_rate_and_others_as_ever(flood: tuple[str, bytes, Rate, int]) -> None:
    _, frame, rate, answers = flood
    mine = peers_of(0, 3)
    for number in range(2 * BURST_MAX):
        mine.send(1, pack_message(Message("m", (number,))), b"", 0.0)
        mine.send(2, pack_message(Message("m", (number,))), b"", 0.0)
    out(mine)
    for step in range(2000):
        arrive(mine, frame, 1.0 + step / 1000)
    granted = rate.burst + 2.0 * rate.per_s
    assert len(out(mine)) == pytest.approx(granted * answers, abs=2 * answers)
    assert kinds(mine).count(TOO_MANY) == pytest.approx(2000 - granted, abs=2)
    assert not mine.link(1).refused
    arrive(mine, forged(2, 0, link_to(0).control(payloads.RESEND), 3), 3.0)
    assert len(out(mine)) == BURST_MAX
    arrive(mine, frame, 100.0)
    assert len(out(mine)) == answers


def test_pokes_of_bootstrap_are_always_answered_since_somebody_may_repeat_them() -> None:
    mine = peers_of(0)
    for _ in range(5000):
        arrive(mine, forged(BOOTSTRAP, 0, link_to(0).control(payloads.POKE)), 1.0)
    assert len(out(mine)) == 5000


def test_messages_that_come_again_and_again_are_acknowledged_at_a_rate() -> None:
    _, theirs, frames = exchange(1)
    give(theirs, frames[0])
    for _ in range(5000):
        give(theirs, frames[0])
    assert len(out(theirs)) == REPEATS.burst


def test_what_is_not_taken_because_of_a_limit_comes_again() -> None:
    _, theirs, frames = exchange(3)
    for _ in range(int(WRONG.burst)):
        theirs.limits.refused(0, 1.0)
    assert [give(theirs, frame) for frame in frames] == [None] * 3
    assert kinds(theirs) == [TOO_MANY, "gap"]
    assert theirs.link(0).received == 0
    assert all(give(theirs, frame, 2.0) for frame in frames)
