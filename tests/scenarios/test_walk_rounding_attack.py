"""The attack that dithers of models are for: rounding tells which noised gradients went into a model that came back.

Somebody who passed a model on and gets it back after a few hidden steps learns the sum of their noised gradients, and
nothing more by arithmetic of real numbers. But each hidden step rounded a float, and how depends on the gradients one
by one. The attacker has a list of what the hidden gradients may have been, all with the right sum, runs the machines'
float operations for each, and compares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from p2pdp.core.draws import DITHER, Mechanism, Shape
from p2pdp.core.messages import TOKEN
from p2pdp.core.step import Message
from p2pdp.core.values import snapped
from p2pdp.protocols.run_plan import RunPlan
from p2pdp.protocols.walk.analysis.iteration import steps_of
from tests.support.learners import learning, prepared

CANDIDATES = 2000


class Draws:
    """Noise of the mechanism's size, and seeds as they come."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.noised: list[Any] = []

    def noise(self, mechanism: Mechanism, shape: Shape) -> Any:
        if mechanism.name == DITHER:
            return self.random.integers(-(2**63), 2**63 - 1, size=shape)
        self.noised.append(np.rint(self.random.normal(0.0, mechanism.scale, shape)).astype(np.int64))
        return self.noised[-1]

    def choice(self, options: int) -> int:
        return int(self.random.integers(options))

    def meet(self, number: int, coin: float) -> list[int]:
        raise AssertionError


@dataclass
class Hidden:
    """The model that the attacker passes on, the noised gradients of the hidden steps, and the model that comes back.

    `dithers` are those of the models in between.
    """

    sent: Any
    noised: list[Any]
    dithers: list[Any]
    came: Any


def hidden(run: RunPlan, data: Any, steps: int, seed: int) -> Hidden:
    sent = value = snapped(np.random.default_rng(seed).normal(size=run.plan.shape), run.plan.fine)
    noised: list[Any] = []
    dithers: list[Any] = []
    for step in range(1, steps + 1):
        inputs = run.protocol.inputs(run.plan, data.user(step))[0]
        machine, draws = run.machine(step, None, inputs), Draws(100 * seed + step)
        (send,) = machine.receive(0, Message(TOKEN, (0, step + 1), value), 0.0, draws).sends
        whole = inputs.gradient(value, 0) / run.plan.descent.step  # type: ignore[attr-defined]
        noised.append(whole.astype(np.int64) + draws.noised[0])
        dithers.append(send.message.value - stepped(run, value, noised[-1]))
        value = send.message.value
    return Hidden(sent, noised, dithers[:-1], value)


def stepped(run: RunPlan, model: Any, noised: Any) -> Any:
    """One step, as machines take it, before its dither."""
    plan = run.plan
    moved = plan.descent.moved(model, noised * plan.descent.step, plan.rate)
    return moved if plan.dither is None else snapped(moved, plan.fine)


def replayed(run: RunPlan, seen: Hidden, noised: list[Any]) -> Any:
    """What the last of these steps came to; the attacker is given the dithers in between."""
    model = seen.sent
    for one, dither in zip(noised, seen.dithers, strict=False):
        model = stepped(run, model, one) + dither
    return stepped(run, model, noised[-1])


def candidates(noised: list[Any], scale: float, seed: int) -> list[list[Any]]:
    """The truth first, then others that come to the same sum, no less likely than the truth is."""
    random = np.random.default_rng(seed)
    found = [noised]
    for _ in range(CANDIDATES - 1):
        moves = [np.rint(random.normal(0.0, scale, noised[0].shape)).astype(np.int64) for _ in noised[1:]]
        last = noised[-1] - sum(moves)
        found.append([*(one + move for one, move in zip(noised, moves, strict=False)), last])
    return found


@pytest.fixture(scope="module")
def case() -> tuple[RunPlan, Any]:
    return prepared(learning(5, 40))


@pytest.mark.parametrize("steps", [2, 3])
def test_without_dithers_the_truth_is_found_among_thousands(case: tuple[RunPlan, Any], steps: int) -> None:
    """Models of a few numbers come back several times; here one that comes back eight times."""
    run, data = case
    run = replace(run, plan=replace(run.plan, dither=None))
    left = np.full(CANDIDATES, True)
    for seed in range(8):
        seen = hidden(run, data, steps, seed)
        tried = candidates(seen.noised, run.plan.noise.scale, seed)
        left &= np.array([np.array_equal(replayed(run, seen, one), seen.came) for one in tried])
    assert left[0]
    assert left.sum() == 1


@pytest.mark.parametrize("steps", [2, 3])
def test_with_dithers_all_are_as_likely(case: tuple[RunPlan, Any], steps: int) -> None:
    """Also for an attacker who knows the dithers of hidden models, and the sum, which the last dither hides."""
    run, data = case
    plan = run.plan
    deviation = plan.dither.scale * plan.fine
    for seed in range(8):
        seen = hidden(run, data, steps, seed)
        logs = []
        for tried in candidates(seen.noised, plan.noise.scale, seed):
            away = (seen.came - replayed(run, seen, tried)) / deviation
            logs.append(-float(away @ away) / 2.0)
        shift = 2.0 * steps * steps_of(run).message / deviation
        assert 0.0 < max(logs) - min(logs) < 8.0 * shift < 1e-3
