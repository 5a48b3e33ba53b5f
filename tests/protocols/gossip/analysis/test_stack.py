from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.privacy.linear.modular import residue
from p2pdp.protocols.gossip.analysis.forms import Node
from p2pdp.protocols.gossip.analysis.stack import Stack


def node(nodes: dict[int, float], users: dict[int, float], draws: dict[tuple[int, int], float]) -> Node:
    return Node(
        {key: (value, residue(value)) for key, value in nodes.items()},
        {key: (value, residue(value)) for key, value in users.items()},
        {key: (value, residue(value)) for key, value in draws.items()},
    )


@given(st.integers(0, 2**32), st.integers(1, 15))
def test_layers_give_what_the_nodes_say(seed: int, count: int) -> None:
    """Values of random nodes, worked out one by one, against running the layers."""
    random = np.random.default_rng(seed)
    users, draws = random.normal(size=3), random.normal(size=(3, count + 1))
    nodes, values = [], []
    for number in range(count):
        parents = {int(at): 0.5 for at in random.permutation(number)[: random.integers(0, 4)]}
        own = {int(at): 0.25 for at in random.permutation(3)[: random.integers(0, 3)]}
        noise = {(int(random.integers(3)), number + 1): 1.0} if random.random() < 0.4 else {}
        nodes.append(node(parents, own, noise))
        total = sum(values[at] for at in parents) * 0.5 + sum(users[at] for at in own) * 0.25
        values.append(total + sum(draws[key] for key in noise))
    stack = Stack(3, nodes, 0.5)
    fresh = np.zeros(len(stack.draws))
    for key, place in stack.draws.items():
        fresh[place] = draws[key]
    layers = [users]
    for step in stack.layers.steps:
        moved = step.parents @ layers[-1]
        layers.append(moved if step.noise is None else moved + step.noise @ fresh)
    for number, value in enumerate(values):
        layer, place = stack.place(number)
        assert layers[layer][place] == pytest.approx(value)
    assert stack.layers.noises == len(stack.draws)
    assert stack.layers.deviation == 0.5


def test_residues_stand_beside_their_weights() -> None:
    stack = Stack(2, [node({}, {1: 1 / 3, 0: 2 / 3}, {}), node({0: 0.5}, {0: 0.5}, {(1, 4): 1.0})], 1.0)
    for step in stack.layers.steps:
        assert step.residues.tolist() == [residue(float(weight)) for weight in step.parents.data]
        assert step.noise is not None
        assert step.noise_residues is not None
        assert step.noise_residues.tolist() == [residue(float(weight)) for weight in step.noise.data]


def test_no_nodes_are_no_layers() -> None:
    assert Stack(4, [], 0.0).layers.steps == []
