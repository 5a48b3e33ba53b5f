"""The pass over layers agrees with whitening all rows at once, and takes time proportional to the rounds."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.privacy.linear.filter import filter_is_quicker, filtered_span, seen_draws_are_fresh
from p2pdp.privacy.linear.layers import Layers, View, layered_span
from tests.support.gossip_layers import layer, repaired
from tests.support.gossip_matrices import graph


def random_layers(seed: int, depth: int, deviation: float) -> tuple[Layers, int]:
    """Layers of random widths and weights, some of whose draws are used in several layers and values."""
    random = np.random.default_rng(seed)
    widths = [4, *random.integers(2, 6, depth).tolist()]
    draws = 3 * depth
    steps = []
    for before, here in pairwise(widths):
        noise = np.where(random.random((here, draws)) < 0.2, random.normal(size=(here, draws)), 0.0)
        steps.append(layer(random.normal(size=(here, before)) / 2.0, noise))
    return Layers(4, steps, draws, deviation), draws


@given(st.integers(0, 10_000), st.integers(1, 5), st.sampled_from([1.0, 0.1, 0.01]), st.data())
def test_it_agrees_with_all_rows_at_once(seed: int, depth: int, deviation: float, data: Any) -> None:
    layers, draws = random_layers(seed, depth, deviation)
    widths = [4, *(step.parents.shape[0] for step in layers.steps)]
    seen = {
        number: data.draw(st.lists(st.integers(0, width - 1), unique=True, max_size=3))
        for number, width in enumerate(widths)
    }
    members = data.draw(st.lists(st.integers(0, 3), unique=True, max_size=2))
    drawn = data.draw(st.lists(st.integers(0, draws - 1), unique=True, max_size=4))
    spread = None
    if seed % 2:
        root = np.random.default_rng(seed).normal(size=(4, 4))
        spread = np.eye(4) + root @ root.T
        spread[members] = spread[:, members] = 0.0
        spread[members, members] = 1.0
    view = View({number: places for number, places in seen.items() if places}, members, drawn, spread)
    one, other = filtered_span(layers, view), layered_span(layers, view)
    assert one.rows == other.rows
    if min(one.kept, other.kept) > 1e-4:  # otherwise it is a matter of rounding what counts as a row
        assert one.rank == other.rank
        assert one.leaks == pytest.approx(other.leaks, abs=1e-7)


@pytest.mark.parametrize("sigma", [1.0, 0.05, 1e-3])
def test_it_agrees_on_gossip_with_noise_on_each_message(sigma: float) -> None:
    layers, views, _ = repaired(graph("ring", 6), 6, sigma)
    for view in views:
        one, other = filtered_span(layers, view), layered_span(layers, view)
        assert one.leaks == pytest.approx(other.leaks, rel=1e-8, abs=1e-12)
        assert one.rank == other.rank == one.rows
        assert seen_draws_are_fresh(layers, view)


def test_an_observer_that_lacks_no_draw_proves_nothing() -> None:
    layers, views, _ = repaired(graph("ring", 6), 3, 0.1)
    assert not seen_draws_are_fresh(layers, View(views[0].seen, views[0].members, range(layers.noises)))


def test_the_pass_is_taken_where_many_rows_were_seen() -> None:
    layers, views, _ = repaired(graph("ring", 6), 100, 0.05)
    assert filter_is_quicker(layers, views[0])
    layers, views, _ = repaired(graph("complete", 30), 2, 0.05)
    assert not filter_is_quicker(layers, views[0])
