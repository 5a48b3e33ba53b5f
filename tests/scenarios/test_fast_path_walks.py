"""Whatever happens to users of a walk, the fast path leaves what the long way leaves: effects, ledgers, knowledge.

Tokens, exclusions, orders, control frames, kills and restarts, loss, copies, and authentic frames that make no sense.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core import messages
from p2pdp.core.draws import Mechanism
from p2pdp.core.events import Passer
from p2pdp.core.ids import BOOTSTRAP, Peer
from p2pdp.core.messages import COMMON
from p2pdp.core.step import Message
from p2pdp.ledger.records import SALT_BYTES
from p2pdp.protocols.walk.walking import VALUE_MAX, Walk, WalkPlan, check_token
from p2pdp.tasks.inputs import NumberInputs
from p2pdp.wire.codec import pack_message, pack_value
from tests.support.fast_lives import ACTS, Lives

NOISE = Mechanism("gaussian", 4.0)
TOKEN = b"\x92\xa5token"
ODD_FIELDS = (
    b"\x91\x01", b"\x93\x00\x01\x02", b"\x92\xc0\x01", b"\x92\x00\xcf" + b"\xff" * 8, b"\x92\x00\xd3\x80" + bytes(7),
    b"\x92\x00\xa1a", b"\x92\x00\x90", b"\x92\x81\x90\x01\x01", b"\x92\x00\xd6\xff\xff\xff\xff\xff", b"\x92\x00\xc1",
    b"\x92\x00\xdd\xff\xff\xff\xff", b"\x92\x00", b"\x92\x00\xcb" + bytes(8), b"\xdc\x00\x02\x00\x05", b"\x92\x00\xc3",
)  # fmt: skip
ODD_VALUES = (
    b"", b"\x01", pack_value(1.5), b"\x02" + b"\xff" * 8, pack_value(b"12345678"), pack_value(VALUE_MAX + 1),
    pack_value(-VALUE_MAX - 1), pack_value(2**63 - 1),
)  # fmt: skip
ODD = ("lost", "odd fields", "odd value", "token")


class WalkLives(Lives):
    table = COMMON
    slots = ("_passed", "_held_at")

    def __post_init__(self) -> None:
        super().__post_init__()
        for item in range(self.plan.tokens):
            self.say(item % self.plan.n, BOOTSTRAP, Message(messages.BEGIN, (item, 0)))

    def machine(self, peer: Peer, others: tuple[Peer, ...]) -> Walk:
        return Walk(self.plan, peer, others, NumberInputs([3 * peer + 1, 7], 1))

    def passer(self, participant: Any) -> Passer:
        return Passer(participant._machine.hop, participant.hopped)

    def wrong(self, message: Message) -> str | None:
        return check_token(self.plan, message)

    def odd(self, act: str, which: int, peer: Peer, other: Peer) -> None:
        walk = self.inner(peer)
        item, salt, five = which % self.plan.tokens, bytes(SALT_BYTES), pack_value(5)
        held = walk._held_at.get(item, 0)
        if act == "lost" and item in walk._passed:
            self.say(peer, BOOTSTRAP, Message(messages.LOST, (item, walk._passed[item][1])))
        elif act == "odd fields":
            self.give(peer, other, TOKEN + ODD_FIELDS[which % len(ODD_FIELDS)], salt + five)
        elif act == "odd value":
            value = ODD_VALUES[which % len(ODD_VALUES)]
            self.give(peer, other, pack_message(Message(messages.TOKEN, (item, held + 1))), salt + value)
        elif act == "token":
            message = pack_message(Message(messages.TOKEN, (item, held + 1 + which % 3)))
            self.give(peer, other, message, salt + five)


@given(
    n=st.integers(2, 4),
    tokens=st.integers(1, 3),
    order=st.sampled_from(["complete", "graph"]),
    steps=st.sampled_from([5, 40, 4000]),
    acts=st.lists(st.tuples(st.sampled_from((*ACTS, *ODD)), st.integers(0, 10**4)), max_size=150),
    calm=st.integers(0, 200),
)
def test_the_fast_path_leaves_what_the_long_way_leaves(
    n: int, tokens: int, order: str, steps: int, acts: list[tuple[str, int]], calm: int
) -> None:
    plan = WalkPlan(order=order, n=n, steps=steps, tokens=tokens, noise=NOISE, shape=())
    fast, long = (WalkLives(plan, fast).lived(calm, acts) for fast in (True, False))
    assert fast.toys.log == long.toys.log
    assert fast.toys.disks == long.toys.disks
    assert fast.known() == long.known()
