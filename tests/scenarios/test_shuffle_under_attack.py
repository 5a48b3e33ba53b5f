"""The claim for the curator of network shuffling against the best test there is, on runs that are drawn anew.

Everything is drawn again, as the claim is a priori: routes, reports, dummies. The score is the exact likelihood ratio
of what the curator gets, mixed over all hidden routes and joint given the loads (guide/accounting.md, section 5). User
0 has one of two values; all others have a third, which hides it least. Lower ends are Clopper and Pearson's; all of
them together are wrong with a probability below 1e-6, so a failure here is a wrong claim.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from p2pdp.auditor.context import NOBODY_OUT
from p2pdp.files.spec import parse_spec
from p2pdp.mechanisms.reporting.categories import KaryReports
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.protocols.shuffle.analysis.a_priori import shuffle_a_priori
from p2pdp.protocols.shuffle.analysis.fast import Shuffled, shuffled
from p2pdp.topology.graphs import Graph, graph_of_edges
from p2pdp.topology.report_walks.matrix import all_laws, walk_matrix
from tests.support.likelihood import epsilon_lower_end
from tests.support.shuffle_specs import shuffle

ERROR = 1e-6 / 20  # fewer tests than that
DELTA = 0.05
COUNT = 30_000
LAPLACE = '"laplace"\nepsilon = 2.0'


def run_of(text: str) -> RunPlan:
    spec = parse_spec(text.replace("epsilon = 3.0", "epsilon = 2.0"), None)
    return plan_run(spec, spec.run.nodes, 1)


def reals(text: str) -> str:
    text = text.replace('"randomized_response"\nepsilon = 3.0', LAPLACE)
    return text.replace('"categories"', '"uniform"\nclip = [0.0, 1.0]').replace('"histogram"\ncategories = 3', '"mean"')


def claimed(run: RunPlan) -> float:
    claims = shuffle_a_priori(run, DELTA, (), NOBODY_OUT).claims
    found = next(claim for claim in claims if (claim.observer, claim.method) == ("curator", "shuffle"))
    assert found.epsilon_max is not None
    return found.epsilon_max


def copies(graph: Graph | None) -> Graph:
    """One graph that is as many copies of this one, between which nothing moves."""
    assert graph is not None
    edges = np.array(list(graph.edges()))
    return graph_of_edges(graph.n * COUNT, (edges[None] + graph.n * np.arange(COUNT)[:, None, None]).reshape(-1, 2))


def many(run: RunPlan, whole: Graph, values: list[float], seed: int) -> Shuffled:
    """So many runs at once, one on each of the copies."""
    plan = run.plan
    return shuffled(
        whole,
        plan.randomizer,
        np.tile(np.array(values, dtype=np.int64 if plan.randomizer.counted else np.float64), COUNT),
        plan.rounds,
        stay=plan.stay,
        single=plan.single,
        dummies=(1.0, 1.0),
        seed=seed,
    )


def chances(run: RunPlan, numbers: Any, value: float) -> Any:
    """How likely a report is of this value; for Laplace noise up to a factor that is the same for all values."""
    randomizer = run.plan.randomizer
    if isinstance(randomizer, KaryReports):
        other = randomizer.gamma / randomizer.categories
        return np.where(numbers == value, 1.0 - randomizer.gamma + other, other)
    return np.exp(-np.abs(randomizer.grid.from_grid(numbers) - value) * randomizer.epsilon)


def laws_of(run: RunPlan) -> Any:
    assert run.graph is not None
    return all_laws(walk_matrix(run.graph, run.plan.stay), run.plan.rounds)


def likelihood_of_all(run: RunPlan, seen: Shuffled, values: list[float]) -> Any:
    """Of each copy: over all ways in which users own its reports, set by set of users."""
    laws, n = laws_of(run), run.n
    holders = seen.holders.reshape(COUNT, n) % n
    numbers = seen.reports[:, 0].reshape(COUNT, n)
    sets = np.arange(1 << n)
    filled = np.zeros((1 << n, COUNT))
    filled[0] = 1.0
    for place in range(n):
        following = np.zeros_like(filled)
        for user, value in enumerate(values):
            weight = laws[user, holders[:, place]] * chances(run, numbers[:, place], value)
            without = sets[(sets >> user) & 1 == 0]
            following[without | (1 << user)] += filled[without] * weight
        filled = following
    return filled[-1]


def likelihood_of_single(run: RunPlan, seen: Shuffled, values: list[float]) -> Any:
    """Of each copy: over all routes, with a uniform report of each holder's or a dummy; one for each outcome."""
    laws, n = laws_of(run), run.n
    categories = run.plan.randomizer.categories
    of_value = np.array([chances(run, np.arange(categories), value) for value in (*values, 0)])  # the last is a dummy's
    table = np.zeros((categories,) * n)
    for places in product(range(n), repeat=n):
        weight = float(np.prod([laws[user, place] for user, place in enumerate(places)]))
        if weight == 0.0:
            continue
        made: Any = np.array(weight)
        for holder in range(n):
            held = [user for user, place in enumerate(places) if place == holder] or [n]
            made = np.multiply.outer(made, of_value[held].mean(axis=0))
        table += made
    return table[tuple(seen.reports[:, 0].reshape(COUNT, n).T)]


CASES = {  # and how much of the claim is proved at least
    "a complete graph": (shuffle(7, terms="rounds = 3"), 0.6),
    "a ring, hardly mixed": (shuffle(5, 'kind = "ring"', terms="rounds = 3\nstay = 0.2"), 0.6),
    "a ring, mixed": (shuffle(7, 'kind = "ring"', terms="rounds = 40"), 0.6),
    "a star": (shuffle(6, 'kind = "star"', terms="rounds = 9\nstay = 0.4"), 0.6),
    "real numbers": (reals(shuffle(6, terms="rounds = 3")), 0.2),
    "one report of each": (shuffle(5, protocol="single", terms="rounds = 3"), 0.2),
    "one report of each, on a ring": (shuffle(5, 'kind = "ring"', "single", "rounds = 3\nstay = 0.2"), 0.2),
}


@pytest.mark.parametrize(("text", "share"), CASES.values(), ids=CASES)
def test_no_test_proves_more_than_was_claimed_and_hardly_less(text: str, share: float) -> None:
    run = run_of(text)
    others = [2.0 if run.plan.randomizer.counted else 0.0] * (run.n - 1)
    pair = [[0.0, *others], [1.0, *others]]
    likelihood = likelihood_of_single if run.plan.single else likelihood_of_all
    scores, whole = [], copies(run.graph)
    for seed, values in enumerate(pair, start=1):
        seen = many(run, whole, values, seed)
        scores.append(np.log(likelihood(run, seen, pair[1])) - np.log(likelihood(run, seen, pair[0])))
    proved, most = epsilon_lower_end(scores[0], scores[1], DELTA, ERROR), claimed(run)
    assert most < 1.95, "something is hidden at all"
    assert proved <= most
    assert proved >= share * most, "an attack this weak would prove nothing"
