"""The fast path of gossip beside the machines: the same numbers from the same draws, and the same standard errors."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import p2pdp
from p2pdp.assembly.outcome import error_of, estimate_of, truth_of
from p2pdp.core.draws import Mechanism
from p2pdp.files.data import load_data
from p2pdp.files.spec import parse_spec, spec_digest
from p2pdp.ledger.records import read
from p2pdp.protocols.gossip.analysis import fast as module
from p2pdp.protocols.gossip.analysis.fast import (
    Pairs,
    Rounds,
    fast_average,
    fast_gossip_descent,
    fixed_rounds,
    standard_error_of,
)
from p2pdp.protocols.gossip.analysis.fast import matrices_of as drawn_matrices_of
from p2pdp.protocols.gossip.analysis.outcome import matrices_of
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.sim.world import World
from p2pdp.tasks.descending import Population
from tests.support.gossip_learners import LINEAR, MEAN, gossip_learning
from tests.support.gossip_world import NO_NOISE, GossipWorld, room
from tests.support.gossips import gossip
from tests.support.learners import prepared as learners
from tests.support.outcomes import outcome

PAIRS: dict[str, Any] = {"protocol": "randomized"}
CLEAN = {
    "ring": gossip(7, "ring", "rounds = 5"),
    "accelerated": gossip(16, "hypercube", "rounds = 6\naccelerated = true", extra='weights = "lazy"'),
    "auto": gossip(9, "star", 'rounds = "auto"\naccelerated = true'),
    "one published": gossip(12, "grid", 'rounds = 3\npublish = "one"', extra="rows = 3\ncolumns = 4"),
    "all published": gossip(6, "path", 'rounds = 3\npublish = "all"'),
    "laplace": gossip(5, "complete", "rounds = 1", noise='mechanism = "laplace"\nsigma = 2.0'),
    "no noise": gossip(5, "ring", "rounds = 2", noise='mechanism = "none"'),
    "one user": gossip(1, "complete", "rounds = 2"),
    "pairs": gossip(8, "ring", "activations = 60", **PAIRS),
    "pairs, one published": gossip(9, "star", 'activations = 40\npublish = "one"', **PAIRS),
    "one user without a pair": gossip(1, "complete", "activations = 3", **PAIRS),
}
SHARED = 'mechanism = "gaussian"\nsigma = 2.0\npair_sigma = 7.0'
NOISED = {
    "messages": gossip(6, "ring", "rounds = 4\nmessage_sigma = 0.5"),
    "accelerated": gossip(9, "star", "rounds = 4\nmessage_sigma = 0.7\naccelerated = true"),
    "all published": gossip(6, "path", 'rounds = 4\naccelerated = true\nmessage_sigma = 0.5\npublish = "all"'),
    "pairs": gossip(6, "complete", "activations = 20\nmessage_sigma = 0.5", **PAIRS),
    "pairs, all published": gossip(5, "ring", 'activations = 9\nmessage_sigma = 0.5\npublish = "all"', **PAIRS),
    "shared": gossip(7, "star", "rounds = 5", noise=SHARED),
    "shared, accelerated": gossip(9, "grid", "rounds = 5\naccelerated = true", noise=SHARED, extra="rows = 3"),
    "shared, published": gossip(6, "path", 'rounds = 4\nmessage_sigma = 0.5\npublish = "one"', noise=SHARED),
    "shared, pairs": gossip(6, "ring", "activations = 20", noise=SHARED, **PAIRS),
    "shared, pairs, published": gossip(6, "ring", 'activations = 20\npublish = "all"', noise=SHARED, **PAIRS),
}


def prepared(text: str, *overrides: str) -> tuple[RunPlan, Any]:
    spec = parse_spec(text, None, overrides)
    data = load_data(spec, spec.run.nodes)
    return plan_run(spec, spec.run.nodes, data.dimensions, sampler="seeded"), data.user


def in_the_world(run: RunPlan, rows: Any, seed: int) -> Any:
    world = World(run, rows, "", spec_digest(run.spec), seed)
    world.run_to_end()
    return outcome(run, {peer: bytes(process.disk.view) for peer, process in world.processes.items()}, [])


@pytest.mark.parametrize("name", CLEAN)
def test_a_seed_gives_what_it_gives_in_the_world(name: str) -> None:
    run, rows = prepared(CLEAN[name])
    for seed in (1, 2):
        slow, fast = in_the_world(run, rows, seed), fast_average(run, rows, seed)
        assert sorted(fast.finals) == sorted(slow.finals)
        for user, value in fast.finals.items():
            assert type(value) is float
            assert value == pytest.approx(slow.finals[user], abs=room(run.plan))
        assert fast.counted == slow.counted
        numbers = [
            (estimate_of(run, one).value, estimate_of(run, one).standard_error, truth_of(run, one, rows))
            for one in (slow, fast)
        ]
        assert numbers[1] == pytest.approx(numbers[0], abs=room(run.plan))
        errors = [error_of(run, one, *(number[::2])) for one, number in zip((slow, fast), numbers, strict=True)]
        assert errors[1] == pytest.approx(errors[0], abs=room(run.plan))


def test_vectors_are_averaged_coordinate_by_coordinate(tmp_path: Any) -> None:
    (tmp_path / "rows.csv").write_text("\n".join(f"0.{user},0.{9 - user}" for user in range(6)))
    text = gossip(6, "ring", 'rounds = 3\npublish = "one"').replace('"uniform"', '"csv"\npath = "rows.csv"')
    spec = parse_spec(text.replace("seed = 1\n", ""), tmp_path)
    data = load_data(spec, 6)
    run = plan_run(spec, 6, data.dimensions, sampler="seeded")
    slow, fast = in_the_world(run, data.user, 3), fast_average(run, data.user, 3)
    for user in range(6):
        np.testing.assert_allclose(fast.finals[user], slow.finals[user], rtol=0, atol=room(run.plan))
    assert estimate_of(run, fast).standard_error == pytest.approx(estimate_of(run, slow).standard_error)


@pytest.mark.parametrize("name", NOISED)
def test_with_noise_on_messages_standard_errors_are_those_of_the_forms(name: str) -> None:
    run, rows = prepared(NOISED[name])
    slow, fast = in_the_world(run, rows, 1), fast_average(run, rows, 1)
    assert fast.deviation == pytest.approx(slow.deviation, rel=1e-12)
    if fast.shares is not None:
        np.testing.assert_allclose(fast.shares, slow.shares, atol=1e-12)
    assert fast.finals != fast_average(run, rows, 2).finals
    assert fast.finals == fast_average(run, rows, 1).finals


@pytest.mark.parametrize("name", ["shared", "shared, accelerated", "shared, pairs"])
def test_noise_of_pairs_hides_values_and_is_averaged_away(name: str) -> None:
    text = NOISED[name].replace("rounds = 5", "rounds = 200").replace("activations = 20", "activations = 600")
    run, rows = prepared(text)
    found = fast_average(run, rows, 1)
    assert found.deviation == pytest.approx(2.0 / np.sqrt(run.n), rel=1e-3)
    assert np.ptp(list(found.finals.values())) < 1e-3
    few = fast_average(prepared(NOISED[name])[0], rows, 1)
    assert few.deviation is not None
    assert few.deviation > 1.1 * (found.deviation or 0.0)


class Given:
    """Draws on messages that are known beforehand, in the order in which a machine makes them."""

    def __init__(self, drawn: list[int]) -> None:
        self._drawn = iter(drawn)

    def noise(self, mechanism: Mechanism, shape: tuple[int, ...]) -> int:
        return next(self._drawn)


@pytest.mark.parametrize("name", ["messages", "accelerated", "all published"])
def test_the_same_noise_on_messages_gives_what_the_machines_come_to(name: str) -> None:
    run, _ = prepared(NOISED[name])
    plan, graph, random = replace(run.plan, noise=NO_NOISE, dither=None), run.graph, np.random.default_rng(1)
    assert graph is not None
    edges = [(to, sender) for to in range(run.n) for sender in graph.neighbours[to]]
    drawn = random.integers(-(2**30), 2**30, (plan.rounds, len(edges)))
    values = random.random(run.n)
    world = GossipWorld(plan, graph, values.tolist())
    for user in range(run.n):
        places = [edges.index((to, user)) for to in graph.neighbours[user]]
        world.draws[user] = Given(drawn[:, places].reshape(-1).tolist())  # type: ignore[call-overload]
    world.start()
    world.run()
    rounds = iter(drawn)
    found = fixed_rounds(replace(run, plan=plan)).results(
        values[:, None], lambda count: next(rounds).reshape(count, 1) * plan.step
    )
    assert found[:, 0] == pytest.approx([world.final[user] for user in range(run.n)], abs=1e-12)


def test_pairs_pass_on_the_noise_of_their_messages() -> None:
    """Sums of squares of what single draws come to are what `shares` says of all of them."""
    run, _ = prepared(NOISED["pairs"])
    pairs = Pairs(run, [(0, 1), (2, 3), (1, 2), (0, 1), (4, 5), (3, 4)])
    zero, responses = np.zeros((6, 1)), []
    for draw in range(12):
        numbers = iter(np.eye(12)[draw])
        responses.append(pairs.results(zero, lambda count, n=numbers: np.array([next(n) for _ in range(count)])))  # type: ignore[misc]
    assert np.all(np.abs(responses).sum(axis=(1, 2)) > 0.0)
    assert pairs.of_one_user()[1] == pytest.approx(np.sum(np.square(responses)) / 6)
    first = np.eye(6)[:, :1]
    assert pairs.shares(first)[2] == pytest.approx(np.sum(np.square(np.array(responses)[:, 0])))


def test_the_order_of_activations_is_kept() -> None:
    run, _ = prepared(CLEAN["pairs"])
    random = np.random.default_rng(3)
    activations = [tuple(sorted(random.choice(8, 2, replace=False).tolist())) for _ in range(200)]
    values = random.random(8)
    expected = values.copy()
    for one, other in activations:
        expected[[one, other]] = (expected[one] + expected[other]) / 2
    assert Pairs(run, activations).results(values[:, None], None)[:, 0] == pytest.approx(expected, abs=1e-15)


def test_the_standard_error_is_left_out_where_nobody_reads_it() -> None:
    run, rows = prepared(CLEAN["ring"])
    assert fast_average(run, rows, 1, with_error=False).deviation is None
    published, rows = prepared(CLEAN["one published"])
    assert fast_average(published, rows, 1, with_error=False).deviation is not None


@pytest.mark.parametrize("name", ["ring", "pairs"])
def test_the_standard_error_is_left_out_where_it_takes_too_long(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SPECTRUM_MAX", 1)
    monkeypatch.setattr(module, "_WORK_MAX", 1)
    run, rows = prepared(CLEAN[name])
    assert fast_average(run, rows, 1).deviation is None
    assert standard_error_of(run) is None


CHANGING = gossip(9, "erdos_renyi", "rounds = 5\naccelerated = true{}", extra="changing = true\nprobability = 0.3")


@pytest.mark.parametrize("terms", ["", '\npublish = "one"'])
def test_on_the_graphs_that_came_rounds_are_those_of_the_world(terms: str) -> None:
    """Coins are other ones here, so who met whom is taken from the world's ledgers."""
    run, rows = prepared(CHANGING.format(terms))
    world = World(run, rows, "", spec_digest(run.spec), 4)
    world.run_to_end()
    views = {peer: bytes(process.disk.view) for peer, process in world.processes.items()}
    slow = outcome(run, views, [])
    matrices = matrices_of(run, {peer: read(view) for peer, view in views.items()})
    begun = np.array([module._begin(run, rows, user, 4) for user in range(9)])
    rounds = Rounds(run, matrices)
    results = rounds.results(begun[:, None], None)[:, 0]
    assert results == pytest.approx([slow.finals[user] for user in range(9)], abs=room(run.plan))
    shares, deviation = module.shares_and_error(run, rounds)
    assert deviation == pytest.approx(slow.deviation, rel=1e-9)
    if terms:
        np.testing.assert_allclose(shares, slow.shares, atol=1e-12)


def test_changing_graphs_are_drawn_as_often_as_coins_say() -> None:
    run, rows = prepared(gossip(40, "erdos_renyi", "rounds = 50", extra="changing = true\nprobability = 0.1"))
    found = fast_average(run, rows, 1)
    expected = 50 * 40 * 39 * 0.1
    met = 40 * 39 / 2 * (1 - 0.9**50)
    assert abs(found.messages - expected - met) < 5 * 2 * np.sqrt(expected / 2 * 0.9)
    assert found.deviation is not None
    assert found.deviation == pytest.approx(2.0 / np.sqrt(40), rel=0.02), "after fifty rounds all have met"
    assert fast_average(run, rows, 1).finals == found.finals
    assert fast_average(run, rows, 2).finals != found.finals


@pytest.mark.parametrize("probability", [0.0001, 1.0])
def test_nobody_or_everybody_meets(probability: float) -> None:
    run, rows = prepared(gossip(3, "erdos_renyi", "rounds = 2", extra=f"changing = true\nprobability = {probability}"))
    found = fast_average(run, rows, 1)
    assert found.messages == (12 + 3 if probability == 1.0 else 0), "exchanges, and one in the end for each pair"
    assert found.deviation == pytest.approx(2.0 / np.sqrt(3) if probability == 1.0 else 2.0)


BATCHES = 'kind = "logistic_regression"\nclip = 0.5\nrate = 0.4\nrounds = 4\nbatch = 2\nschedule = "inverse"'
SPECS = {
    "ring": gossip_learning(),
    "accelerated": gossip_learning(6, "star", "rounds = 3\naccelerated = true", task=LINEAR),
    "published": gossip_learning(4, "complete", 'rounds = 1\npublish = "all"', task=BATCHES),
    "one": gossip_learning(4, "path", 'rounds = 2\npublish = "one"', task=MEAN),
    "quiet": gossip_learning(4, "path", sigma=None),
    "alone": gossip_learning(1, "complete"),
}


def fast(text: str, seed: int = 3) -> Any:
    run, data = learners(text)
    return fast_gossip_descent(run, Population(run.plan.descent, [data.user(user) for user in range(run.n)]), seed)


@pytest.mark.parametrize("name", SPECS)
def test_it_is_what_the_world_gives_on_the_same_seed(name: str) -> None:
    run, data = learners(SPECS[name])
    slow = p2pdp.simulate(run.spec)
    found = fast(SPECS[name])
    outputs = np.array([output["value"] for output in slow.outputs])
    np.testing.assert_allclose(np.array(list(found.finals.values())), outputs, rtol=0, atol=room(run.plan))
    np.testing.assert_allclose(truth_of(run, found, data.user), slow.truth, rtol=0, atol=1e-12)
    assert found.counted == {user: {0: run.plan.gradients} for user in range(run.n)}


def test_noise_on_messages_is_as_much_as_was_asked_for() -> None:
    """What it adds to a ring's only round is 2/9 of its variance in each number of each user's model."""
    task = 'kind = "logistic_regression"\nclip = 1.0\nrate = 0.5\nrounds = 1'
    text = gossip_learning(6, "ring", "rounds = 1\nmessage_sigma = 0.7", task=task, sigma=0.1)
    plain = gossip_learning(6, "ring", "rounds = 1", task=task, sigma=0.1)
    off = [np.array(list(fast(text, seed).finals.values())) - np.array(list(fast(plain, seed).finals.values()))
           for seed in range(100)]  # fmt: skip
    assert np.std(off) == pytest.approx(0.7 * np.sqrt(2) / 3, rel=0.1)


def test_meetings_are_drawn_anew_for_each_round_and_seed() -> None:
    run, _ = learners(gossip_learning(5, "changing"))
    one, again, other = (list(drawn_matrices_of(run, seed)) for seed in (1, 1, 2))
    assert all((a != b).nnz == 0 for a, b in zip(one, again, strict=True))
    assert any((a != b).nnz for a, b in zip(one, other, strict=True))
    assert any((a != b).nnz for a, b in pairwise(one))


def test_trials_have_their_seeds(tmp_path: Path) -> None:
    spec = learners(gossip_learning(5, "changing", 'rounds = 2\npublish = "one"'))[0].spec
    result = p2pdp.simulate(spec, tmp_path / "fast", trials=3, fast=True)
    assert result.trials is not None
    assert [len(trial.estimate or ()) for trial in result.trials] == [3, 3, 3]  # type: ignore[arg-type]
    assert result.trials[0].estimate != result.trials[1].estimate
    third = fast(gossip_learning(5, "changing", 'rounds = 2\npublish = "one"'), 5)
    assert result.trials[2].estimate == pytest.approx(third.finals[0].tolist())
    document = json.loads((tmp_path / "fast" / "result.json").read_text())
    assert document["scores"]["score_name"] == "accuracy"
    assert set(document["baselines"]) == {"local", "central", "none"}
