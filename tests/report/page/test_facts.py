from __future__ import annotations

import math
from array import array
from dataclasses import replace
from typing import Any

import pytest

from p2pdp.files.spec import parse_spec
from p2pdp.protocols.walk.analysis.fast import fast_descents, fast_outcome
from p2pdp.report.page.facts import outcome_of
from p2pdp.runs.prepared import prepare
from tests.support.learners import learning
from tests.support.made import claim, facts, verdict
from tests.support.small import ALL


def document(name: str = "ring") -> dict[str, Any]:
    prepared = prepare(parse_spec(ALL[name], None))
    return prepared.result(
        fast_outcome(prepared.run, prepared.rows, 1), verdict(1.0), missing=[2], faults={"gap": 3}
    ).to_json()


@pytest.mark.parametrize("name", ALL)
def test_every_result_is_read_back(name: str) -> None:
    made = document(name)
    found = outcome_of(made)
    assert (found.estimate, found.truth, found.error) == (made["estimate"], made["truth"], made["error"])
    assert found.local == made["baselines"]["local"]["standard_error"]
    assert (list(found.missing), found.faults, found.seeded) == ([2], {"gap": 3}, True)


def test_across_machines_nobody_knows_all_messages() -> None:
    found = outcome_of(document() | {"messages": None, "bytes": None})
    assert (found.messages, found.bytes) == (None, None)


def test_infinity_is_a_word_in_json() -> None:
    assert outcome_of(document() | {"standard_error": "inf"}).standard_error == math.inf


@pytest.mark.parametrize(
    "change",
    [
        {"estimate": "many"},
        {"estimate": {}},
        {"estimate": [[1.0]]},
        {"estimate": math.nan},
        {"truth": [1.0, math.nan]},
        {"baselines": {"local": 3}},
        {"baselines": None},
        {"messages": math.inf},
        {"missing": 3},
        {"missing": ["x"]},
        {"faults": []},
        {"seconds": None},
    ],
)
def test_what_is_no_result_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a result"):
        outcome_of(document() | change)


@pytest.mark.parametrize("name", ["estimate", "baselines", "faults", "seconds"])
def test_a_result_is_whole(name: str) -> None:
    made = document()
    del made[name]
    with pytest.raises(ValueError, match="not a result"):
        outcome_of(made)


def test_bounds_and_published_formulas_are_told_apart_and_colluders_are_those_of_the_claim() -> None:
    printed = claim(method="published:x", bound=False)
    together = claim(observer="coalition", worst_pair=(0, (1, 2)))
    made = facts(claims=[claim(), printed, together])
    assert made.bounds == [claim(), together]
    assert made.published == [printed]
    assert made.colluders == (1, 2)
    assert facts().colluders == ()
    assert "[run]" not in repr(replace(made, spec_text="[run]"))


def test_scores_of_a_model_are_read_with_those_it_is_compared_with() -> None:
    prepared_ = prepare(parse_spec(learning(4, 30), None))
    (found,) = fast_descents(prepared_.run, prepared_.rows, [1])
    made = prepared_.result(found, verdict(2.0), audited=False).to_json()
    told = outcome_of(made)
    assert told.score == "accuracy"
    assert told.scores["run"] == [made["scores"]["score"], None]
    assert list(told.scores) == ["run", "local", "central", "none"]
    assert outcome_of(document()).scores == {}
    lossy = made | {"scores": made["scores"] | {"score": None}}
    assert outcome_of(lossy).score == "loss"
    for wrong in ({"scores": 3}, {"scores": {"score": [1.0]}}):
        with pytest.raises(ValueError, match="not a result"):
            outcome_of(made | wrong)


def test_results_of_users_are_read_where_nothing_is_published() -> None:
    outputs = [{"user": user, "value": float(user)} for user in range(3)]
    told = outcome_of(document() | {"estimate": None, "outputs": outputs})
    assert (told.users_mean, told.users_furthest) == (1.0, 1.0)
    assert outcome_of(document() | {"outputs": outputs}).users_mean is None


def test_long_vectors_are_read_as_short_ones() -> None:
    vector = [0.5, 1.5]
    found = outcome_of(document() | {"estimate": array("d", vector), "truth": array("d", vector)})
    assert (found.estimate, found.truth) == (vector, vector)
    with pytest.raises(ValueError, match="not a result"):
        outcome_of(document() | {"truth": array("d", [1.0, math.nan])})
