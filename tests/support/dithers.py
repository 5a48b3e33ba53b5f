"""Draws that are dithered, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from p2pdp.core.draws import DITHER, Mechanism, Shape
from p2pdp.core.values import LinearForm, Source
from p2pdp.protocols.dithering import Reach
from p2pdp.protocols.gossip.plan import GossipPlan
from p2pdp.topology.graphs import complete_graph
from tests.support.gossip_world import plan_of
from tests.support.pairs import NoPairs

FORM = LinearForm.of(Source("input", 0, 0))


class Draws(NoPairs):
    def __init__(self) -> None:
        self.asked: list[tuple[str, Shape]] = []

    def noise(self, mechanism: Mechanism, shape: Shape) -> Any:
        self.asked.append((mechanism.name, shape))
        return np.arange(4) if mechanism.name == DITHER else 2**29 + 1

    def choice(self, options: int) -> int:
        raise AssertionError

    def meet(self, number: int, coin: float) -> list[int]:
        raise AssertionError


def dithered(shape: Shape = (), **more: Any) -> GossipPlan:
    reach = Reach(values=1.0, sigma=1.0, message_sigma=0.0, rounds=4, n=4).dithering(Mechanism("gaussian", 1.0))
    return plan_of(complete_graph(4), 4, shape=shape, grid_exponent=-30, **(reach | more))
