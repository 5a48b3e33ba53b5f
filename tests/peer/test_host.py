from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core import messages
from p2pdp.core.errors import VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.core.messages import COMMON
from p2pdp.core.step import Fault, Message, Output, Send, Step
from p2pdp.ledger import records
from p2pdp.ledger.journal import PRIVATE, VIEW
from p2pdp.ledger.records import DRAWN, POOL, SENT
from p2pdp.peer.effects import Timing
from p2pdp.peer.limits import TOO_MANY, WRONG
from p2pdp.peer.payloads import POKE
from p2pdp.wire.codec import pack_message, pack_value
from tests.support.toy_schedules import ACTIONS, come_back, happen
from tests.support.toys import PingPong, Quiet, Toys, consistent, forged, link_to, opened, repacked, used_draws

TIMING = Timing(rejoin_s=1.0, resend_s=1.0, resend_max_s=2.0)


def ping_pong(n: int = 2, hops: int = 5, balls: int = 1) -> Toys:
    def maker(peer: int) -> Any:
        return lambda: PingPong(peer, n, hops, balls)

    return Toys({peer: maker(peer) for peer in range(n)}, n, timing=TIMING)


def finished_world(n: int = 2, hops: int = 5, balls: int = 1) -> Toys:
    toys = ping_pong(n, hops, balls)
    toys.boot_all()
    toys.run(60.0)
    return toys


def complete(toys: Toys, balls: int, hops: int) -> None:
    """Every ball made every hop, once, with one value: nothing lost, doubled or drawn twice."""
    consistent(toys)
    hopped: dict[tuple[int, int], int] = {}
    for peer, machine in toys.machines.items():
        for ball, hop, value in machine.sent:
            assert (ball, hop) not in hopped
            hopped[(ball, hop)] = value
        used = used_draws(toys, peer)
        assert len(set(used)) == len(used)
    assert sorted(hopped) == [(ball, hop) for ball in range(balls) for hop in range(1, hops + 1)]
    for machine in toys.machines.values():
        for sender, ball, hop, value in machine.took:
            if sender != machine.me:
                assert hopped[(ball, hop)] == value


def quiet(n: int = 2, **options: Any) -> Toys:
    toys = Toys(dict.fromkeys(range(n), Quiet), n, **options)
    toys.boot_all()
    return toys


def from_peer(toys: Toys, sender: int, *sent: Message, receiver: int = 0) -> None:
    """Messages of a peer that a test plays itself, in one go."""
    link = link_to(receiver)
    for message in sent:
        value = bytes(16) + pack_value(message.value) if message.value is not None else b""
        toys.give(receiver, forged(sender, receiver, link.data(link.push(pack_message(message), value)), toys.n))


# The order of effects


def test_a_record_is_in_the_effects_of_the_frame_that_depends_on_it() -> None:
    """Each data frame carries what a SENT record says; that record was written no later than with the frame."""
    toys = finished_world(3, 6)
    for peer in toys.make:
        written = b""
        for who, effects in toys.log:
            if who != peer:
                continue
            written += b"".join(data for name, data in effects.writes if name == VIEW)
            stored = records.read(written).records
            sent = {
                (record.body.receiver, record.body.message, record.value) for record in stored if record.kind == SENT
            }
            received = [record for record in stored if record.kind == records.RECEIVED]
            for receiver, frame in effects.frames:
                if receiver < 0:
                    continue
                payload = opened(peer, receiver, frame, 3)
                if payload.flags == 1:
                    assert (receiver, payload.message, payload.value) in sent
                assert payload.acknowledged <= sum(record.body.sender == receiver for record in received)


def test_a_pool_is_written_before_the_view_names_it() -> None:
    toys = finished_world(2, 9)
    for peer in toys.make:
        known: set[int] = set()
        writes = [write for who, effects in toys.log if who == peer for write in effects.writes]
        chains = {VIEW: b"", PRIVATE: b""}
        for name, data in writes:
            chains[name] += data
            last = records.read(chains[name]).records[-1:]
            for record in last:
                if record.kind == POOL:
                    known.add(record.body.number)
                if record.kind == DRAWN:
                    assert record.body.pool in known


def test_the_ledger_tells_the_calls_in_order() -> None:
    toys = finished_world(2, 2)
    assert toys.kinds(0) == [
        *("opened", "started", "drawn", "chosen", "sent"),
        *("received", "drawn", "chosen", "published", "sent", "own"),
        *("received", "published", "own"),
    ]
    assert toys.kinds(0, PRIVATE) == ["pool", "pool"]


def test_a_message_to_oneself_is_recorded_and_told_at_once() -> None:
    toys = quiet()
    loop = Send(0, Message("loop", (1,), 5))
    toys.machines[0].answer = lambda sender, _message, _draws: Step(sends=(loop,)) if sender == 1 else Step()
    from_peer(toys, 1, Message("go"))
    assert toys.machines[0].told == ["start", (1, "go", (), None), (0, "loop", (1,), 5)]
    assert toys.kinds(0) == ["opened", "started", "received", "own"]
    assert [receiver for receiver, _ in toys.flight] == []


def test_what_is_published_is_recorded_and_handed_out() -> None:
    toys = quiet()
    toys.machines[0].answer = lambda *_: Step(outputs=(Output("result", (), 7),), faults=(Fault("odd", 1),))
    from_peer(toys, 1, Message("go"))
    _, effects = toys.log[-1]
    assert effects.outputs == (Output("result", (), 7),)
    assert effects.faults == (Fault("odd", 1),)
    assert toys.kinds(0)[-1] == "published"
    assert toys.notes(0) == ["odd"]


def test_a_machine_is_woken_when_it_asked_for_it_and_not_before() -> None:
    toys = Toys({0: Quiet}, 2)
    toys.make[0] = lambda: machine
    machine = Quiet()
    machine.first = Step(wake_at_s=7.0)
    assert toys.boot(0).wake_at_s == 7.0
    assert toys.wake_up(0, 6.9).wake_at_s == 7.0
    assert machine.told == ["start"]
    assert toys.wake_up(0, 7.0).wake_at_s is None
    assert machine.told == ["start", "wake"]
    assert toys.kinds(0) == ["opened", "started", "woken"]
    toys.wake_up(0, 8.0)
    assert machine.told == ["start", "wake"]


# What peers can do


BAD_FIELDS: list[tuple[Any, ...]] = [
    (),
    (1,),
    (-1,),
    ([],),
    ("a", "b"),
    (1.5, 2),
    (0, b""),
    (99, b""),
    (0, [], []),
    (0, [3], []),
    (0, [[1, "a"]], []),
    (0, 0, 0, 0),
    ([1], [2]),
    (b"", b"", b""),
    (1 << 62, 1 << 62),
    (0, [], [[]]),
]
TYPES = sorted(one.name for one in COMMON)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("sender", [1, BOOTSTRAP, CURATOR])
def test_no_field_of_a_shared_message_raises(kind: str, sender: int) -> None:
    """Each is taken, or is one recorded fault; a machine gets only what has the promised form."""
    for fields in BAD_FIELDS:
        toys = quiet()
        from_peer(toys, sender, Message(kind, fields))
        (told,) = toys.machines[0].told[1:]
        taken = told[:3] == (sender, kind, fields)
        assert taken or told[:3] == (0, "complaint", (sender, "malformed"))
        assert len(toys.notes(0)) == (0 if taken else 1)
        toys.run(30.0)


def test_a_salt_without_a_value_or_a_value_without_a_salt_is_malformed() -> None:
    for size in (1, 15, 16):
        toys = quiet()
        link = link_to(0)
        toys.give(0, forged(1, 0, link.data(link.push(pack_message(Message("m")), bytes(size)))))
        assert toys.notes(0) == ["malformed"]
        assert toys.machines[0].told == ["start", (0, "complaint", (1, "malformed"), None)]
        assert toys.records(0)[-1].value == bytes(size), "as it came, since digests of links cover it"


def test_what_the_protocol_finds_wrong_is_a_fault_and_is_not_taken() -> None:
    toys = quiet(check=lambda message: "bad_value" if message.fields == (3,) else None)
    from_peer(toys, 1, Message("m", (3,)))
    assert toys.notes(0) == ["bad_value"]
    assert "received" not in toys.kinds(0)


# The end


def closing_world() -> Toys:
    toys = Toys({0: Quiet, CURATOR: Quiet}, 2, timing=TIMING, skeleton=lambda: b"skeleton" * 10)
    toys.boot_all()
    return toys


def finish(toys: Toys, peer: int = 0) -> None:
    toys.machines[peer].finished = True
    from_peer(toys, 1, Message("last"), receiver=peer)


def test_a_finished_machine_closes_both_ledgers_and_flushes_its_acknowledgements() -> None:
    toys = quiet()
    finish(toys)
    assert toys.hosts[0].closed
    assert toys.kinds(0)[-1] == "closed"
    assert toys.kinds(0, PRIVATE)[-1] == "closed"
    to_peer = [frame for receiver, frame in toys.flight if receiver == 1]
    assert [opened(0, 1, frame).acknowledged for frame in to_peer] == [1]


def test_after_the_end_nothing_is_recorded_taken_or_drawn() -> None:
    toys = quiet()
    finish(toys)
    toys.machines[0].woken = Step(wake_at_s=1.0)
    before = bytes(toys.disks[0][VIEW]), bytes(toys.disks[0][PRIVATE])
    link = link_to(0)
    link.push(b"", b"")
    late = link.data(link.push(pack_message(Message("late")), b""))
    toys.give(0, forged(1, 0, late))
    toys.give(0, b"rubbish")
    toys.carry(0, toys.hosts[0].idle(2.0))
    toys.wake_up(0, 50.0)
    assert (bytes(toys.disks[0][VIEW]), bytes(toys.disks[0][PRIVATE])) == before


def test_a_machine_makes_itself_ready_in_idle_moments_until_the_end() -> None:
    class Ready(Quiet):
        prepared = 0

        def prepare(self) -> None:
            self.prepared += 1

    toys = Toys(dict.fromkeys(range(2), Ready), 2)
    toys.boot_all()
    toys.carry(0, toys.hosts[0].idle(1.0))
    finish(toys)
    toys.carry(0, toys.hosts[0].idle(2.0))
    assert [toys.machines[peer].prepared for peer in (0, 1)] == [1, 0]


def test_head_and_skeleton_reach_the_curator_once_the_ledger_is_stored() -> None:
    toys = closing_world()
    finish(toys)
    host = toys.hosts[0]
    assert host.closed
    assert not host.done
    toys.run(10.0)
    assert host.done
    kinds = [told[1] for told in toys.machines[CURATOR].told if told != "start"]
    assert kinds == ["skeleton", "head"]


@pytest.mark.parametrize("curator_has_it", [False, True])
def test_a_restart_after_the_end_hands_in_the_same_again(curator_has_it: bool) -> None:
    """The curator may have the head already, though no ledger of the user's says that it was sent."""
    toys = closing_world()
    finish(toys)
    if curator_has_it:
        toys.run(10.0)
    toys.flight.clear()
    toys.kill(0)
    toys.boot(0)
    toys.run(60.0)
    assert toys.hosts[0].done
    assert not toys.hosts[0].stopped
    kinds = [told[1] for told in toys.machines[CURATOR].told if told != "start"]
    assert kinds == ["skeleton", "head"]


def test_a_closed_host_does_not_ask_to_be_woken_for_its_machine() -> None:
    toys = quiet(timing=TIMING)
    toys.machines[0].answer = lambda *_: Step(wake_at_s=3.0)
    finish(toys)
    toys.run(500.0)  # would not come to an end


def test_a_user_that_learns_it_is_out_needs_nobody_any_more() -> None:
    toys = quiet(timing=TIMING)
    toys.machines[0].answer = lambda *_: Step(sends=(Send(1, Message("m")), Send(CURATOR, Message("m"))))
    from_peer(toys, 1, Message("m"))
    toys.machines[0].finished = True
    toys.flight.clear()
    link = link_to(0)
    order = link.data(link.push(pack_message(Message("out", (0, bytes(64)))), b""))
    toys.give(0, forged(BOOTSTRAP, 0, order))
    toys.run(100.0)
    assert toys.hosts[0].done


# Restart


def stop_points(n: int, hops: int) -> list[tuple[int, int]]:
    toys = finished_world(n, hops)
    return [(peer, at) for peer in toys.make for at in range(1, len(toys.marks[peer]) + 1)]


@pytest.mark.parametrize(("n", "hops", "peer", "at"), [
    (n, hops, *point) for n, hops in ((2, 4), (3, 5)) for point in stop_points(n, hops)
])  # fmt: skip
def test_a_stop_at_any_record_changes_nothing(n: int, hops: int, peer: int, at: int) -> None:
    toys = ping_pong(n, hops)
    toys.stop_at[peer] = at
    toys.boot_all()
    toys.settle()
    assert peer not in toys.hosts
    stored = [repacked(record) for record in toys.records(peer)]
    values = [record.value for record in toys.records(peer)]
    toys.boot(peer)
    toys.run(60.0)
    complete(toys, n, hops)
    after = toys.records(peer)
    assert [repacked(record) for record in after][: len(stored)] == stored
    assert [record.value for record in after][: len(stored)] == values
    assert not any(host.stopped for host in toys.hosts.values())


@pytest.mark.parametrize("peer", [0, 1, 2])
def test_a_restart_ends_in_the_state_it_had(peer: int) -> None:
    toys = finished_world(3, 7, 2)
    machine, view = toys.machines[peer], bytes(toys.disks[peer][VIEW])
    toys.kill(peer)
    toys.boot(peer)
    toys.run(120.0)
    assert toys.machines[peer] is not machine
    assert (toys.machines[peer].took, toys.machines[peer].sent) == (machine.took, machine.sent)
    assert bytes(toys.disks[peer][VIEW]) == view
    assert toys.samplers[peer].drawn == []


def test_what_was_not_acknowledged_is_sent_again_with_the_same_noise() -> None:
    toys = ping_pong(2, 1)
    toys.boot(0)
    first = [opened(0, 1, frame) for receiver, frame in toys.flight if receiver == 1]
    toys.flight.clear()
    toys.kill(0)
    toys.boot(0)
    asked = [opened(0, 1, frame) for receiver, frame in toys.flight if receiver == 1]
    assert [payload.flags for payload in asked] == [2]  # numbers are compared before anything is sent
    toys.flight.clear()
    toys.wake_up(0, 5.0)
    again = [opened(0, 1, frame) for receiver, frame in toys.flight if receiver == 1 and opened(0, 1, frame).flags == 1]
    assert [(p.number, p.message, p.value) for p in again] == [(p.number, p.message, p.value) for p in first]
    assert toys.samplers[0].drawn == []


def test_everybody_may_stop_at_once() -> None:
    toys = ping_pong(3, 6)
    toys.boot_all()
    for _ in range(6):
        toys.deliver()
    toys.flight.clear()
    for peer in toys.make:
        toys.kill(peer)
    toys.boot_all()
    toys.run(60.0)
    complete(toys, 3, 6)


def test_altered_records_are_not_run_again() -> None:
    toys = finished_world(2, 3)
    view = toys.disks[0][VIEW]
    view[len(view) // 2] ^= 1
    toys.kill(0)
    with pytest.raises(VerificationFailed):
        toys.boot(0)


def test_a_machine_that_does_something_else_this_time_is_found_out() -> None:
    toys = finished_world(2, 3)
    toys.kill(0)
    toys.make[0] = lambda: PingPong(0, 2, 2)
    toys.boot(0)
    with pytest.raises(VerificationFailed):
        toys.run(100.0)


# Rollback


@pytest.mark.parametrize(("peer", "kept"), stop_points(2, 8))
def test_a_disk_that_was_rolled_back_never_draws_again(peer: int, kept: int) -> None:
    toys = finished_world(2, 8)
    other = 1 - peer
    lost = toys.records(peer)[len(toys.records_until(peer, kept)) :]
    shown = any(record.kind in (records.SENT, records.RECEIVED) for record in lost)
    if not shown:
        pytest.skip("nothing of what was lost had reached anybody")
    took, view = list(toys.machines[other].took), bytes(toys.disks[other][VIEW])
    toys.kill(peer)
    toys.roll_back(peer, kept)
    before = toys.kinds(peer), [kind for kind in toys.kinds(peer, PRIVATE) if kind == "pool"]
    toys.boot(peer)
    toys.run(300.0)
    toys.carry(peer, toys.hosts[peer].idle(300.0))
    toys.carry(peer, toys.hosts[peer].connected(other, 300.0))
    toys.carry(peer, toys.hosts[peer].wake(400.0))
    toys.settle()
    assert toys.hosts[peer].stopped
    assert not toys.hosts[other].stopped
    assert (toys.kinds(peer), [kind for kind in toys.kinds(peer, PRIVATE) if kind == "pool"]) == before
    assert toys.samplers[peer].drawn == []
    assert toys.notes(peer)[-1] == "rolled_back"
    assert toys.hosts[peer].fault_counts["rolled_back"] == 1
    assert toys.log[-1][1].wake_at_s is None
    assert toys.machines[other].took == took
    assert bytes(toys.disks[other][VIEW]) == view
    assert toys.notes(other) == ["peer_rolled_back"]


def test_a_rollback_that_shows_only_later_stops_the_host_then() -> None:
    """The other end is away while the disk comes back, and the host has gone on by then."""
    toys = finished_world(2, 8)
    toys.kill(0)
    toys.kill(1)
    toys.roll_back(0, 6)
    toys.boot(0)
    toys.run(100.0)
    assert not toys.hosts[0].stopped
    toys.boot(1)
    toys.run(200.0)
    assert toys.hosts[0].stopped
    drawn = list(toys.samplers[0].drawn)
    toys.carry(0, toys.hosts[0].idle(300.0))
    toys.wake_up(0, 300.0)
    assert toys.samplers[0].drawn == drawn
    assert not toys.hosts[1].stopped


def test_a_second_value_under_an_old_number_is_never_taken() -> None:
    """The disk of user 0 goes back while nobody answers, so that it draws anew; user 1 holds what it had first."""
    toys = finished_world(2, 4)
    entries = [[record.kind for record in toys.records_until(0, at + 1)] for at in range(len(toys.marks[0]))]
    kept = next(at for at, kinds in enumerate(entries) if records.DRAWN in kinds)
    took = list(toys.machines[1].took)
    toys.kill(0)
    toys.roll_back(0, kept)
    one = toys.hosts.pop(1)
    toys.wake_at_s[1] = None
    toys.boot(0)
    toys.run(100.0)
    assert toys.samplers[0].drawn
    toys.hosts[1] = one
    toys.run(200.0)
    assert toys.hosts[0].stopped
    assert toys.machines[1].took == took
    assert "conflict" in toys.notes(1) or "peer_rolled_back" in toys.notes(1)


# The watch over others


class Watcher(Quiet):
    watched = frozenset({1, 2, 3})


def watching() -> Toys:
    """Bootstrap watches over users 1 to 3, of whom 1 says nothing and the others answer."""
    toys = Toys({BOOTSTRAP: Watcher}, 4, watcher=lambda machine: machine, timing=Timing(patience_s=10.0, resend_s=1.0))
    toys.boot(BOOTSTRAP)
    return toys


def pass_time(toys: Toys, until_s: float) -> None:
    """Second by second; 2 and 3 answer when they are asked."""
    while toys.now_s < until_s:
        toys.wake_up(BOOTSTRAP, toys.now_s + 1.0)
        asked = {to for to, frame in toys.flight if opened(BOOTSTRAP, to, frame, 4).flags & POKE}
        toys.flight.clear()
        for peer in asked - {1}:
            toys.give(BOOTSTRAP, forged(peer, BOOTSTRAP, link_to(BOOTSTRAP).control(0), 4))


def silent(toys: Toys) -> list[tuple[Any, ...]]:
    return [told[:3] for told in toys.machines[BOOTSTRAP].told if told != "start"]


def test_who_is_not_heard_is_poked_and_then_told_of_once() -> None:
    toys = watching()
    pass_time(toys, 9.0)
    assert silent(toys) == []
    pass_time(toys, 60.0)
    assert silent(toys) == [(BOOTSTRAP, messages.SILENT, (1,))]
    assert toys.kinds(BOOTSTRAP)[-1] == "own"
    poked = {
        to for _, effects in toys.log for to, frame in effects.frames if opened(BOOTSTRAP, to, frame, 4).flags & POKE
    }
    assert poked == {1, 2, 3}


def test_who_is_heard_again_is_spared_and_that_is_recorded() -> None:
    toys = watching()
    pass_time(toys, 30.0)
    toys.give(BOOTSTRAP, forged(1, BOOTSTRAP, link_to(BOOTSTRAP).control(0), 4))
    pass_time(toys, 32.0)
    told = [(BOOTSTRAP, messages.SILENT, (1,)), (BOOTSTRAP, messages.SPARED, (1,))]
    assert silent(toys) == told
    pass_time(toys, 60.0)
    assert silent(toys) == [*told, told[0]]


def test_a_busy_machine_waits_longer() -> None:
    toys = watching()
    toys.hosts[BOOTSTRAP].slowness = 100.0
    pass_time(toys, 17.0)
    assert silent(toys) == []
    pass_time(toys, 22.0)  # two looks of 1.25 s later at most, and this clock goes by whole seconds
    assert silent(toys) == [(BOOTSTRAP, messages.SILENT, (1,))]


def test_after_a_restart_patience_begins_anew() -> None:
    toys = watching()
    pass_time(toys, 9.0)
    toys.kill(BOOTSTRAP)
    toys.now_s = 100.0
    toys.boot(BOOTSTRAP)
    toys.run(106.0)
    pass_time(toys, 114.0)
    assert silent(toys) == []
    pass_time(toys, 125.0)
    assert len(silent(toys)) == 1


def test_a_machine_is_not_woken_too_soon_after_its_host_was_held_up() -> None:
    toys = watching()
    pass_time(toys, 3.0)
    toys.machines[BOOTSTRAP].woken = Step()
    toys.machines[BOOTSTRAP].answer = lambda *_: Step(wake_at_s=20.0)
    toys.give(
        BOOTSTRAP,
        forged(2, BOOTSTRAP, link_to(BOOTSTRAP).data(link_to(BOOTSTRAP).push(pack_message(Message("m")), b"")), 4),
    )
    toys.wake_up(BOOTSTRAP, 50.0)
    assert "wake" not in toys.machines[BOOTSTRAP].told
    pass_time(toys, 59.0)
    assert "wake" not in toys.machines[BOOTSTRAP].told
    pass_time(toys, 61.0)
    assert "wake" in toys.machines[BOOTSTRAP].told


# Any schedule


@settings(max_examples=150)
@given(
    st.tuples(st.integers(2, 3), st.integers(1, 5), st.integers(1, 2)),
    st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 2), st.integers(0, 50)), max_size=60),
)
def test_each_message_is_delivered_once_and_in_order_whatever_happens(
    size: tuple[int, int, int], actions: list[tuple[str, int, int]]
) -> None:
    """A network that loses, repeats and reorders; hosts that stop between any two records and come back."""
    n, hops, balls = size
    toys = ping_pong(n, hops, balls)
    toys.boot_all()
    for action, peer, pick in actions:
        happen(toys, action, peer % n, pick)
        consistent(toys)
    come_back(toys)
    complete(toys, n * balls, hops)
    assert not any(host.stopped for host in toys.hosts.values())
    seen = {fault.kind for _, effects in toys.log for fault in effects.faults}
    assert seen <= {"gap", "peer_rolled_back"}  # the second where two old hellos arrive in a row


def test_messages_that_the_machine_refuses_are_recorded_at_a_rate_and_others_as_ever() -> None:
    """As a flood of questions about silence from somebody who has no say."""
    toys = quiet(3)
    machine = toys.machines[0]
    machine.answer = lambda sender, *_: Step(faults=(Fault("unexpected_message", sender),) if sender == 1 else ())
    flood, honest, packed = link_to(0), link_to(0), pack_message(Message(messages.SILENT, (2,)))
    toys.now_s = 1.0
    for _ in range(1000):
        item = flood.push(packed, b"")
        toys.give(0, forged(1, 0, flood.data(item), 3))
        flood.sent -= toys.hosts[0]._peers.link(1).received < item.number  # it comes again until it is taken
        toys.give(0, forged(2, 0, honest.data(honest.push(packed, b"")), 3))
    told = [told[0] for told in machine.told if told != "start"]
    assert (told.count(1), told.count(2)) == (WRONG.burst, 1000)
    assert toys.hosts[0].fault_counts[TOO_MANY] == 1000 - WRONG.burst
    assert not toys.hosts[0]._peers.link(1).refused
