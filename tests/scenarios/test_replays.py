from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from p2pdp.core.errors import Refused
from tests.support.replays import Replayed, replays
from tests.support.runs import HISTOGRAM, Run, quiet, ring, walk

COUNT = 4000


def again(run: Run, values: list[list[float]] | None = None, seed: int = 1) -> Replayed:
    return replays(run.plan, run.contents(), values or [[0.0]] * run.plan.n, COUNT, seed)


@pytest.mark.parametrize("text", [ring(4, 2), walk(4, 20), walk(5, 20, tokens=3), walk(6, 20, "ring")])
def test_each_user_sees_as_many_messages_as_it_did(text: str) -> None:
    run = quiet(text)
    found, transcript = again(run), run.transcript()
    for user in range(run.plan.n):
        arrived = [form for form in transcript.received[user] if form.expand()]  # of zeros only numbers came
        assert len(found.received.get(user, [])) >= len(arrived)
        assert len(found.drawn[user]) == len(transcript.draws[user])


def test_the_published_total_varies_as_its_noise_says_and_means_what_the_inputs_say() -> None:
    run = quiet(ring(5, 2))
    plan = run.plan.plan
    found = again(run, [[1000.0 * user] for user in range(5)])
    draws = sum(len(plan.draws_at(step)) for step in range(1, plan.steps + 1))
    expected = plan.noise.scale * draws**0.5
    assert np.std(found.published) == pytest.approx(expected, rel=0.1)
    assert abs(np.mean(found.published) - 20_000.0) < 6 * expected / COUNT**0.5


def test_one_seed_gives_one_noise_and_inputs_move_the_view_by_what_they_are() -> None:
    run = quiet(walk(4, 20))
    still, moved = again(run), again(run, [[0.0], [7.0], [0.0], [0.0]])
    visits = len(run.transcript().own_noise[1])
    np.testing.assert_array_equal(moved.published - still.published, 7.0 * visits)
    assert not np.array_equal(again(run, seed=2).published, still.published)


def test_reports_are_whole_and_randomized_as_often_as_gamma_says() -> None:
    run = quiet(walk(4, 20, **HISTOGRAM))
    found = again(run, [[1.0]] * 4)
    assert np.all(found.published.sum(axis=1) == 20)
    gamma = run.plan.plan.noise.scale
    kept = 1.0 - gamma + gamma / 3
    assert np.mean(found.published[:, 1]) / 20 == pytest.approx(kept, abs=0.02)
    assert found.view(2).shape[0] == COUNT


def test_vectors_are_refused() -> None:
    run = quiet(ring(3, 1))
    vectors = replace(run.plan, plan=replace(run.plan.plan, shape=(2,)))
    with pytest.raises(Refused, match="scalars"):
        replays(vectors, run.contents(), [[0.0]] * 3, COUNT, 1)
