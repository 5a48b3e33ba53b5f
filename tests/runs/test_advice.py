from __future__ import annotations

from dataclasses import replace

import pytest

from p2pdp.files.spec import parse_spec
from p2pdp.report.page.facts import Advice
from p2pdp.runs.advice import ASKED_FOR, IN_PASSING, Patience, advice_on
from p2pdp.runs.plan import plan_spec, planned_of
from tests.support.small import COMPLETE, HISTOGRAM, RING


def found(text: str, patience: Patience = ASKED_FOR) -> Advice:
    planned = planned_of(parse_spec(text, None))
    return advice_on(planned.run, one_value=planned.one_value, patience=patience)


@pytest.mark.parametrize("text", [RING, COMPLETE], ids=["ring", "complete"])
def test_both_rows_are_what_plan_says_of_both_specs(text: str) -> None:
    spec = parse_spec(text, None)
    assert spec.noise.sigma is not None
    told = found(text)
    doubled = replace(spec, noise=replace(spec.noise, sigma=2.0 * spec.noise.sigma))
    assert told.line == f"--set noise.sigma={2.0 * spec.noise.sigma}"
    for each, prospect in zip((spec, doubled), told.prospects, strict=True):
        plan = plan_spec(each, None)
        document = plan.to_json()
        assert prospect.epsilon == document["headline"]["epsilon"]
        assert prospect.worst == float(document["worst"]["epsilon"])
        assert prospect.standard_error == plan.standard_error
    assert told.prospects[1].epsilon < told.prospects[0].epsilon


def test_reports_have_half_the_epsilon() -> None:
    told = found(HISTOGRAM)
    epsilon = parse_spec(HISTOGRAM, None).noise.epsilon
    assert epsilon is not None
    assert told.line == f"--set noise.epsilon={epsilon / 2.0}"
    assert told.prospects[1].epsilon < told.prospects[0].epsilon


def test_what_takes_long_is_refused_and_the_line_is_told() -> None:
    many = found(COMPLETE, Patience(users=4, steps=10**6))
    long = found(COMPLETE, Patience(users=100, steps=2))
    for told in (many, long):
        assert (told.prospects, told.line[:12]) == ((), "--set noise.")
        assert "takes long" in told.reason
    assert found(COMPLETE, IN_PASSING).prospects


def test_without_a_graph_or_noise_there_is_no_number() -> None:
    planned = planned_of(parse_spec(RING, None))
    told = advice_on(replace(planned.run, graph=None), one_value=True, patience=ASKED_FOR)
    assert "graph" in told.reason
    noise = replace(planned.run.spec.noise, mechanism="none", sigma=None)
    bare = replace(planned.run, spec=replace(planned.run.spec, noise=noise))
    assert advice_on(bare, one_value=True, patience=ASKED_FOR).line == ""
