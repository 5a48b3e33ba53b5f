"""The fast path of network shuffling beside the machines: same estimate of the same reports, same law of results."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from p2pdp.assembly.outcome import Outcome, estimate_of, truth_of
from p2pdp.files.data import load_data
from p2pdp.files.spec import parse_spec, spec_digest
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.protocols.shuffle.analysis import fast as module
from p2pdp.protocols.shuffle.analysis.fast import fast_shuffle
from p2pdp.sim.world import World
from tests.support.outcomes import outcome
from tests.support.shuffle_specs import shuffle

GRAPH = 'kind = "regular"\ndegree = 4'
REALS = '"laplace"\nepsilon = 1.0'
TRIALS = 40


def text_of(protocol: str, terms: str = "rounds = 6\nstay = 0.1", nodes: int = 16) -> str:
    return shuffle(nodes, GRAPH, protocol, terms)


def few_of(protocol: str) -> str:
    return text_of(protocol, "rounds = 4\nstay = 0.1", 8)


def reals_of(protocol: str) -> str:
    text = few_of(protocol).replace('"randomized_response"\nepsilon = 3.0', REALS)
    return text.replace('"categories"', '"uniform"\nclip = [0.0, 2.0]').replace('"histogram"\ncategories = 3', '"mean"')


def prepared(text: str) -> tuple[RunPlan, Any]:
    spec = parse_spec(text, None)
    data = load_data(spec, spec.run.nodes)
    return plan_run(spec, spec.run.nodes, data.dimensions, sampler="seeded"), cache(data.user)


def simulated(run: RunPlan, rows: Any, text: str, seed: int) -> Outcome:
    world = World(run, rows, text, spec_digest(run.spec), seed)
    world.run_to_end()
    views = {peer: bytes(process.disk.view) for peer, process in world.processes.items()}
    return outcome(run, views, world.out)


@pytest.mark.parametrize("text", [few_of("all"), few_of("single"), reals_of("all"), reals_of("single")])
def test_results_have_the_same_law(text: str) -> None:
    run, rows = prepared(text)
    found: dict[str, list[list[float]]] = {"fast": [], "world": []}
    for seed in range(TRIALS):
        for name, one in (("fast", fast_shuffle(run, rows, seed)), ("world", simulated(run, rows, text, seed))):
            estimate = estimate_of(run, one)
            numbers = [*np.atleast_1d(estimate.value), *np.atleast_1d(estimate.standard_error)]  # type: ignore[arg-type]
            assert one.traffic is not None
            found[name].append([*numbers, len(one.counted), one.published[0], one.traffic["reports_per_user_mean"]])
    fast, world = (np.array(found[name]) for name in ("fast", "world"))
    error = np.sqrt((fast.var(axis=0) + world.var(axis=0)) / TRIALS)
    assert np.all(np.abs(fast.mean(axis=0) - world.mean(axis=0)) <= 5.5 * error + 1e-9)


@pytest.mark.parametrize("protocol", ["all", "single"])
def test_on_the_same_reports_the_estimate_is_the_curators(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run, rows = prepared(text_of(protocol))
    kept: list[Any] = []
    original = module.shuffled

    def recorded(*terms: Any, **named: Any) -> Any:
        kept.append(original(*terms, **named))
        return kept[-1]

    monkeypatch.setattr(module, "shuffled", recorded)
    found = fast_shuffle(run, rows, 3)
    told = [run.plan.randomizer.encoded(numbers) for numbers in kept[0].reports]
    np.testing.assert_array_equal(found.published, run.protocol.publish(run.plan, told))
    assert found.counted == {int(owner): {0: 1} for owner in sorted(kept[0].owners) if owner >= 0}
    truth = truth_of(run, found, rows)
    assert isinstance(truth, list)
    assert sum(truth) == pytest.approx(16.0)


def test_messages_are_those_of_a_run_without_its_life_cycle() -> None:
    for terms in ("rounds = 6", "rounds = 6\ncover = true"):
        run, rows = prepared(text_of("all", terms))
        fast, world = fast_shuffle(run, rows, 1), simulated(run, rows, text_of("all", terms), 1)
        assert world.messages - fast.messages == 16 * 2 + 3 + 16 + 1, "ready, go and result of all, done and over"
        assert fast.traffic is not None
        assert fast.traffic == pytest.approx(world.traffic, rel=0.5)
        if "cover" in terms:
            assert fast.traffic["messages_per_user_max"] == world.traffic["messages_per_user_max"]  # type: ignore[index]


def test_one_seed_is_one_result() -> None:
    run, rows = prepared(text_of("single"))
    first, again, other = (fast_shuffle(run, rows, seed).published for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
