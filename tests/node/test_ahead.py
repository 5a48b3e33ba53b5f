"""Draws ahead: each is given once, and those of other terms are drawn when they are asked for."""

from __future__ import annotations

from typing import Any

import pytest

from p2pdp.core.draws import Mechanism, Shape
from p2pdp.node.ahead import AheadSampler

NOISE, OTHER = Mechanism("gaussian", 4.0), Mechanism("laplace", 4.0)


class Counting:
    """Gives numbers in order, so that a draw which is given twice is seen."""

    name = "counting"

    def __init__(self) -> None:
        self.made = 0

    def batch(self, mechanism: Mechanism, shape: Shape, count: int) -> list[Any]:
        if mechanism.scale < 0:
            raise ValueError("no such scale")
        self.made += 1
        return [(mechanism.name, shape, count, self.made)]

    def choice(self, options: int) -> int:
        return options - 1


def test_what_was_drawn_ahead_is_given_once() -> None:
    inside = Counting()
    sampler = AheadSampler(inside)
    sampler.ahead(NOISE, (5,), 1)
    sampler.ahead(NOISE, (5,), 1)
    assert sampler.batch(NOISE, (5,), 1) == [("gaussian", (5,), 1, 1)]
    assert sampler.batch(NOISE, (5,), 1) == [("gaussian", (5,), 1, 2)]
    assert (inside.made, sampler.choice(7), sampler.name) == (2, 6, "counting")
    sampler.close()


def test_other_terms_are_drawn_when_they_are_asked_for() -> None:
    sampler = AheadSampler(Counting())
    sampler.ahead(NOISE, (5,), 1)
    for terms in ((OTHER, (5,), 1), (NOISE, (6,), 1), (NOISE, (5,), 2)):
        (found,) = sampler.batch(*terms)
        assert found[:3] == (terms[0].name, *terms[1:])
    assert sampler.batch(NOISE, (5,), 1)[0][:3] == ("gaussian", (5,), 1)
    sampler.close()


def test_an_error_is_raised_where_the_draw_is_asked_for() -> None:
    sampler = AheadSampler(Counting())
    wrong = Mechanism("gaussian", -1.0)
    sampler.ahead(wrong, (5,), 1)
    with pytest.raises(ValueError, match="scale"):
        sampler.batch(wrong, (5,), 1)
    sampler.close()
