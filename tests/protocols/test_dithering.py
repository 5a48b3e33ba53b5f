from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.draws import DITHER, Mechanism
from p2pdp.mechanisms import dither
from p2pdp.protocols.dithering import REACH_BITS, DitheredModels, Reach
from p2pdp.protocols.gossip.sending import Sending
from p2pdp.topology.graphs import complete_graph
from tests.support.dithers import FORM, Draws, dithered
from tests.support.gossip_world import plan_of


def test_messages_of_a_round_share_a_dither_and_no_others_do() -> None:
    plan, draws = dithered(), Draws()
    sending = Sending(plan)
    one, other, again = (sending.values(0.25, 3, draws) for _ in range(3))
    assert len(set(one)) == 1
    assert len({*one, *other, *again, sending.dithered(0.25, draws)}) == 4
    assert draws.asked == [(DITHER, dither.SEED_SHAPE)], "one seed for all"
    far = np.array([sending.dithered(0.25, draws) for _ in range(400)]) - 0.25
    assert np.std(far) == pytest.approx(dither.SCALE * plan.fine, rel=0.2)


def test_another_life_sends_the_same_again() -> None:
    lives = [[Sending(dithered((3,))).dithered(np.ones(3), Draws()) for _ in range(2)] for _ in range(2)]
    np.testing.assert_array_equal(*lives)


@pytest.mark.parametrize("shape", [(), (3,), (600,), (2000,)])
@given(prepared=st.sets(st.integers(0, 9)))
def test_dithers_are_the_same_whenever_they_are_made_ready(shape: tuple[int, ...], prepared: set[int]) -> None:
    plan, lives = dithered(shape), []
    for asked in (prepared, set(), set(range(10))):
        dithers, draws, state = DitheredModels(plan), Draws(), np.zeros(shape) if shape else 0.0
        left = []
        for number in range(10):
            if number in asked:
                dithers.prepare()
                dithers.prepare()
            left.append(dithers.left(state, draws))
        assert draws.asked == [(DITHER, dither.SEED_SHAPE)], "asked for by what is sent alone"
        lives.append(left)
    np.testing.assert_array_equal(lives[0], lives[1])
    np.testing.assert_array_equal(lives[0], lives[2])


@given(state=st.floats(-8.0, 8.0), half=st.integers(-(2**50), 2**50), exponent=st.integers(-60, 3))
def test_what_walks_is_settled_and_dithered_in_one(state: float, half: int, exponent: int) -> None:
    """Bit for bit, halves of a step included; whatever was sent first, the next dither is another."""
    plan = dithered((3,), fine_exponent=exponent)
    sending, leaving = Sending(plan), DitheredModels(plan)
    for _ in range(2):
        whole = np.array([state * plan.fine * 2.0**40, half * plan.fine / 2.0, (half + 0.25) * plan.fine])
        np.testing.assert_array_equal(
            leaving.left(whole, Draws()), sending.dithered(sending.settled(whole), Draws()), strict=True
        )
    draws = Draws()
    assert DitheredModels(plan).left(FORM, draws) is FORM
    assert draws.asked == [(DITHER, dither.SEED_SHAPE)]
    assert DitheredModels(dithered((3,), dither=None)).left(whole, draws) is whole


@given(values=st.floats(1e-6, 1e6), sigma=st.floats(1e-6, 1e6), share=st.floats(-1.0, 1.0), seed=st.integers(0, 10**6))
def test_nothing_below_the_grid_travels_and_differences_are_exact(
    values: float, sigma: float, share: float, seed: int
) -> None:
    terms = Reach(values, sigma, 0.0, 10, 5).dithering(Mechanism("gaussian", 1.0))
    plan = dithered(**terms)
    sending, reach = Sending(plan), values + 12.0 * sigma
    assert reach <= 2.0**REACH_BITS * plan.fine < 2.0001 * reach
    state = sending.settled(share * reach)
    assert abs(state - share * reach) <= plan.fine / 2
    sent = sending.dithered(state, Draws())
    steps = Fraction(sent) / Fraction(plan.fine)
    assert steps.denominator == 1
    other = sending.settled(-state / (1 + seed % 7))
    assert Fraction(sent - other) == Fraction(sent) - Fraction(other)


def test_acceleration_and_noise_on_messages_take_room() -> None:
    gaussian, plain = Mechanism("gaussian", 1.0), Reach(1.0, 1.0, 0.0, 10, 16)
    exponents = [
        replace(plain, **terms).dithering(gaussian)["fine_exponent"]
        for terms in ({}, {"gamma": 1.5}, {"message_sigma": 1.0}, {"message_sigma": 1.0, "gamma": 1.5})
    ]
    assert exponents == [4 - 51, 6 - 51, 6 - 51, 9 - 51]
    assert plain.dithering(Mechanism("laplace", 1.0))["fine_exponent"] == 7 - 51
    shared = replace(plain, shared=2.0)
    assert shared.dithering(gaussian)["fine_exponent"] == 6 - 51, "1 + 12 sqrt(1 + 4), and 24 that is taken back"
    assert replace(shared, gamma=1.5).dithering(gaussian)["fine_exponent"] == 9 - 51


def plain_of(noise: Mechanism) -> dict[str, Any]:
    return Reach(1.0, 1.0, 0.0, 10, 16).dithering(noise)


def test_without_noise_of_users_nothing_is_dithered() -> None:
    assert plain_of(Mechanism("none", 0.0)) == {}
    sending, draws = Sending(plan_of(complete_graph(4), 4)), Draws()
    assert sending.values(0.1, 2, draws) == [0.1, 0.1]
    assert sending.settled(math.pi) == math.pi
    assert draws.asked == []
