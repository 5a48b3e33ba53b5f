from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from p2pdp.auditor.audit import Audit, audit_run
from p2pdp.auditor.context import NOT_AT_HAND
from p2pdp.core.claims import Claim, Method, Refusal
from p2pdp.core.errors import Refused
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.privacy.hidden_path.complete import complete_graph
from p2pdp.privacy.hidden_path.gaps import gaps_of
from p2pdp.replay.evidence import Recorded
from p2pdp.replay.visits import token_routes
from p2pdp.sim.faults import Crash
from tests.support.runs import DELTA, GAUSSIAN, HISTOGRAM, Run, judged, quiet, ring, run_of, walk

GRAPH = walk(6, 50, "exponential")


def claim(audit: Audit) -> Claim:
    (found,) = [one for one in audit.claims if one.method == Method.HIDDEN_PATH]
    return found


def refusals(audit: Audit) -> dict[str, str]:
    return {one.observer: one.reason for one in audit.refusals if one.method == Method.HIDDEN_PATH}


def only_refused(audit: Audit) -> str:
    assert [one for one in audit.claims if one.method == Method.HIDDEN_PATH] == []
    (refusal,) = [one for one in audit.refusals if one.method == Method.HIDDEN_PATH]
    assert refusal.observer == "node"
    assert audit.epsilon_conditioning == "public"
    return refusal.reason


def lowest(one: Claim) -> float:
    (text,) = [text for text in one.assumptions if "at least" in text]
    return float(text.rsplit(" ", 1)[1])


@pytest.mark.parametrize("text", [walk(5, 40), walk(5, 40, tokens=3), GRAPH, walk(6, 50, "exponential", tokens=2)])
def test_the_claim_is_about_one_user_given_its_view(text: str) -> None:
    audit = quiet(text).audit()
    found = claim(audit)
    assert (found.observer, found.conditioning, found.delta, found.bound) == ("node", "view", DELTA, True)
    assert (found.mu_max, found.mu_mean) == (None, None)
    assert audit.epsilon is not None
    assert audit.epsilon_conditioning == "view"
    pairs = ~np.eye(len(audit.epsilon), dtype=bool)
    assert np.isnan(audit.epsilon[~pairs]).all()
    assert found.worst_pair is not None
    user, observer = found.worst_pair
    assert isinstance(observer, int)
    assert audit.epsilon[user, observer] == found.epsilon_max == audit.epsilon[pairs].max()
    assert found.epsilon_mean == pytest.approx(audit.epsilon[pairs].mean())
    assert 0.5 * found.epsilon_max < lowest(found) <= found.epsilon_max
    assert any("hypothetical" in text for text in found.assumptions)


def test_a_long_walk_among_many_hides_users_better_than_a_public_path() -> None:
    audit = quiet(walk(16, 64)).audit()
    exact = next(one for one in audit.claims if (one.observer, one.method) == ("node", "exact"))
    assert exact.epsilon_max is not None
    assert lowest(claim(audit)) < exact.epsilon_max


def test_the_graph_is_assumed_known_where_it_is_not_complete() -> None:
    for text, known in ((walk(5, 40), False), (GRAPH, True)):
        assert any("knows the graph" in said for said in claim(quiet(text).audit()).assumptions) is known


def test_more_noise_tells_less() -> None:
    before = claim(quiet(walk(6, 60)).audit())
    after = claim(quiet(walk(6, 60, noise=GAUSSIAN.replace("2.0", "4.0"))).audit())
    assert before.epsilon_max is not None
    assert after.epsilon_max is not None
    assert after.epsilon_max < before.epsilon_max


@pytest.mark.parametrize("tokens", [1, 2])
def test_how_often_a_token_moved_between_visits_belongs_to_the_view(tokens: int) -> None:
    """The claim is that of the gaps of the realised paths, with the moves in them.

    Of several tokens the result shows how often the last one moved: the claim holds with the others' told or not.
    """
    run = quiet(walk(5, 40, tokens=tokens))
    views, audit = run.contents(), run.audit()
    assert audit.epsilon is not None
    for observer in range(5):
        other = {user: token_routes(user, views[user], tokens).visits for user in range(5)}
        moves = []
        for item in range(tokens):
            holder = {visit.step: user for user, visits in other.items() for visit in visits[item]}
            path = [0, *(holder[step] for step in range(1, 41))]
            moves.append([0, *itertools.accumulate(int(one != two) for one, two in itertools.pairwise(path))])
        began = token_routes(observer, views[observer], tokens).began_at
        starters = [0] if tokens == 1 else [began.get(item) for item in range(tokens)]
        mu, found = 0.5 * (1 + 1e-12), []
        for seen in (True, tokens == 1):
            gaps = [gaps_of(other[observer], 40, starters, moves=moves, origin=0, ends_seen=seen)
                    if user == observer else [] for user in range(5)]  # fmt: skip
            found.append(complete_graph(5, gaps, mu, mu, DELTA).upper[:, observer])
        np.testing.assert_allclose(audit.epsilon[:, observer], np.maximum(*found), rtol=5e-3)


def test_it_takes_no_values() -> None:
    run = quiet(walk(5, 40))
    assert claim(run.audit()) == claim(judged(replace(run.evidence, private={})))


def test_vectors_are_as_far_apart_as_their_diagonal() -> None:
    table = '[data]\nkind = "uniform"\nclip = [0.0, 2.0]\n'
    one, two = (claim(quiet(walk(5, 40, data=data)).audit()) for data in (table, table.replace("2.0", "1.0")))
    assert one.epsilon_max is not None
    assert two.epsilon_max is not None
    assert one.epsilon_max > 1.5 * two.epsilon_max


# Refusals, with their reasons.


def test_who_sees_more_than_one_view_is_refused() -> None:
    audit = quiet(walk(5, 40)).audit(colluders=(1, 3))
    assert set(refusals(audit)) == {"network", "coalition", "curator+coalition"}
    assert "sees the path" in refusals(audit)["network"]
    assert "pools views" in refusals(audit)["coalition"]
    assert set(refusals(quiet(walk(5, 40)).audit())) == {"network"}


def test_a_broker_is_refused_where_there_is_one() -> None:
    run = quiet(walk(5, 40))
    spec = replace(run.plan.spec, run=replace(run.plan.spec.run, transport="mqtt"))
    audit = audit_run(
        replace(run.plan, spec=spec), Recorded(replace(run.plan, spec=spec), run.contents()), [], DELTA, ()
    )
    assert "broker" in refusals(audit)["broker"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (ring(4, 2), "on a ring everybody knows the path"),
        (ring(4, 2, tokens=2), "on a ring"),
        (walk(4, 20, noise='[noise]\nmechanism = "laplace"\nsigma = 2.0\n'), "with laplace noise"),
        (walk(4, 20, noise='[noise]\nmechanism = "none"\n'), "without noise"),
        (walk(4, 20, **HISTOGRAM), "with randomized_response noise"),
        (walk(4, 20, noise=GAUSSIAN.replace("2.0", "0.001")), "64 times as far"),
    ],
)
def test_what_the_law_of_a_path_does_not_cover_is_refused(text: str, reason: str) -> None:
    assert reason in only_refused(quiet(text).audit())


def test_several_values_a_user_are_refused() -> None:
    run = quiet(walk(4, 20))

    def given_more(contents: Any) -> Any:
        opening = contents.records[0]
        opening = replace(opening, body=opening.body._replace(values=3))
        return replace(contents, records=[opening, *contents.records[1:]])

    views = run.contents()
    views[2] = given_more(views[2])
    assert "user 2 contributes 3 values in turn" in only_refused(
        audit_run(run.plan, Recorded(run.plan, views), [], DELTA, ())
    )


def test_of_one_user_alone_nothing_is_said() -> None:
    audit = quiet(walk(1, 5)).audit()
    assert Method.HIDDEN_PATH not in {one.method for one in (*audit.claims, *audit.refusals)}


# What is missing, and who is out.


def audited_without(run: Run, missing: Sequence[int]) -> Audit:
    return judged(run.without(*missing), lenient=True)


@pytest.mark.parametrize("text", [walk(5, 40), GRAPH])
def test_without_a_users_ledger_its_number_of_values_cannot_be_told(text: str) -> None:
    reason = only_refused(audited_without(quiet(text), [3]))
    assert "user 3" in reason


def test_an_observer_whose_ledger_is_not_whole_is_refused_by_name() -> None:
    run = quiet(walk(5, 40))
    whole = run.audit()
    audit = audit_run(run.plan, Recorded(run.plan, run.contents()), [3], DELTA, ())
    assert Refusal("node", Method.HIDDEN_PATH, f"user 3: {NOT_AT_HAND}", 3) in audit.refusals
    assert whole.epsilon is not None
    assert audit.epsilon is not None
    others = [0, 1, 2, 4]
    assert np.isnan(audit.epsilon[:, 3]).all()
    np.testing.assert_allclose(audit.epsilon[:, others], whole.epsilon[:, others], rtol=1e-2)
    nobody = audit_run(run.plan, Recorded(run.plan, run.contents()), range(5), DELTA, ())
    assert [one for one in nobody.claims if one.method == Method.HIDDEN_PATH] == []
    assert len([one for one in nobody.refusals if one.method == Method.HIDDEN_PATH]) == 5


def test_without_bootstraps_ledger_a_walk_on_a_graph_may_have_gone_round_somebody() -> None:
    assert "bootstrap" in only_refused(audited_without(quiet(GRAPH), [BOOTSTRAP]))
    complete = quiet(walk(5, 40))
    assert claim(audited_without(complete, [BOOTSTRAP])).epsilon_max == claim(complete.audit()).epsilon_max


def test_without_the_curators_ledger_the_claim_stands() -> None:
    run = quiet(walk(5, 40))
    assert claim(audited_without(run, [CURATOR])).epsilon_max == claim(run.audit()).epsilon_max


def test_without_what_was_published_nothing_is_claimed() -> None:
    run = quiet(walk(5, 40))
    holder = next(user for user in range(5) if any(
        run.plan.plan.steps in (visit.step for visit in seen)
        for seen in token_routes(user, run.contents()[user], 1).visits
    ))  # fmt: skip
    with pytest.raises(Refused, match=r"^node: .*published"):
        audited_without(run, [CURATOR, holder])


def test_after_an_exclusion_the_law_of_the_path_does_not_hold() -> None:
    run = run_of(walk(5, 60, seed=2), Crash(peer=2, at_record=30, down_s=None))
    assert run.world.out == [2]
    assert "user 2 was put out" in only_refused(run.audit())


def test_epsilon_is_a_number_down_to_very_small_deltas() -> None:
    run = quiet(walk(6, 60))
    found = [claim(run.audit(delta=delta)).epsilon_max for delta in (0.9, 1e-2, 1e-6, 1e-12, 1e-30)]
    assert all(one is not None and math.isfinite(one) for one in found)
    assert found == sorted(found, key=lambda one: one or 0.0)
    assert found[0] == 0.0
