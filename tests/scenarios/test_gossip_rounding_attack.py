"""The attack that dithers are for: the rounding of a star's centre tells a leaf which of the other two has which value.

A leaf of a star of 4 knows the centre's noised value and the sum of those of the other two leaves, by linear algebra,
and nothing more. But the centre's states are floats, and how they were rounded depends on each of the two. The attacker
runs the float arithmetic of all machines for each candidate, a step of the noise's grid apart, and compares.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2pdp.core.draws import Mechanism
from p2pdp.core.values import snapped
from p2pdp.mechanisms import dither
from p2pdp.protocols.dithering import Reach
from p2pdp.protocols.gossip.plan import GossipPlan
from p2pdp.topology.graphs import graph_of_edges
from tests.support.gossip_world import GossipWorld, plan_of

STAR = graph_of_edges(4, [(0, 1), (0, 2), (0, 3)])
GAUSSIAN = Mechanism("gaussian", 2.0**30)
ROUNDS = 150
WINDOW = 2**15


class Tapped(GossipWorld):
    """Keeps what everybody sent, and the clean state behind it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.told: dict[int, list[float]] = {user: [] for user in range(4)}
        self.clean: dict[int, list[float]] = {user: [] for user in range(4)}
        for user, machine in enumerate(self.machines):
            self._tap(user, machine._sending)

    def _tap(self, user: int, sending: Any) -> None:
        values = sending.values

        def kept(state: Any, count: int, draws: Any) -> Any:
            found = values(state, count, draws)
            self.clean[user].append(state)
            self.told[user].append(found[0])
            return found

        sending.values = kept


def run(*, dithered: bool, seed: int) -> Tapped:
    terms = Reach(1.0, 1.0, 0.0, ROUNDS, 4).dithering(GAUSSIAN) if dithered else {}
    plan = plan_of(STAR, ROUNDS, weights="lazy", noise=GAUSSIAN, grid_exponent=-30, **terms)
    world = Tapped(plan, STAR, [0.25, 0.5, 0.75, 0.0], seed=seed)
    world.start()
    world.run()
    return world


def states_of_the_centre(world: Tapped, second: Any, third: Any) -> Any:
    """What the centre's machine comes to in each round, a column a candidate, by the very operations of the machines.

    The attacker is given all messages of its own and of the centre, and the dithers of the other leaves' messages.
    """
    plan: GossipPlan = world.plan
    weight = plan.weight(1, 3)

    def settled(value: Any) -> Any:
        return value if plan.dither is None else snapped(value, plan.fine)

    centre, leaves = np.full_like(second, world.clean[0][0]), [second, third]
    found = []
    for number in range(ROUNDS):
        found.append(centre)
        added = [world.told[leaf][number] - world.clean[leaf][number] for leaf in (2, 3)]
        came = [world.told[1][number], *(leaf + more for leaf, more in zip(leaves, added, strict=True))]
        moved = centre
        for value in came:
            moved = moved + (value - centre) * weight
        leaves = [settled(leaf + (world.told[0][number] - leaf) * weight) for leaf in leaves]
        centre = settled(moved)
    return np.array(found)


def candidates(world: Tapped) -> tuple[Any, Any]:
    """The truth in the middle of others that have the same sum."""
    steps = np.arange(-WINDOW, WINDOW + 1) * world.plan.step
    return world.clean[2][0] + steps, world.clean[3][0] - steps


@pytest.mark.parametrize("seed", [1, 2])
def test_without_dither_the_rounding_of_states_leaves_one_candidate(seed: int) -> None:
    world = run(dithered=False, seed=seed)
    states = states_of_the_centre(world, *candidates(world))
    left = np.all(states == np.array(world.told[0])[:, None], axis=0)
    assert np.flatnonzero(left).tolist() == [WINDOW], "one of 65,537: which noised value the other leaf has"


@pytest.mark.parametrize("seed", [1, 2])
def test_with_dither_all_candidates_stay_equally_likely(seed: int) -> None:
    world = run(dithered=True, seed=seed)
    deviation = dither.SCALE * world.plan.fine
    states = states_of_the_centre(world, *candidates(world))
    assert np.all(states[:, WINDOW] == world.clean[0]), "the attacker's arithmetic is the machine's"
    assert np.ptp(states, axis=1).max() > 0.0, "states still depend on the candidate"
    off = (np.array(world.told[0])[:, None] - states) / deviation
    likelihood = -0.5 * (off**2).sum(axis=0)
    assert np.ptp(likelihood) < 1e-4
    assert np.all(np.abs(states - states[:, WINDOW : WINDOW + 1]) < 2**4 * world.plan.fine)
