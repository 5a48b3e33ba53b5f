"""What a user reads of a step that lay alone between two looks: the very gradient that was noised."""

from __future__ import annotations

from pathlib import Path

import pytest

import p2pdp
from p2pdp.core.messages import TOKEN
from p2pdp.ledger.records import OWN, RECEIVED, public_message
from p2pdp.protocols.walk.analysis.decoding import contributions_of, gaps_of, read_descent, visits_of
from tests.support.learners import LOGISTIC, learning, prepared
from tests.support.runs import Run, quiet, ring, walk
from tests.support.token_paths import paths


def holders(run: Run) -> dict[tuple[int, int], int]:
    """Who really held each token at each step, from all views."""
    return {
        tuple(public_message(record).fields): peer
        for peer, contents in run.contents().items()
        for record in contents.records
        if record.kind in (RECEIVED, OWN) and public_message(record).type == TOKEN
    }


def test_a_visit_adds_what_its_user_contributed_and_knows_whom_it_dealt_with() -> None:
    run = quiet(ring(3, 2))
    visits = visits_of(1, run.contents()[1])
    assert [(visit.item, visit.step, visit.came_from, visit.went_to) for visit in visits] == [
        (0, 2, 0, 2),
        (0, 5, 0, 2),
    ]
    assert contributions_of(run.contents()[1]) == [(0, 2), (0, 5)]
    after = visits_of(2, run.contents()[2])
    assert visits[0].after == after[0].before


def test_the_gaps_of_a_ring_hold_everybody_else_and_their_totals_add_up() -> None:
    run = quiet(ring(4, 3))
    for observer in range(4):
        gaps = list(gaps_of(run.plan.plan, observer, run.contents()[observer]))
        seen = [place for gap in gaps for place in gap.places]
        assert sorted([*seen, *contributions_of(run.contents()[observer])]) == [(0, step) for step in range(1, 13)]
        truth = holders(run)
        assert all(gap.holders == [truth[place] for place in gap.places] for gap in gaps)


def test_on_a_random_walk_only_whom_one_dealt_with_is_known() -> None:
    for tokens in (1, 2):
        run = quiet(walk(4, 60, tokens=tokens))
        truth, known = holders(run), 0
        for observer in range(4):
            for gap in gaps_of(run.plan.plan, observer, run.contents()[observer]):
                if gap.holders is not None:
                    assert gap.holders == [truth[place] for place in gap.places]
                    known += bool(gap.holders)
                    assert len({item for item, _ in gap.places}) <= tokens
        assert known > 3


def test_a_gap_in_which_the_token_stayed_at_home_is_empty() -> None:
    run = quiet(walk(2, 40))
    gaps = list(gaps_of(run.plan.plan, 1, run.contents()[1]))
    assert any(not gap.places and gap.total == 0 for gap in gaps)


SPECS = {
    "complete": learning(4, 60, task=LOGISTIC + '\nregularization = 0.3\nschedule = "inverse_sqrt"'),
    "tokens": learning(3, 20, tokens=2),
    "ring": learning(3, kind="ring", order='order = "ring"\nlaps = 4'),
    "grid": learning(6, 60, kind="grid"),
}


@pytest.mark.parametrize("name", SPECS)
def test_readings_are_of_the_users_who_took_those_steps(name: str) -> None:
    run = quiet(SPECS[name])
    path, read = paths(run), 0
    for observer in range(run.plan.n):
        for (user,), _, places in read_descent(run.plan, observer, run.contents()[observer]):
            (item, step) = places[0]
            assert path[item, step - 1] == user != observer
            neighbours = [path[item, at - 1] if 1 <= at <= path.shape[1] else observer for at in (step - 1, step + 1)]
            if step > 1:
                assert neighbours == [observer, observer]
            read += 1
    assert read > 0


@pytest.mark.parametrize("name", ["complete", "ring"])
def test_the_noised_gradient_is_read_to_the_last_digits(tmp_path: Path, name: str) -> None:
    p2pdp.simulate(prepared(SPECS[name])[0].spec, tmp_path / "run")
    told = [target for observer in range(3) for target in p2pdp.attack(tmp_path / "run", observer).targets]
    assert told
    for target in told:
        assert max(map(abs, target["noised_value_error_in_sigma"])) < 1e-9
        assert max(map(abs, target["error"])) > 1e-3, "noise is what protects"
    for record in p2pdp.views(tmp_path / "run"):
        assert record["kind"] in ("received", "sent", "own", "published", "drawn")
