"""What every accountant that `p2pdp account` names owes to its callers; they are found by their files' names.

Each is asked over all that it declares: extremes, and values spread evenly over the orders of magnitude between.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.core.errors import Refused, UsageError
from p2pdp.privacy.contract import Answer, Input, account, accountant, names


def values(name: str, one: Input) -> st.SearchStrategy[Any]:
    """Every value that the input admits, extremes and round numbers often."""
    if one.name == "n" and any(other.name == "graph" for other in accountant(name).inputs):
        return st.integers(round(one.least), GRAPH_NODES_MAX)
    if one.kind == "name":
        return st.sampled_from(one.choices)
    low, high = max(one.least, 1e-300), one.most
    spread = st.floats(math.log(low), math.log(min(high, 1e300))).map(math.exp)
    ends = [one.least, min(one.most, 1e300), 1e-12, 1e-6, 0.5, 1.0, 2.0, 50.0, 1e6]
    some = st.one_of(spread, st.sampled_from(ends))
    some = some.map(lambda value: float(min(max(value, one.least), one.most)))
    return some.map(round) if one.kind == "whole" else some.filter(one.admits)


@st.composite
def questions(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """A value for each required input and for some of the others."""
    return {one.name: draw(values(name, one)) for one in accountant(name).inputs if one.required or draw(st.booleans())}


FEW = settings(max_examples=30)
GRAPH_NODES_MAX = 60  # larger graphs are as right, and slow
EACH = pytest.mark.parametrize("name", names())


@EACH
@FEW
@given(data=st.data())
def test_every_question_within_range_is_answered_or_refused(name: str, data: st.DataObject) -> None:
    asked = data.draw(questions(name))
    try:
        answer = account(name, asked)
    except (Refused, UsageError):
        return
    assert isinstance(answer, Answer)
    assert answer.outputs
    for value in answer.outputs.values():
        assert isinstance(value, int | float)
        assert value >= 0.0  # which nan is not
    if "lower" in answer.outputs:
        assert answer.outputs["lower"] <= answer.outputs["upper"]
    assert answer.assumptions
    assert answer.source
    assert account(name, asked) == answer


@EACH
def test_each_is_described_in_one_line(name: str) -> None:
    found = accountant(name)
    assert len({one.name for one in found.inputs}) == len(found.inputs)
    for text in (found.help, *(one.help for one in found.inputs)):
        assert text
        assert "\n" not in text
        assert len(text) <= 100
    for one in found.inputs:
        assert one.default is None or one.admits(one.default)
        assert not (one.optional and one.default is not None)


@EACH
@FEW
@given(data=st.data())
def test_what_an_input_does_not_admit_is_refused_by_name(name: str, data: st.DataObject) -> None:
    asked = data.draw(questions(name))
    for one in accountant(name).inputs:
        for bad in (math.nan, math.inf, -math.inf, -1.0, "a word", None, True, [1.0]):
            if isinstance(bad, float) and one.kind == "number" and one.admits(bad):
                continue
            with pytest.raises(UsageError, match=f"^account {name}: {one.name}: "):
                account(name, {**asked, one.name: bad})


TELLS = {
    **dict.fromkeys("mu rdp epsilon epsilon0 k laps hops lipschitz sum_p2".split(), 1),
    **dict.fromkeys("sigma delta delta_prime delta_hat delta2 kappa n".split(), -1),
}
EXCEPT = {
    *(("gossip_table1", "n"), ("pairwise", "n"), ("walk_any_graph", "n")),  # another n is another graph
    ("krr_shuffle", "n"),  # its upper end is rounded more coarsely where there are more reports
    ("network_shuffle_all", "n"),  # printed with (1 - 1/n) sum_p2, where sum_p2 does not fall with n
}
HEADLINES = ("epsilon", "upper")


@EACH
@FEW
@given(data=st.data())
def test_more_tells_no_less_and_more_protection_no_more(name: str, data: st.DataObject) -> None:
    asked = data.draw(questions(name))
    telling = [
        one for one in accountant(name).inputs if one.name in TELLS.keys() & asked and (name, one.name) not in EXCEPT
    ]
    one = data.draw(st.sampled_from(telling))
    low, high = sorted((asked[one.name], data.draw(values(name, one))))
    if TELLS[one.name] < 0:
        low, high = high, low
    try:
        less, more = (account(name, {**asked, one.name: value}).outputs for value in (low, high))
    except (Refused, UsageError):
        return
    for headline in HEADLINES:
        if headline in less:
            assert less[headline] <= more[headline] * (1 + 1e-6) + 1e-9, one.name


COMPOSED = {"delta": 1e-9, "delta_prime": 1e-6}
WALKED = {**COMPOSED, "n": 10**9, "hops": 10**9, "delta_hat": 1e-6}
LIMITS = [
    ("gaussian", {"mu": 1.0, "delta": 0.99}, 0.0),
    ("gaussian", {"mu": 1e-9, "delta": 1e-9}, 0.0),
    ("rdp_to_dp", {"alpha": 1e9, "rdp": 1e-12, "delta": 0.5}, 1e-8),
    ("advanced_composition", {**COMPOSED, "epsilon": 0.0, "k": 1000}, 0.0),
    ("ring_sum", {**COMPOSED, "epsilon": 0.0, "laps": 1000}, 0.0),
    ("ring_histogram", {**COMPOSED, "epsilon": 1e-12, "n": 10**6, "categories": 5, "laps": 1}, 1e-11),
    ("complete_sum_v1", {**WALKED, "epsilon": 0.0}, 0.0),
    ("complete_sum", {**WALKED, "epsilon": 0.0}, 0.0),
    ("complete_sgd", {"sigma": 1e3, "lipschitz": 1.0, "n": 10**9, "hops": 10**9, "delta": 1e-3}, 1e-2),
    ("walk_any_graph", {"graph": "ring", "n": 9, "hops": 10, "alpha": 2.0, "sigma": 1e6}, 1e-10),
]


@pytest.mark.parametrize(("name", "asked", "most"), LIMITS)
def test_limits(name: str, asked: dict[str, Any], most: float) -> None:
    """Where nothing is told, everything is excused, or users are without number, epsilon goes to 0."""
    assert account(name, asked).outputs["epsilon"] <= most
