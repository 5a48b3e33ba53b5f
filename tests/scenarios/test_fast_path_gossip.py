"""Whatever happens to users of gossip, the fast path leaves what the long way leaves: effects, ledgers, knowledge.

States, exclusions, control frames, kills and restarts, loss, copies, and authentic frames that make no sense; and what
the fast path leaves to be written later is the same records in the same order.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core.arrays import in_steps
from p2pdp.core.draws import Mechanism
from p2pdp.core.events import Exchanger
from p2pdp.core.ids import Peer
from p2pdp.core.step import Message
from p2pdp.ledger.records import CLOSED, SALT_BYTES
from p2pdp.mechanisms import dither
from p2pdp.protocols.gossip.averaging import AVERAGE
from p2pdp.protocols.gossip.gossiping import Gossip
from p2pdp.protocols.gossip.plan import EXCHANGE, ROUNDS, SETTLED, SKIPPED, GossipPlan, check_gossip
from p2pdp.tasks.inputs import RealInputs
from p2pdp.topology.graphs import complete_graph
from p2pdp.wire.codec import pack_message, pack_value
from tests.support.fast_lives import ACTS, Lives, watched_takes
from tests.support.gossip_world import plan_of

Acts = list[tuple[str, int]]
STATE = b"\x92\xa8exchange"
ODD_FIELDS = (
    b"\x91\x01", b"\x93\x01\x01\x02", b"\x92\xc0\x01", b"\x92\x01\xcf" + b"\xff" * 8, b"\x92\x01\xd3\x80" + bytes(7),
    b"\x92\x01\xa1a", b"\x92\x01\x90", b"\x92\x81\x90\x01\x01", b"\x92\x01\xd6\xff\xff\xff\xff\xff", b"\x92\x01\xc1",
    b"\x92\x01\xdd\xff\xff\xff\xff", b"\x92\x01", b"\x92\x01\xcb" + bytes(8), b"\xdc\x00\x02\x01\x01", b"\x92\x01\xc3",
    b"\x92\x00\x01", b"\x92\x01\x00", b"\x92\xcd\x00\x01\x01", b"\x92\xff\x01",
)  # fmt: skip
ODD_VALUES = (
    b"", b"\x02", pack_value(5), b"\x02" + b"\xff" * 8, b"\x02" + bytes(6) + b"\xf0\x7f", pack_value(b"12345678"),
    pack_value(1e300), pack_value(-1e300), pack_value(-0.0),
    pack_value(np.array([0.5, 1e300])), pack_value(np.array([0.5])), pack_value(np.zeros(0)), pack_value(np.arange(2)),
    pack_value(np.array([0.5, -1.5])), pack_value(in_steps(np.array([0.5, -1.5]), -4)), pack_value(np.zeros(9000)),
    b"\x05" + struct.pack("<2d", 0.5, math.nan), b"\x05" + struct.pack("<2d", -math.inf, 0.5), b"\x05" + bytes(15),
    pack_value([1.5, 2.5]), b"\x07", b"\x07" + bytes(11), b"\x06" + bytes(4),
)  # fmt: skip
ODD = ("odd fields", "odd value", "state", "state", "skipped", "settled")


class GossipLives(Lives):
    table = ROUNDS
    slots = (
        "_neighbours", "_met", "_degree", "_round", "_lacking", "_state", "_before", "_sent", "_held_up_since_s",
        "_phase",
    )  # fmt: skip

    def machine(self, peer: Peer, others: tuple[Peer, ...]) -> Gossip:
        shape = self.plan.shape
        return Gossip(self.plan, peer, others, RealInputs([np.full(shape, float(peer)) if shape else float(peer)]))

    def passer(self, participant: Any) -> Exchanger:
        return AVERAGE.fast_exchange(self.plan, participant._machine)

    def wrong(self, message: Message) -> str | None:
        return check_gossip(self.plan, message)

    def odd(self, act: str, which: int, peer: Peer, other: Peer) -> None:
        machine, salt = self.inner(peer), bytes(SALT_BYTES)
        number = machine._neighbours[other].heard + 1
        if act == "odd fields":
            self.give(peer, other, STATE + ODD_FIELDS[which % len(ODD_FIELDS)], salt + pack_value(1.5))
        elif act == "odd value":
            value = ODD_VALUES[which % len(ODD_VALUES)]
            self.give(peer, other, pack_message(Message(EXCHANGE, (number, 1))), salt + value)
        elif act == "state":
            number += (0, 0, 0, 1, -1)[which % 5]
            state = np.full(self.plan.shape, 0.5) if self.plan.shape else 0.5
            message = Message(EXCHANGE, (max(number, 0), 1 + which % 3))
            self.give(peer, other, pack_message(message), salt + pack_value(state))
        elif act == "skipped":
            self.say(peer, other, Message(SKIPPED, (max(1, number - which % 3),)))
        elif act == "settled" and which % 7 == 0:
            self.say(peer, other, Message(SETTLED))


def lives(plan: GossipPlan, calm: int, acts: Acts, **how: bool) -> GossipLives:
    return GossipLives(plan, **how).lived(calm, acts)  # type: ignore[return-value]


DITHERED: dict[str, Any] = {"dither": dither.MECHANISM, "fine_exponent": -40}
PLANS = st.builds(
    lambda n, rounds, accelerated, more: plan_of(complete_graph(n), rounds, accelerated=accelerated, **more),
    st.integers(2, 4),
    st.sampled_from([2, 6, 60]),
    st.booleans(),
    st.sampled_from(
        [
            {},
            DITHERED,
            {"message_noise": Mechanism("gaussian", 4.0)},
            {"shape": (2,)},
            {"shape": (2,), "message_noise": Mechanism("gaussian", 4.0)},
            {**DITHERED, "shape": (150,), "short": True},
        ]
    ),
)
LIVES = st.lists(st.tuples(st.sampled_from((*ACTS, *ODD)), st.integers(0, 10**4)), max_size=120)


@given(plan=PLANS, acts=LIVES, calm=st.integers(0, 150))
def test_the_fast_path_leaves_what_the_long_way_leaves(plan: GossipPlan, acts: Acts, calm: int) -> None:
    fast, long = (lives(plan, calm, acts, fast=fast) for fast in (True, False))
    assert fast.toys.log == long.toys.log
    assert fast.toys.disks == long.toys.disks
    assert fast.known() == long.known()


@settings(max_examples=15)
@given(n=st.integers(2, 4), acts=LIVES, calm=st.integers(20, 150))
def test_large_vectors_are_one_value_part_on_both_ways(n: int, acts: Acts, calm: int) -> None:
    plan = plan_of(complete_graph(n), 60, shape=(2100,), **DITHERED)
    fast, long = (lives(plan, calm, acts, fast=fast) for fast in (True, False))
    assert fast.toys.log == long.toys.log
    assert fast.toys.disks == long.toys.disks
    assert fast.known() == long.known()


@pytest.mark.parametrize("shape", [(2,), (150,), (2100,)])
def test_vectors_take_the_fast_path(shape: tuple[int, ...]) -> None:
    plan = plan_of(complete_graph(4), 30, shape=shape, **DITHERED)
    with watched_takes() as taken:
        lives(plan, 4 * 3 * 30, [])
    assert sum(taken) > 4 * 3 * 30 - 40


@given(plan=PLANS, acts=LIVES, calm=st.integers(0, 150))
def test_what_is_written_later_is_the_same_records(plan: GossipPlan, acts: Acts, calm: int) -> None:
    """Nobody is killed: what was not written yet comes again, at another time. Heads follow from entries."""
    acts = [(act, which) for act, which in acts if act != "kill"]
    gathering, long = lives(plan, calm, acts, gathers=True), lives(plan, calm, acts, fast=False)
    for life in (gathering, long):
        for peer, host in life.toys.hosts.items():
            life.toys.carry(peer, host.wake(life.toys.now_s))
    if not any(host.closed for host in long.toys.hosts.values()):
        assert gathering.known() == long.known()
    for peer in range(plan.n):
        kept = [[one for one in life.records(peer) if one[0] != CLOSED] for life in (gathering, long)]
        assert kept[0] == kept[1]
