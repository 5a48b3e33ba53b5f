from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from p2pdp.core.draws import DITHER, Mechanism
from p2pdp.mechanisms import dither
from p2pdp.protocols.gossip.sending import PairNoise, Sending
from p2pdp.topology.graphs import complete_graph
from tests.support.dithers import FORM, Draws, dithered
from tests.support.gossip_world import Noise, plan_of

PAIRS: dict[str, Any] = {"pair_noise": Mechanism("gaussian", 2.0**22), "grid_exponent": -20}


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


def test_noise_of_pairs_left_over_follows_what_becomes_of_it() -> None:
    plan = plan_of(complete_graph(3), 3, **PAIRS)
    draws = Noise(0, None, 1, 5)
    drawn = [draws.pair(2, number, PAIRS["pair_noise"], ()) * plan.step for number in range(4)]
    pairs = PairNoise(plan, 1)
    assert pairs.added_to(0.5, [2], 0, draws) == 0.5 + drawn[0]
    assert pairs.added_to(0.0, [2], 1, draws, weight=-0.5, kept=0.25) == drawn[1]
    assert pairs.left_over(2) == pytest.approx(0.25 * drawn[0] - 0.5 * drawn[1])
    assert pairs.left_over(2) is None
    pairs.added_to(0.0, [2], 0, draws)
    pairs.counted(2)
    assert pairs.left_over(2) is None, "what counted has the other end"
    pairs.added_to(0.0, [2], 0, draws)
    pairs.counted(2)
    pairs.added_to(0.0, [2], 1, draws, kept=0.5)
    pairs.uncounted(2)
    assert pairs.left_over(2) == pytest.approx(0.5 * drawn[0] + drawn[1])
    pairs.added_to(0.0, [2], 2, draws)
    pairs.counted(2)
    pairs.counted(2)
    pairs.uncounted(2)
    assert pairs.left_over(2) is None, "the state before the last one counts"
    other = PairNoise(plan, 2)
    assert other.added_to(0.0, [1], 0, Noise(0, None, 2, 5)) == -drawn[0], "the higher-numbered end subtracts it"
    assert repr(other) == "PairNoise(user=2)"
