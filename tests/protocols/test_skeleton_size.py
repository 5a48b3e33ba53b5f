from __future__ import annotations

import pytest
from scipy import stats

from p2pdp.ledger.records import to_skeleton
from p2pdp.protocols.skeleton_size import EXCESS, at_most, skeleton_size
from tests.support.learners import learning
from tests.support.runs import HISTOGRAM, quiet, ring, walk
from tests.support.shuffle_specs import shuffle


@pytest.mark.parametrize("mean", [0.01, 0.5, 1.0, 7.0, 300.0])
@pytest.mark.parametrize("probability", [1e-3, 1e-9, 1e-18])
def test_a_count_is_exceeded_no_more_often_than_said(mean: float, probability: float) -> None:
    count = at_most(mean, probability)
    assert stats.poisson.sf(count, mean) <= probability
    assert stats.binom.sf(count, 1000, mean / 1000) <= probability
    assert count <= mean + 40 + 12 * mean**0.5


RUNS = {
    "ring": ring(4, 20, tokens=2),
    "walk": walk(5, 400),
    "short walk": walk(6, 3),
    "tokens": walk(4, 60, tokens=8),
    "learning": learning(4, 60),
    "histogram": walk(4, 200, **HISTOGRAM),
    "sparse": walk(6, 200, "star"),
    "shuffle": shuffle(8, terms="rounds = 12"),
    "irregular shuffle": shuffle(8, 'kind = "star"', terms="rounds = 12\nstay = 0.5"),
    "cover": shuffle(6, terms="rounds = 6\ncover = true"),
}


@pytest.mark.parametrize("name", RUNS)
def test_skeletons_fit_and_their_size_follows_from_public_facts(name: str) -> None:
    run = quiet(RUNS[name])
    for user in range(run.plan.n):
        contents = run.contents()[user]
        known = contents.records[0].body.neighbours
        degree = run.plan.n - 1 if known is None else len(known)
        size = skeleton_size(run.plan, degree)
        assert size % 4096 == 0
        assert len(to_skeleton(run.evidence.views[user])) < size


def test_it_grows_with_what_is_expected_and_not_with_what_happened() -> None:
    short, long = (quiet(walk(5, hops)).plan for hops in (20, 2000))
    assert skeleton_size(short, 4) < skeleton_size(long, 4)
    one, other = (quiet(walk(5, 20, seed=seed)).plan for seed in (1, 2))
    assert skeleton_size(one, 4) == skeleton_size(other, 4)
    assert 0.0 < EXCESS < 1e-12
