"""Runs of gossip in the simulated world, against matrix products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from p2pdp.assembly.outcome import Outcome, estimate_of
from p2pdp.ledger.records import read
from p2pdp.protocols.gossip.analysis import outcome as averages
from p2pdp.protocols.gossip.analysis.outcome import error_of, truth_of
from p2pdp.replay.transcript import replay
from p2pdp.sim.faults import Crash
from p2pdp.topology.weights import sparse_weights
from tests.support.fault_worlds import prepared, world_of
from tests.support.gossip_specs import gossip
from tests.support.outcomes import outcome


def came_to(text: str, *crashes: Crash) -> tuple[Any, Outcome]:
    world = world_of(text, 1, *crashes)
    world.run_to_end()
    views = {peer: bytes(process.disk.view) for peer, process in world.processes.items()}
    return world, outcome(world.run, views, world.out)


def values_of(text: str) -> Any:
    _, data, _ = prepared(text)
    return np.array([float(data.user(user).rows[0]) for user in range(4)])


@pytest.mark.parametrize("publish", ["none", "one", "all"])
def test_estimate_truth_and_errors_are_those_of_the_rounds(publish: str) -> None:
    text = gossip(4, "ring", f'rounds = 3\npublish = "{publish}"')
    world, found = came_to(text)
    matrix = np.linalg.matrix_power(sparse_weights(world.run.graph, "metropolis").toarray(), 3)
    rows = {"none": matrix, "one": matrix[:1], "all": matrix.mean(axis=0, keepdims=True)}[publish]
    estimate = estimate_of(world.run, found)
    truth = truth_of(world.run, found, prepared(text)[1].user)
    values = values_of(text)
    assert estimate.standard_error == pytest.approx(math.sqrt(np.mean(np.sum(rows**2, axis=1))))
    assert truth == pytest.approx(values.mean() if publish != "one" else float(rows[0] @ values))
    finals = np.array([found.finals[user] for user in range(4)])
    if publish == "none":
        assert estimate.value is None
        assert error_of(world.run, found, None, truth) == pytest.approx(np.sqrt(np.mean((finals - truth) ** 2)))
    else:
        assert estimate.value == pytest.approx(finals[0] if publish == "one" else finals.mean())
        assert error_of(world.run, found, estimate.value, truth) == pytest.approx(estimate.value - truth)


@pytest.mark.parametrize("text", [gossip(4, "ring", "activations = 9", "randomized"), gossip(4, "path")])
def test_what_the_graph_says_is_what_a_replay_says(text: str) -> None:
    """The same run with a message noise of nothing to speak of is worked out over symbols."""
    world, found = came_to(text)
    other, replayed = came_to(text.replace("[noise]", "message_sigma = 1e-6\n[noise]"))
    if world.run.protocol.name == "gossip.average":
        np.testing.assert_allclose(found.rows, replayed.rows, atol=1e-9)
        np.testing.assert_allclose(found.variances, replayed.variances, atol=1e-6)
    assert other.run.plan.message_noise is not None
    np.testing.assert_allclose(np.sum(found.rows, axis=1), 1.0)


@pytest.mark.parametrize("accelerated", ["false", "true"])
def test_on_a_graph_that_changes_meetings_say_what_a_replay_says(accelerated: str) -> None:
    text = gossip(6, "erdos_renyi", f"rounds = 4\naccelerated = {accelerated}")
    world, found = came_to(text.replace("[gossip]", "changing = true\nprobability = 0.4\n[gossip]"))
    views = {peer: read(bytes(process.disk.view)) for peer, process in world.processes.items()}
    transcript = replay(world.run, views)
    rows, variances = averages._by_forms(world.run, [transcript.finals[user] for user in range(6)], 1.0)
    np.testing.assert_allclose(found.rows, rows, atol=1e-12)
    np.testing.assert_allclose(found.variances, variances, atol=1e-9)
    assert not np.allclose(found.rows, 1 / 6, atol=1e-3), "it has not come to its mean yet"


def test_who_is_out_has_no_result_and_what_it_gave_is_in_those_of_others() -> None:
    world, found = came_to(gossip(4, "ring"), Crash(2, at_record=20, down_s=None))
    assert world.out == [2]
    assert sorted(found.finals) == [0, 1, 3]
    assert found.rows.shape == (3, 4)
    assert found.rows[:, 2].max() > 0.0
    assert error_of(world.run, found, None, 0.5) is not None


def test_without_results_there_is_no_error() -> None:
    run = prepared(gossip(4, "ring"))[0]
    assert error_of(run, Outcome(), None, 0.5) is None
    assert error_of(run, Outcome(), None, None) is None
    assert estimate_of(run, Outcome()).value is None
