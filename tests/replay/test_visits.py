from __future__ import annotations

import pytest

from p2pdp.core.claims import Method
from p2pdp.core.ids import BOOTSTRAP
from p2pdp.core.messages import DONE, OUT, TOKEN
from p2pdp.ledger.records import OWN, RECEIVED, SENT, public_message, read, to_skeleton
from p2pdp.replay.visits import Visit, put_out, token_routes
from p2pdp.sim.faults import Crash
from tests.support.runs import Run, quiet, ring, run_of, walk

RUNS = [walk(5, 40), walk(4, 25, tokens=3), walk(6, 30, "exponential", tokens=2), walk(3, 1), walk(1, 5), ring(4, 2)]


def paths(run: Run) -> list[list[int]]:
    """Who held each token at each step, from everybody's ledgers."""
    plan = run.plan.plan
    held: list[list[int]] = [[-1] * plan.steps for _ in range(plan.tokens)]
    for user in range(run.plan.n):
        for record in run.contents()[user].records:
            if record.kind in (RECEIVED, OWN) and public_message(record).type == TOKEN:
                item, step = public_message(record).fields
                held[item][step - 1] = user
    return held


@pytest.mark.parametrize("text", RUNS)
def test_visits_are_those_of_the_tokens_paths(text: str) -> None:
    run = quiet(text)
    steps = run.plan.plan.steps
    for user in range(run.plan.n):
        found = token_routes(user, run.contents()[user], run.plan.plan.tokens)
        for path, visits in zip(paths(run), found.visits, strict=True):
            assert -1 not in path
            assert visits == [
                Visit(at + 1, path[at - 1] if at else None, path[at + 1] if at + 1 < steps else None)
                for at in range(steps)
                if path[at] == user
            ]


@pytest.mark.parametrize("text", RUNS)
def test_only_who_sent_a_token_out_knows_where_it_began(text: str) -> None:
    run = quiet(text)
    for user in range(run.plan.n):
        began = token_routes(user, run.contents()[user], run.plan.plan.tokens).began_at
        if user == 0 and run.plan.plan.tokens > 1 and run.plan.plan.order != "ring":
            assert began == {item: path[0] for item, path in enumerate(paths(run)) if path[0] != 0}
        else:
            assert began == {}


def test_a_skeleton_says_the_same() -> None:
    run = quiet(RUNS[1])
    for user in range(run.plan.n):
        skeleton = read(to_skeleton(run.evidence.views[user]))
        assert token_routes(user, skeleton, 3) == token_routes(user, run.contents()[user], 3)


def test_nobody_is_out_of_a_quiet_run() -> None:
    for text in RUNS:
        assert put_out(quiet(text).contents()) == set()


def test_who_was_put_out_under_way_is_named_by_bootstrap_and_by_the_others() -> None:
    run = run_of(walk(5, 60, seed=2), Crash(peer=2, at_record=30, down_s=None))
    assert run.world.out == [2]
    views = run.contents()
    assert put_out(views) == {2}
    del views[BOOTSTRAP]
    assert put_out(views) == {2}
    assert put_out({1: views[1]}) == {2}


def result_before_out(run: Run) -> bool:
    records = run.contents()[BOOTSTRAP].records
    types = [public_message(record).type for record in records if record.kind in (RECEIVED, SENT)]
    return types.index(DONE) < types.index(OUT)


def test_who_is_missed_after_the_result_only_is_named_too() -> None:
    """From when it was gone tokens went by it, and whoever hears that it is out knows that."""
    runs = (run_of(walk(4, 6, seed=seed), Crash(peer=3, at_s=0.0065, down_s=None)) for seed in range(1, 30))
    run = next(run for run in runs if result_before_out(run))
    assert put_out(run.contents()) == {3}
    refused = {refusal.method: refusal.reason for refusal in run.audit().refusals if refusal.observer == "node"}
    assert "user 3 was put out" in refused[Method.HIDDEN_PATH]
