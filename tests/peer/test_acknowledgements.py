from __future__ import annotations

import ast

from hypothesis import given
from hypothesis import strategies as st

from p2pdp.crypto.vouchers import digest_after
from p2pdp.ledger.records import digest_of
from p2pdp.peer.acknowledgements import Acknowledgements, PacketSpace
from tests.support.sources import sources

MESSAGES = [(bytes([number]), bytes([number] * number)) for number in range(8)]
RESEND_S, RESEND_MAX_S = 2.0, 10.0


def timers_of() -> Acknowledgements:
    return Acknowledgements(1.0, RESEND_S, RESEND_MAX_S)


def sender_and_receiver(sent: int, received: int, acknowledged: int) -> tuple[PacketSpace, PacketSpace]:
    mine, theirs = PacketSpace(1), PacketSpace(0)
    for message, value in MESSAGES[:sent]:
        mine.push(message, value)
    for message, value in MESSAGES[:received]:
        theirs.took(message, value)
    assert mine.acknowledge_up_to(acknowledged)
    return mine, theirs


# Numbers and digests


def test_numbers_begin_at_one_and_have_no_gaps() -> None:
    link = PacketSpace(1)
    assert [link.push(*message).number for message in MESSAGES] == list(range(1, 9))


def test_both_ends_have_the_same_running_digest() -> None:
    mine, theirs = sender_and_receiver(8, 8, 0)
    assert mine.sent_digest == theirs.received_digest != bytes(16)
    assert (mine.sent, theirs.received) == (8, 8)


@given(st.binary(max_size=5), st.binary(max_size=5), st.binary(max_size=5), st.binary(max_size=5))
def test_a_digest_knows_where_a_message_ends(first: bytes, value: bytes, second: bytes, other: bytes) -> None:
    same = digest_after(bytes(16), first, digest_of(value)) == digest_after(bytes(16), second, digest_of(other))
    assert same == ((first, value) == (second, other))


def test_acknowledgement_is_cumulative_and_never_goes_back() -> None:
    link, _ = sender_and_receiver(5, 0, 3)
    assert [item.number for item in link.in_flight] == [4, 5]
    assert link.acknowledge_up_to(2)
    assert (link.acknowledged, len(link.in_flight)) == (3, 2)
    assert link.acknowledge_up_to(5)
    assert (link.acknowledged, len(link.in_flight), link.resend_at_s) == (5, 0, None)


def test_nobody_can_acknowledge_what_was_not_sent() -> None:
    link, _ = sender_and_receiver(5, 0, 0)
    assert not link.acknowledge_up_to(6)
    assert len(link.in_flight) == 5


@given(st.lists(st.tuples(st.binary(max_size=9), st.binary(max_size=9)), max_size=40), st.data())
def test_digests_are_the_same_whenever_they_are_asked_for(
    messages: list[tuple[bytes, bytes]], data: st.DataObject
) -> None:
    mine, theirs, digest = PacketSpace(1), PacketSpace(0), bytes(16)
    for message, value in messages:
        mine.push(message, value)
        theirs.took(message, value)
        digest = digest_after(digest, message, digest_of(value))
        if data.draw(st.booleans()):
            assert mine.sent_digest == theirs.received_digest == digest
        if data.draw(st.booleans()):
            assert mine.acknowledge_up_to(data.draw(st.integers(0, mine.sent)))
    assert mine.sent_digest == theirs.received_digest == digest


def test_what_is_remembered_of_the_past_is_bounded() -> None:
    link = PacketSpace(0)
    for number in range(1000):
        link.took(bytes([number % 256]), b"")
    assert 32 <= len(link.recent) < 64
    assert link.repeats(1, bytes([0]), b"") is None
    assert link.repeats(1000, bytes([999 % 256]), b"") is True
    link.took(b"", bytes(1000))
    assert link.repeats(1001, b"", bytes(1000)) is True
    assert sum(map(len, link.recent[-1])) == 32, "of a long value only its digest is kept"


def test_a_refused_link_keeps_nothing() -> None:
    link = PacketSpace(0)
    link.refused = True
    assert [link.push(*message).number for message in MESSAGES] == list(range(1, 9))
    assert not link.in_flight


# Acknowledgements that are owed


def test_a_debt_is_due_at_the_last_moment_of_the_clock_within_a_tick() -> None:
    for since_s, due_s in ((5.0, 6.0), (5.1, 6.0), (5.24, 6.0), (5.25, 6.25), (5.9, 6.75)):
        timers = timers_of()
        timers.owe(1, since_s)
        timers.owe(1, since_s + 0.3)
        assert (timers.ack_at_s, timers.owed_since_s) == (due_s, {1: since_s})
        assert (timers.due(due_s - 0.001), timers.ack_at_s) == ([], due_s)
        assert (timers.due(due_s), timers.ack_at_s) == ([1], None)


def test_those_of_one_moment_are_told_together_and_the_rest_at_the_next() -> None:
    timers = timers_of()
    for peer, now_s in ((3, 5.0), (1, 5.2), (2, 5.26), (4, 5.5)):
        timers.owe(peer, now_s)
    assert (timers.ack_at_s, timers.due(6.0)) == (6.0, [1, 3])
    assert (timers.ack_at_s, timers.due(6.25)) == (6.25, [2])
    assert (timers.ack_at_s, timers.due(7.0), timers.ack_at_s) == (6.5, [4], None)


@given(st.lists(st.tuples(st.integers(2, 5), st.floats(0.0, 3.0)), max_size=20), st.floats(0.0, 3.0))
def test_when_one_peer_is_told_does_not_depend_on_the_others(others: list[tuple[int, float]], mine_s: float) -> None:
    """Else the moment of an acknowledgement would tell its receiver when somebody else sent something."""
    told_s = []
    for debts in ([(1, mine_s)], [*others, (1, mine_s)]):
        timers = timers_of()
        coming = sorted(debts, key=lambda debt: debt[1])
        while coming or timers.ack_at_s is not None:
            if timers.ack_at_s is None or (coming and coming[0][1] < timers.ack_at_s):
                timers.owe(*coming.pop(0))
            elif 1 in timers.due(at_s := timers.ack_at_s):
                told_s.append(at_s)
    assert len(told_s) == 2
    assert told_s[0] == told_s[1]


def test_in_the_end_everybody_is_told() -> None:
    timers = timers_of()
    timers.owe(4, 5.0)
    timers.owe(1, 5.0)
    assert (timers.due_at_the_end(), timers.ack_at_s, timers.due_at_the_end()) == ([1, 4], None, [])


@given(st.lists(st.tuples(st.integers(1, 5), st.floats(0.0, 10.0)), max_size=40))
def test_nothing_waits_longer_than_it_may(debts: list[tuple[int, float]]) -> None:
    timers = timers_of()
    for peer, now_s in sorted(debts, key=lambda debt: debt[1]):
        while timers.ack_at_s is not None and timers.ack_at_s <= now_s:
            at_s, since_s = timers.ack_at_s, dict(timers.owed_since_s)
            assert all(at_s - since_s[peer] <= 1.0 + 1e-9 for peer in timers.due(at_s))
        timers.owe(peer, now_s)


# Messages in flight


@given(
    st.lists(
        st.tuples(st.sampled_from(["send", "acknowledge", "wait", "refuse"]), st.integers(1, 3), st.floats(0.0, 4.0)),
        max_size=60,
    )
)
def test_what_is_in_flight_is_sent_again_until_it_is_acknowledged(acts: list[tuple[str, int, float]]) -> None:
    timers, spaces, now_s = timers_of(), {peer: PacketSpace(peer) for peer in (1, 2, 3)}, 0.0
    for act, peer, more_s in acts:
        space = spaces[peer]
        if act == "send":
            space.push(b"message", b"")
            if not space.refused:
                timers.sent(space, now_s)
        elif act == "acknowledge":
            timers.learn(space, min(space.sent, space.acknowledged + 1), now_s)
        elif act == "refuse":
            timers.refuse(space)
        else:
            now_s += more_s
        flying = [each for each in spaces.values() if each.in_flight]
        assert all(each.resend_at_s is not None for each in flying)
        assert timers.check_at_s is not None or not flying
        for each in timers.overdue(now_s):
            assert each.in_flight
            assert each.resend_at_s is not None
            assert each.resend_at_s <= now_s
            timers.sent_again(each, now_s)
            assert now_s + RESEND_S <= each.resend_at_s <= now_s + RESEND_MAX_S
    for space in spaces.values():
        timers.learn(space, space.sent, now_s)
    assert timers.overdue(now_s + 2 * RESEND_MAX_S) == []
    assert timers.check_at_s is None


def test_waits_double_up_to_the_longest_and_begin_anew_when_the_peer_answers() -> None:
    timers, space = timers_of(), PacketSpace(1)
    for message in MESSAGES[:2]:
        space.push(*message)
        timers.sent(space, 0.0)
    waits = []
    for _ in range(4):
        timers.sent_again(space, 100.0)
        waits.append(space.resend_at_s - 100.0 if space.resend_at_s is not None else None)
    assert waits == [2.0, 4.0, 8.0, 10.0]
    timers.learn(space, 1, 200.0)
    assert space.resend_at_s == 202.0
    timers.learn(space, 1, 201.0)
    assert space.resend_at_s == 202.0, "that is no news"
    timers.sent_again(space, 202.0)
    assert space.resend_at_s == 204.0


def test_large_values_have_time_to_arrive_by_what_their_link_is_known_to_carry() -> None:
    timers, space = timers_of(), PacketSpace(1)
    assert space.rate == 128 * 1024
    large = bytes(512 * 1024)
    space.push(b"m", large)
    timers.sent(space, 100.0)
    assert space.resend_at_s == 100.0 + RESEND_S + 2 * 4.0
    space.push(b"m", large)
    timers.sent(space, 101.0)
    assert space.resend_at_s == 100.0 + RESEND_S + 2 * 8.0, "the second waits behind the first"
    timers.learn(space, 1, 102.0)
    assert space.rate == (128 + 256) / 2 * 1024
    assert space.resend_at_s == 102.0 + RESEND_S + 2 * 512 / 192
    timers.sent_again(space, 200.0)
    assert space.resend_at_s == 200.0 + RESEND_S + 2 * 512 / 192
    timers.learn(space, 2, 202.0)
    assert (space.large_bytes, space.resend_at_s) == (0, None)
    space.push(b"m", b"small")
    timers.sent(space, 300.0)
    assert space.resend_at_s == 300.0 + RESEND_S


def test_a_slow_link_is_given_more_time_and_not_for_ever() -> None:
    timers, space = timers_of(), PacketSpace(1)
    for number in range(30):
        space.push(b"m", bytes(1 << 14))
        timers.sent(space, 1e6 * number)
        timers.learn(space, number + 1, 1e6 * (number + 1))
    assert space.rate == 8 * 1024


@given(st.integers(1, 10**6), st.floats(0.01, 10.0))
def test_the_next_look_is_always_later_than_now(number: int, resend_s: float) -> None:
    """Multiples of a float may round to themselves again; a look that is due now would be due for ever."""
    for at_s in (number * (resend_s / 2), 9.299999999999999):
        timers, space = Acknowledgements(1.0, resend_s, 10.0), PacketSpace(1)
        timers.sent(space, at_s)
        assert timers.check_at_s is not None
        assert at_s < timers.check_at_s <= at_s + resend_s


def test_the_next_look_from_a_moment_that_rounds_down() -> None:
    timers = Acknowledgements(1.0, 0.6, 10.0)
    timers.sent(PacketSpace(1), 9.299999999999999)
    assert timers.check_at_s is not None
    assert timers.check_at_s > 9.299999999999999


@given(st.floats(0.0, 1e6))
def test_whether_a_wait_is_over_is_looked_at_on_moments_of_the_clock(now_s: float) -> None:
    """Else the moment at which something is sent again would tell when something was sent to somebody else."""
    timers, space = timers_of(), PacketSpace(1)
    space.push(b"", b"")
    timers.sent(space, now_s)
    assert timers.check_at_s is not None
    assert now_s < timers.check_at_s <= now_s + RESEND_S / 2 + 1e-6
    assert timers.check_at_s % (RESEND_S / 2) == 0.0


def test_who_is_out_is_owed_nothing() -> None:
    timers, space = timers_of(), PacketSpace(1)
    timers.owe(1, 5.0)
    space.push(b"", b"")
    timers.sent(space, 5.0)
    timers.refuse(space)
    assert (timers.due_at_the_end(), timers.overdue(100.0), list(space.in_flight)) == ([], [], [])


def test_timers_are_set_in_one_file() -> None:
    timers = {"resend_at_s", "resend_wait_s", "owed_since_s", "ack_at_s", "check_at_s", "acknowledged"}
    elsewhere = [
        source.say(node, ast.unparse(target))
        for source in sources("p2pdp")
        if source.path.startswith("p2pdp/peer/") and not source.path.endswith("/acknowledgements.py")
        for node in source.nodes
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Attribute) and target.attr in timers
    ]
    assert elsewhere == []
