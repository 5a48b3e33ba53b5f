"""What is promised of network shuffling in advance, beside what audits of such runs find."""

from __future__ import annotations

import numpy as np
import pytest

from p2pdp.auditor.a_priori import claims_a_priori, covers, epsilon_against
from p2pdp.auditor.context import NOBODY_OUT
from p2pdp.core.claims import Claim
from p2pdp.files.spec import parse_spec
from p2pdp.privacy.shuffle.overlap import overlapped
from p2pdp.protocols.run_plan import RunPlan, plan_of_facts, plan_run
from p2pdp.protocols.shuffle.analysis.a_priori import NOBODY_LATE, reports_least, shuffle_a_priori
from tests.support.runs import DELTA, quiet
from tests.support.shuffle_specs import shuffle

EPSILON = 3.0
REGULAR = 'kind = "regular"\ndegree = 4'
TEXTS = [
    shuffle(24, REGULAR, terms='rounds = "auto"'),
    shuffle(24, REGULAR, terms="rounds = 5\nstay = 0.2"),
    shuffle(24, REGULAR, terms="rounds = 9\ncover = true"),
    shuffle(24, REGULAR, "single", 'rounds = "auto"'),
    shuffle(24, REGULAR, "single", "rounds = 5\ncover = true"),
    shuffle(8, 'kind = "complete"', terms="rounds = 3"),
]


def plan(text: str) -> RunPlan:
    spec = parse_spec(text, None)
    return plan_run(spec, spec.run.nodes, 1)


def by_terms(claims: list[Claim]) -> dict[tuple[str, str], Claim]:
    return {(claim.observer, claim.method): claim for claim in claims}


@pytest.mark.parametrize("text", TEXTS)
def test_no_audit_of_a_run_in_time_finds_more(text: str) -> None:
    colluders = (0, 3)
    before = by_terms(shuffle_a_priori(plan(text), DELTA, colluders, NOBODY_OUT).claims)
    after = by_terms(quiet(text).audit(colluders).claims)
    assert set(after) == set(before)
    for terms, claim in after.items():
        if terms == ("public", "shuffle") and "single" in text:
            continue  # given which reports were chosen it may be more
        assert claim.epsilon_max is not None
        assert claim.epsilon_max <= (before[terms].epsilon_max or 0.0) * (1.0 + 1e-9), terms
        assert before[terms].conditioning == "a-priori"


@pytest.mark.parametrize("text", TEXTS)
def test_signed_facts_are_enough(text: str) -> None:
    """The node of a user who does not know the graph promises the same, but what needs all degrees."""
    run = plan(text)
    facts = plan_of_facts(run.spec, run.facts)
    known = by_terms(shuffle_a_priori(run, DELTA, (), NOBODY_OUT).claims)
    told = by_terms(shuffle_a_priori(facts, DELTA, (), NOBODY_OUT).claims)
    assert told == {terms: claim for terms, claim in known.items() if claim.bound}


def test_the_curator_has_what_the_least_overlap_leaves() -> None:
    run = plan(TEXTS[1])
    claim = by_terms(shuffle_a_priori(run, DELTA, (), NOBODY_OUT).claims)["curator", "shuffle"]
    assert claim.epsilon_max == pytest.approx(overlapped(EPSILON, np.full(23, run.plan.overlap), DELTA, 3)[1])
    assert {NOBODY_OUT, NOBODY_LATE} <= set(claim.assumptions)


def test_whoever_watches_wires_under_cover_is_not_everybody() -> None:
    """A claim about wires covers neither curator nor relays, and no budget may be charged by it."""
    found = claims_a_priori(plan(TEXTS[2]), DELTA, (), one_value=True).claims
    wires = by_terms(found)["network", "shuffle"]
    assert not any(covers(wires, observer) for observer in ("node", "curator", "public", "network"))
    assert covers(by_terms(found)["network", "local"], "curator")
    bare = claims_a_priori(plan(TEXTS[0]), DELTA, (), one_value=True)
    assert ("network", "shuffle") not in by_terms(bare.claims)
    assert any(refusal.observer == "network" and "cover" in refusal.reason for refusal in bare.refusals)


def test_the_bound_of_several_observers_is_the_largest_of_theirs() -> None:
    run = plan(TEXTS[1])
    each = [epsilon_against((one,), run, DELTA, one_value=True) for one in ("node", "curator")]
    assert epsilon_against(("node", "curator"), run, DELTA, one_value=True) == max(each)
    assert each[0] < each[1]


def test_the_curator_comes_first() -> None:
    for text in TEXTS:
        assert claims_a_priori(plan(text), DELTA, (), one_value=True).claims[0].observer == "curator"


def test_of_single_all_but_a_few_runs_have_so_many_reports() -> None:
    """Against the machines' own law: the share of runs with fewer reports is within the part of delta taken off."""
    from p2pdp.protocols.shuffle.analysis.fast import walked

    run = plan(shuffle(60, REGULAR, "single", "rounds = 8"))
    assert run.graph is not None
    least, left = reports_least(run.plan, 0.5)
    assert left == pytest.approx(0.495)
    generator = np.random.default_rng(3)
    counts = [len(np.unique(walked(run.graph, 8, 0.0, generator)[0])) for _ in range(4000)]
    assert np.mean(np.array(counts) < least) <= 0.005
    assert least > 20
    assert reports_least(run.plan, 1e-300)[0] == 0
    assert reports_least(plan(TEXTS[0]).plan, DELTA) == (24, DELTA)


def test_of_single_what_is_published_tells_no_more_than_the_curator_sees() -> None:
    claims = by_terms(shuffle_a_priori(plan(TEXTS[3]), DELTA, (), NOBODY_OUT).claims)
    assert claims["public", "shuffle"].epsilon_max <= claims["curator", "shuffle"].epsilon_max  # type: ignore[operator]
    assert claims["public", "shuffle"].worst_pair == (0, "public")


def test_one_user_has_nobody_to_be_hidden_among() -> None:
    claims = by_terms(shuffle_a_priori(plan(shuffle(1)), DELTA, (), NOBODY_OUT).claims)
    assert ("node", "shuffle") not in claims
    assert claims["curator", "shuffle"].epsilon_max == pytest.approx(EPSILON, rel=1e-4)


def test_colluders_with_the_curator_are_refused() -> None:
    found = shuffle_a_priori(plan(TEXTS[0]), DELTA, (2,), NOBODY_OUT)
    assert any("round 1" in refusal.reason for refusal in found.refusals)
    assert by_terms(found.claims)["coalition", "shuffle"].worst_pair == (0, (2,))
