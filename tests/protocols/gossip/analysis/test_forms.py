from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.values import LinearForm, Source, in_order
from p2pdp.privacy.linear.modular import MODULUS, residue
from p2pdp.protocols.gossip.analysis.forms import Node, Stack, collapsed, evaluated

STEP = 2.0**-10


def noised(user: int) -> LinearForm:
    return LinearForm.of(Source("input", user, 0)) + LinearForm.of(Source("draw", user, 0)) * STEP


def fresh(user: int, number: int) -> LinearForm:
    return LinearForm.of(Source("draw", user, number)) * STEP


def written_out(nodes: list[Node], place: int) -> dict[object, float]:
    """What a node comes to over users and draws."""
    node = nodes[place]
    found: dict[object, float] = {}
    for parent, (weight, _) in node.nodes.items():
        for key, value in written_out(nodes, parent).items():
            found[key] = found.get(key, 0.0) + weight * value
    for key, (weight, _) in [*node.users.items(), *node.draws.items()]:
        found[key] = found.get(key, 0.0) + weight
    return {key: value for key, value in found.items() if abs(value) > 1e-15}


def test_parents_come_first_and_each_form_once() -> None:
    one = noised(0)
    both = one + noised(1)
    last = both * 0.5 + one
    order = [id(form) for form in in_order([last, both, last])]
    assert len(order) == len(set(order))
    assert order.index(id(one)) < order.index(id(both)) < order.index(id(last))


@given(st.integers(0, 2**32), st.integers(2, 12))
def test_collapsed_forms_are_what_they_were(seed: int, rounds: int) -> None:
    """Random gossip among three users, with noise on some messages; each form against its expansion."""
    random = np.random.default_rng(seed)
    states = [noised(user) for user in range(3)]
    received = []
    for number in range(1, rounds):
        one, other = random.permutation(3)[:2].tolist()
        message = states[other] + fresh(other, number) if random.random() < 0.5 else states[other]
        received.append(message)
        states[one] = states[one] + (message - states[one]) * float(random.choice([0.25, 1 / 3, 0.5]))
    nodes, places = collapsed(received, STEP, noised=True)
    for form, place in zip(received, places, strict=True):
        expected: dict[object, float] = {}
        for source, weight in form.expand().items():
            if source.kind == "input":
                expected[source.peer] = weight
            elif source.number:
                expected[source.peer, source.number] = weight / STEP
        assert written_out(nodes, place) == pytest.approx(expected)
    assert not any(node.unknown for node in nodes)
    assert all(parent < place for place, node in enumerate(nodes) for parent in node.nodes)


def test_residues_go_with_weights() -> None:
    state = noised(0) + (noised(1) - noised(0)) * (1 / 3)
    nodes, (place,) = collapsed([state], STEP, noised=True)
    assert nodes[place].users == {0: (pytest.approx(2 / 3), residue(2 / 3)), 1: (pytest.approx(1 / 3), residue(1 / 3))}
    (node,), _ = collapsed([noised(0) + fresh(0, 1)], STEP, noised=True)
    assert node.draws == {(0, 1): (1.0, 1)}


def test_weights_that_cancel_exactly_leave_nothing() -> None:
    flow = noised(1) * (1 / 3)
    (node,), _ = collapsed([noised(0) + flow - flow], STEP, noised=True)
    assert node.users == {0: (1.0, 1)}


@pytest.mark.parametrize(
    "form",
    [
        LinearForm.of(Source("input", 0, 0)),
        LinearForm.of(Source("draw", 0, 0)),
        LinearForm.of(Source("input", 0, 0)) + LinearForm.of(Source("draw", 0, 0)) * (2 * STEP),
        noised(0) + LinearForm.of(Source("input", 1, 0)) * 1e-6,
        noised(0) + LinearForm.of(Source("unknown", 1, 3)),
        noised(0) + LinearForm.of(Source("input", 1, 1)),
    ],
    ids=["no noise", "no input", "other noise", "a bit of another", "unknown", "a second value"],
)
def test_what_cannot_be_accounted_for_is_unknown_and_so_is_what_depends_on_it(form: LinearForm) -> None:
    later = noised(2) + (form - noised(2)) * 0.5
    nodes, places = collapsed([noised(1), form, later], STEP, noised=True)
    assert [nodes[place].unknown for place in places] == [False, True, True]


def test_without_noise_inputs_stand_alone() -> None:
    (node,), _ = collapsed([LinearForm.of(Source("input", 0, 0))], STEP, noised=False)
    assert node.users == {0: (1.0, 1)}
    assert not node.unknown


def test_forms_are_evaluated_exactly() -> None:
    values = {Source("input", 0, 0): 5, Source("input", 1, 0): 7, Source("draw", 0, 0): 0, Source("draw", 1, 0): 0}
    state = noised(0) + (noised(1) - noised(0)) * (1 / 3)
    strange, one = state + LinearForm.of(Source("unknown", 0, 1)), noised(0)
    ordered = in_order([strange, state, one])
    (found,) = evaluated([state], ordered, values)
    assert found is not None
    assert found * 3 % MODULUS == 2 * 5 + 7
    assert evaluated([strange, one], ordered, values) == [None, 5]


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
