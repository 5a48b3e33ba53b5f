"""Worlds of learners by walks."""

from __future__ import annotations

from typing import Any

import numpy as np

from p2pdp.core.draws import DITHER
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.tasks.inputs import SymbolicInputs
from tests.support.walk_world import SeededDraws, SymbolDraws, World


class Scaled(SeededDraws):
    """Noise of a sigma's size; seeds of dithers as they are."""

    def noise(self, mechanism: Any, shape: Any) -> Any:
        if mechanism.name == DITHER:
            return np.random.default_rng(len(self.drawn)).integers(-(2**63), 2**63 - 1, size=shape)
        value = np.rint(np.random.default_rng([1, len(self.drawn), id(self) % 7]).normal(size=shape) * mechanism.scale)
        self.drawn.append((mechanism, value.astype(np.int64)))
        return value.astype(np.int64)


def world_of(run: RunPlan, data: Any, *, symbols: bool = False) -> World:
    made = {}
    for user in range(run.n):
        inputs: Any = SymbolicInputs(user, 1) if symbols else run.protocol.inputs(run.plan, data.user(user))[0]
        made[user] = run.machine(user, run.neighbours(user), inputs)
    draws = {user: SymbolDraws(user, user) if symbols else Scaled(user) for user in range(run.n)}
    world = World(run.plan, made, draws)
    world.begin()
    world.run()
    assert not world.faults
    return world
