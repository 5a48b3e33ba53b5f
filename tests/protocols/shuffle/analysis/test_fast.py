"""The fast path of network shuffling beside the machines: same estimate of the same reports, same law of results."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from p2pdp.assembly.outcome import Outcome, estimate_of, truth_of
from p2pdp.core.errors import UsageError
from p2pdp.core.spec import GraphPart
from p2pdp.files.data import load_data
from p2pdp.files.spec import parse_spec, spec_digest
from p2pdp.files.tables import read_edge_list
from p2pdp.mechanisms.reporting.categories import KaryReports
from p2pdp.mechanisms.reporting.privunit import UnitReports
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.protocols.shuffle.analysis import fast as module
from p2pdp.protocols.shuffle.analysis.fast import fast_shuffle, shuffled, walked
from p2pdp.sim.world import World
from p2pdp.tasks.unit_mixture import mixed_direction
from p2pdp.topology.graphs import Graph, complete_graph, graph_of_edges, make_graph
from p2pdp.topology.report_walks.matrix import all_laws, expected_empty, walk_matrix
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


def test_messages_are_those_of_a_run() -> None:
    for terms in ("rounds = 6", "rounds = 6\ncover = true"):
        run, rows = prepared(text_of("all", terms))
        fast, world = fast_shuffle(run, rows, 1), simulated(run, rows, text_of("all", terms), 1)
        assert world.messages == fast.messages
        assert fast.traffic is not None
        assert fast.traffic == pytest.approx(world.traffic, rel=0.5)
        if "cover" in terms:
            assert fast.traffic["messages_per_user_max"] == world.traffic["messages_per_user_max"]  # type: ignore[index]


def test_one_seed_is_one_result() -> None:
    run, rows = prepared(text_of("single"))
    first, again, other = (fast_shuffle(run, rows, seed).published for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


GRAPH_WALKS = make_graph(GraphPart("erdos_renyi", probability=0.4), 8, 3)
PLAIN = KaryReports(8, None)


def places_of(graph: Graph, rounds: int, stay: float, trials: int, away: dict[int, list[int]]) -> np.ndarray:
    generator = np.random.default_rng(11)
    return np.array([walked(graph, rounds, stay, generator, away)[0] for _ in range(trials)])


@pytest.mark.parametrize(("rounds", "stay", "away"), [(1, 0.0, {}), (4, 0.3, {}), (3, 0.2, {0: [1, 2], 2: [5]})])
def test_reports_end_where_the_matrix_says(rounds: int, stay: float, away: dict[int, list[int]]) -> None:
    trials = 4000
    places = places_of(GRAPH_WALKS, rounds, stay, trials, away)
    laws = np.eye(8)
    for t in range(rounds):
        laws = laws @ walk_matrix(GRAPH_WALKS, stay, away.get(t, [])).forward.toarray()
    for user in range(8):
        reached = laws[user] > 0.0
        tally = np.bincount(places[:, user], minlength=8)
        assert tally[~reached].sum() == 0
        if reached.sum() > 1:
            assert stats.chisquare(tally[reached], laws[user][reached] * trials).pvalue > 1e-7


@pytest.mark.parametrize("stay", [0.0, 0.3])
def test_on_a_complete_graph_reports_go_where_listed_neighbours_lead(
    stay: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, away = complete_graph(9), {1: [4]}
    without = places_of(graph, 5, stay, 20, away)
    monkeypatch.setattr(module, "is_complete", lambda _: False)
    np.testing.assert_array_equal(places_of(graph, 5, stay, 20, away), without)


def test_reports_of_who_has_no_neighbour_stay() -> None:
    for graph in (graph_of_edges(3, []), complete_graph(1)):
        places, moves, held = walked(graph, 2, 0.2, np.random.default_rng(1), {0: [0]})
        assert (places.tolist(), moves.sum(), held) == ([*range(graph.n)], 0, 1)


def test_every_report_arrives_once_at_its_holder() -> None:
    for seed in range(5):
        run = shuffled(GRAPH_WALKS, PLAIN, np.arange(8), 5, stay=0.1, seed=seed)
        assert sorted(run.owners.tolist()) == list(range(8))
        np.testing.assert_array_equal(run.reports[:, 0], run.owners)
        np.testing.assert_array_equal(np.bincount(run.holders, minlength=8), run.loads)
        assert np.all(np.diff(run.holders) >= 0)
        np.testing.assert_allclose(run.estimate.value, 1.0)
        assert run.dummies == 0


def test_of_single_each_user_hands_in_one_of_its_own_or_a_dummy() -> None:
    seen = set()
    for seed in range(60):
        whole = shuffled(GRAPH_WALKS, PLAIN, np.arange(8), 5, stay=0.1, seed=seed)
        run = shuffled(GRAPH_WALKS, PLAIN, np.arange(8), 5, stay=0.1, seed=seed, single=True)
        np.testing.assert_array_equal(run.loads, whole.loads)
        np.testing.assert_array_equal(run.owners < 0, run.loads == 0)
        assert run.dummies == np.count_nonzero(run.loads == 0)
        for holder, owner in enumerate(run.owners):
            if owner >= 0:
                batch = np.sort(whole.owners[whole.holders == holder])
                assert owner in batch
                seen.add((len(batch), int(np.nonzero(batch == owner)[0][0])))
    assert {(2, 0), (2, 1), (3, 0), (3, 1), (3, 2)} <= seen, "each of several is chosen in some run"


def test_batches_are_in_no_order() -> None:
    orders = {tuple(shuffled(complete_graph(2), PLAIN, [0, 1], 9, stay=0.4, seed=s).owners) for s in range(40)}
    assert orders == {(0, 1), (1, 0)}


def test_as_many_dummies_as_expected() -> None:
    graph = make_graph(GraphPart("regular", degree=4), 100, 2)
    values = np.zeros(100, dtype=np.int64)
    counts = [shuffled(graph, PLAIN, values, 6, single=True, seed=seed).dummies for seed in range(300)]
    mean, variance = expected_empty(graph, 0.0, 6)
    assert np.mean(counts) == pytest.approx(mean, abs=6 * (variance / 300) ** 0.5)
    assert np.var(counts) == pytest.approx(variance, rel=0.35)


@pytest.mark.parametrize("single", [False, True])
def test_the_mean_of_unit_vectors_as_in_section_5_6(single: bool) -> None:
    graph = make_graph(GraphPart("regular", degree=6), 600, 1)
    normals = np.random.default_rng(4).standard_normal((600, 200))
    values = np.array([mixed_direction(user, 600, normals[user]) for user in range(600)])
    squares, said = [], []
    for seed in range(12):
        run = shuffled(graph, UnitReports(200, 8.0), values, 40, single=single, seed=seed)
        squares.append(float(np.sum((run.estimate.value - values.mean(axis=0)) ** 2)))
        said.append(float(np.sum(run.estimate.standard_error**2)))
    assert np.mean(squares) == pytest.approx(np.mean(said), rel=0.25)


def test_users_alone_keep_their_reports() -> None:
    alone = graph_of_edges(3, [(0, 1)])
    run = shuffled(alone, PLAIN, [0, 1, 2], 3)
    assert run.loads.tolist() == [1, 1, 1]
    assert run.moves.tolist() == [3, 3, 0]
    single = shuffled(complete_graph(1), PLAIN, [4], 3, single=True)
    assert (single.loads.tolist(), single.moves.tolist(), single.held) == ([1], [0], 1)
    assert single.estimate.value[4] == 1.0


def test_one_seed_is_one_run_and_texts_show_nothing() -> None:
    first, again = (shuffled(GRAPH_WALKS, KaryReports(8, 1.0), np.arange(8), 4, seed=5) for _ in range(2))
    np.testing.assert_array_equal(first.reports, again.reports)
    np.testing.assert_array_equal(first.owners, again.owners)
    assert repr(first) == "Shuffled(8 reports)"


def test_wrong_questions_are_refused() -> None:
    with pytest.raises(UsageError, match="one value each"):
        shuffled(GRAPH_WALKS, PLAIN, [1, 2], 3)
    with pytest.raises(UsageError, match="stay"):
        shuffled(GRAPH_WALKS, PLAIN, np.arange(8), 3, stay=1.0)
    with pytest.raises(UsageError, match="rounds"):
        shuffled(GRAPH_WALKS, PLAIN, np.arange(8), -1)


def test_facebook_pages_to_mixing(data_dir: Path) -> None:
    edges = read_edge_list(data_dir / "facebook_pages_edges.csv.gz")
    graph = graph_of_edges(edges.n, edges.edges)
    run = shuffled(graph, KaryReports(4, 1.0), np.arange(edges.n) % 4, 2257, seed=1)
    assert run.moves.sum() == edges.n * 2257
    assert np.all(np.abs(run.estimate.value - edges.n / 4) < 6 * run.estimate.standard_error)


def test_the_laws_are_those_of_the_accountant() -> None:
    """Empty places by simulation and by the laws that claims rest on."""
    laws = all_laws(walk_matrix(GRAPH_WALKS), 2)
    places = places_of(GRAPH_WALKS, 2, 0.0, 3000, {})
    empty = 8 - np.array([len(np.unique(row)) for row in places])
    exact = np.prod(1 - laws, axis=0).sum()
    assert empty.mean() == pytest.approx(exact, abs=6 * empty.std() / 3000**0.5)
