"""What is known of a ring's run beforehand is what its replay says afterwards."""

from __future__ import annotations

import pytest

from p2pdp.core.errors import Refused
from p2pdp.core.values import LinearForm, Source
from p2pdp.protocols.walk.analysis.scheduled import is_scheduled, scheduled
from tests.support import runs


def shape(form: LinearForm) -> list[tuple[str, int, float]]:
    """What a form is made of, whatever its sources are numbered."""
    return sorted((source.kind, source.peer, weight) for source, weight in form.expand().items())


@pytest.mark.parametrize(
    "text",
    [
        runs.ring(4, 3),
        runs.ring(4, 2, "closing = false\n"),
        runs.ring(5, 2, "share = true\n"),
        runs.ring(5, 2, tokens=3),
        runs.ring(1, 2),
        runs.ring(4, 2, **runs.HISTOGRAM),
    ],
)
def test_the_schedule_gives_what_a_replay_of_the_run_gives(text: str) -> None:
    run = runs.quiet(text)
    replayed, planned = run.transcript(), scheduled(run.plan)
    assert planned.published is not None
    assert replayed.published is not None
    # In the run a user with one value contributes it again and again; beforehand each contribution is a value.
    for user, forms in planned.received.items():
        summed = [sorted({(kind, peer) for kind, peer, _ in shape(form)}) for form in forms]
        seen = [sorted({(kind, peer) for kind, peer, _ in shape(form)}) for form in replayed.received[user]]
        assert sorted(summed) == sorted(seen)
        assert sorted(map(len, planned.own_noise[user])) == sorted(map(len, replayed.own_noise[user]))
        assert sorted(map(str, planned.draws[user])) == sorted(map(str, replayed.draws[user]))
    totals = [sum(weight for _, _, weight in shape(form)) for form in (planned.published[0], replayed.published[0])]
    assert totals[0] == totals[1]
    assert len(planned.totals) == len(replayed.totals)


def test_every_contribution_is_a_value_of_its_own() -> None:
    run = runs.quiet(runs.ring(3, 2)).plan
    published = scheduled(run).published
    assert published is not None
    inputs = {source for source in published[0].expand() if source.kind == "input"}
    assert inputs == {Source("input", user, lap) for user in range(3) for lap in range(2)}


def test_only_rings_have_a_schedule() -> None:
    assert is_scheduled(runs.quiet(runs.ring(3, 2)).plan)
    assert not is_scheduled(runs.quiet(runs.walk(3, 6)).plan)


def test_a_walk_that_chooses_is_not_driven() -> None:
    with pytest.raises(Refused):
        scheduled(runs.quiet(runs.walk(4, 8)).plan)
