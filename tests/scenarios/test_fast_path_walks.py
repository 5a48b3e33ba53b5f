"""Whatever happens to users of a walk, the fast path leaves what the long way leaves: effects, ledgers, knowledge.

Tokens, exclusions, orders, control frames, kills and restarts, loss, copies, and authentic frames that make no sense.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core import messages
from p2pdp.core.draws import Mechanism
from p2pdp.core.events import Exchanger, Passer
from p2pdp.core.ids import BOOTSTRAP, Peer
from p2pdp.core.messages import COMMON
from p2pdp.core.step import Message
from p2pdp.ledger.records import SALT_BYTES
from p2pdp.protocols.walk.sums import PROTOCOL as SUM
from p2pdp.protocols.walk.walking import VALUE_MAX, Walk, WalkPlan, check_token
from p2pdp.tasks.inputs import NumberInputs
from p2pdp.wire.codec import pack_message, pack_value
from tests.support.fast_lives import ACTS, Lives, watched_takes
from tests.support.learners import learning, prepared

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
ODD_VECTORS = (
    b"", b"\x04", b"\x05", pack_value(5), pack_value(1.5), pack_value(np.zeros(0)), pack_value(np.zeros(2)),
    pack_value(np.zeros(3)), pack_value(np.arange(2)), pack_value(np.arange(3)), pack_value([1, 2]),
    pack_value(np.array([VALUE_MAX + 1, 0])), pack_value(np.array([0, -VALUE_MAX - 1])),
    pack_value(np.array([0.0, 1e300])), pack_value(np.array([0.0, 0.0, 1e300])),
    b"\x05" + bytes(14) + b"\xf0\x7f", b"\x05" + bytes(14) + b"\xf8\x7f", b"\x04" + bytes(15),
)  # fmt: skip
ODD = ("lost", "odd fields", "odd value", "token")


class WalkLives(Lives):
    table = COMMON
    slots: ClassVar[tuple[str, ...]] = ("_passed", "_held_at", "_visits")
    five: ClassVar[Any] = 5
    odd_values: ClassVar[tuple[bytes, ...]] = ODD_VALUES

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
        item, salt, five = which % self.plan.tokens, bytes(SALT_BYTES), pack_value(self.five)
        held = walk._held_at.get(item, 0)
        if act == "lost" and item in walk._passed:
            self.say(peer, BOOTSTRAP, Message(messages.LOST, (item, walk._passed[item][1])))
        elif act == "odd fields":
            self.give(peer, other, TOKEN + ODD_FIELDS[which % len(ODD_FIELDS)], salt + five)
        elif act == "odd value":
            value = self.odd_values[which % len(self.odd_values)]
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


class VectorLives(WalkLives):
    """Walks whose tokens are vectors."""

    five = np.array([5, -5])
    odd_values = ODD_VECTORS

    def machine(self, peer: Peer, others: tuple[Peer, ...]) -> Any:
        return Walk(self.plan, peer, others, NumberInputs([np.array([3 * peer + 1, 7]), np.array([7, 0])], 2))

    def exchanger(self, machine: Any) -> Exchanger:
        found = SUM.fast_exchange(self.plan, machine)
        assert found is not None
        return found

    def passer(self, participant: Any) -> Any:
        found = self.exchanger(participant._machine)
        assert found.passes
        return found._replace(exchange=participant.noting(found.exchange))


class LearnerLives(VectorLives):
    """Walks whose tokens are models."""

    five = np.array([0.5, -0.5, 0.0])
    slots = (*WalkLives.slots, "_leaving")

    def machine(self, peer: Peer, others: tuple[Peer, ...]) -> Any:
        return RUN.protocol.machine(self.plan, peer, others, RUN.protocol.inputs(self.plan, DATA.user(peer))[0])

    def exchanger(self, machine: Any) -> Exchanger:
        found = RUN.protocol.fast_exchange(self.plan, machine)
        assert found is not None
        return found

    def wrong(self, message: Message) -> str | None:
        return RUN.protocol.check(self.plan, message)


ALL_ACTS = st.lists(st.tuples(st.sampled_from((*ACTS, *ODD)), st.integers(0, 10**4)), max_size=100)
RUN, DATA = prepared(learning(3, 400, task='kind = "mean"\nclip = 0.5', data="clip = [-60.0, 60.0]", target=""))


VECTORS = WalkPlan(order="complete", n=3, steps=400, tokens=1, noise=NOISE, shape=(2,))


def same_lives(made: Any, calm: int, acts: list[tuple[str, int]]) -> WalkLives:
    fast, long = (made(fast).lived(calm, acts) for fast in (True, False))
    assert fast.toys.log == long.toys.log
    assert fast.toys.disks == long.toys.disks
    assert fast.known() == long.known()
    return fast


@given(
    n=st.integers(2, 4),
    tokens=st.integers(1, 3),
    order=st.sampled_from(["complete", "graph", "ring"]),
    laps=st.sampled_from([1, 3, 100]),
    visits_max=st.sampled_from([None, 3]),
    acts=ALL_ACTS,
    calm=st.integers(0, 100),
)
def test_vectors_too(
    n: int, tokens: int, order: str, laps: int, visits_max: int | None, acts: list[tuple[str, int]], calm: int
) -> None:
    plan = WalkPlan(
        order=order, n=n, steps=laps * n, tokens=min(n, tokens), noise=NOISE, shape=(2,), visits_max=visits_max
    )
    same_lives(partial(VectorLives, plan), calm, acts)


@given(acts=ALL_ACTS, calm=st.integers(0, 100))
def test_models_too(acts: list[tuple[str, int]], calm: int) -> None:
    same_lives(partial(LearnerLives, RUN.plan), calm, acts)


@pytest.mark.parametrize("lives", [VectorLives, LearnerLives])
def test_what_would_be_refused_is_left_to_the_long_way(lives: type[VectorLives]) -> None:
    plan = RUN.plan if lives is LearnerLives else VECTORS
    lived = lives(plan)
    taken, visits = lived.exchanger(lived.inner(0)).exchange, lived.inner(0)._visits
    good = np.zeros(plan.shape, dtype=float if lives is LearnerLives else int)
    most: Any = getattr(plan, "model_max", VALUE_MAX)
    bad = [
        np.zeros(7),
        good.astype(str),
        np.full_like(good, most) + np.ones_like(good),
        good.astype(bool),
        np.full(plan.shape, np.nan),
    ]
    for sender, fields, value in (
        *((1, (0, 300), value) for value in bad),
        *((1, fields, good) for fields in ((-1, 300), (plan.tokens, 300), (0, 0), (0, plan.steps + 1))),
        (-1, (0, 300), good),
    ):
        assert taken(sender, fields, value, 0.0, None) is None  # type: ignore[arg-type]
        assert lived.wrong(Message(messages.TOKEN, fields, value)) is not None or sender < 0
    assert lived.inner(0)._visits == visits


@pytest.mark.parametrize("lives", [VectorLives, LearnerLives])
def test_most_vectors_take_it(lives: type[VectorLives]) -> None:
    with watched_takes() as taken:
        lived = lives(RUN.plan if lives is LearnerLives else VECTORS).lived(300, [])
    assert lived.toys.hosts[0].fault_counts == {}
    assert sum(taken) > 150
