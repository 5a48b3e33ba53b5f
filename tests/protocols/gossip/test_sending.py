from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from p2pdp.core.draws import DITHER, Mechanism
from p2pdp.mechanisms import dither
from p2pdp.protocols.gossip.sending import Sending
from tests.support.dithers import FORM, Draws, dithered


def test_noise_on_messages_comes_on_top() -> None:
    plan, draws = dithered(message_noise=Mechanism("gaussian", 2.0**30)), Draws()
    sending = Sending(plan)
    sent = sending.values(0.25, 2, draws)
    assert len(set(sent)) == 2, "each has a dither of its own"
    for value in sent:
        assert 0 < abs(value - 0.25 - (2**29 + 1) * plan.step) < 8 * dither.SCALE * plan.fine
        assert Fraction(value) / Fraction(plan.fine) % 1 == 0
    assert draws.asked == [(DITHER, (4,)), *[("gaussian", ())] * 2]
    published = sending.dithered(0.5, draws)
    assert published != 0.5
    assert abs(published - 0.5) < 8 * dither.SCALE * plan.fine


def test_noise_on_messages_finer_than_states_is_brought_onto_their_grid() -> None:
    plan = replace(dithered(message_noise=Mechanism("gaussian", 2.0**30)), grid_exponent=-60)
    (sent,) = Sending(plan).values(0.5, 1, Draws())
    assert sent != 0.5
    assert Fraction(sent) / Fraction(plan.fine) % 1 == 0


def test_forms_stay_as_they_are_and_the_seed_is_drawn_all_the_same() -> None:
    draws = Draws()
    sending = Sending(dithered())
    assert sending.settled(FORM) is FORM
    assert sending.values(FORM, 2, draws)[1] is FORM
    assert draws.asked == [(DITHER, (4,))]
    assert "values" not in repr(sending)
