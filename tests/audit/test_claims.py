from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.audit.claims import claim_of, gaussian_claim, kind_of, members_of, spread_of, views_of, worst_of
from p2pdp.audit.ground import NOT_AT_HAND, PASSED_THROUGH, Ground
from p2pdp.core.claims import Conditioning, Method, Name, Observer
from p2pdp.core.ids import CURATOR
from p2pdp.mechanisms import gaussian
from tests.support.learners import learning
from tests.support.runs import DELTA, quiet


def ground(colluders: tuple[int, ...] = (), incomplete: tuple[int, ...] = ()) -> Ground:
    run = quiet(learning(3, 9))
    return Ground(run.plan, run.contents(), run.transcript(), incomplete, DELTA, colluders)


@given(st.floats(0.0, math.inf), st.none() | st.floats(0.0, math.inf))
def test_a_mean_never_exceeds_the_largest_value(most: float, mean: float | None) -> None:
    claim = claim_of(
        Observer.NODE, Method.LOCAL, Conditioning.VIEW, DELTA, (0, 1), ["a"], epsilon=(most, mean), mu=(most, mean)
    )
    for largest, known in ((claim.epsilon_max, claim.epsilon_mean), (claim.mu_max, claim.mu_mean)):
        assert largest == most
        assert known == (None if mean is None else min(most, mean))


def test_what_all_claims_have_in_common_is_filled_in() -> None:
    claim = claim_of(Observer.PUBLIC, Method.LOCAL, Conditioning.PUBLIC, DELTA, None, ["a", "b"], epsilon=(1.0, None))
    assert (claim.unit, claim.relation, claim.bound, claim.violated_pairs) == ("user", "replace", True, None)
    assert (claim.mu_max, claim.mu_mean, claim.assumptions) == (None, None, ("a", "b"))


def test_a_gaussian_claim_is_that_of_its_worst_pair() -> None:
    mu = np.array([[np.nan, 0.5], [1.5, 0.0], [0.25, np.nan]])
    claim = gaussian_claim(Observer.COALITION, Method.EXACT, DELTA, mu, [(4, 5), (6,)], ["a"])
    assert claim.worst_pair == (1, (4, 5))
    assert (claim.mu_max, claim.mu_mean) == (1.5, pytest.approx(2.25 / 4))
    assert claim.epsilon_max == gaussian.epsilon_of(DELTA, 1.5)
    each = [gaussian.epsilon_of(DELTA, one) for one in (0.5, 1.5, 0.0, 0.25)]
    assert claim.epsilon_mean == pytest.approx(sum(each) / 4, rel=1e-6)
    assert claim.bound
    assert claim.delta == DELTA


def test_a_gaussian_claim_may_keep_a_part_of_delta_for_something_else() -> None:
    mu = np.array([[2.0], [1.0]])
    claim = gaussian_claim(Observer.NODE, Method.EXACT, DELTA, mu, [7], [], at=DELTA / 2, bound=False)
    assert (claim.delta, claim.epsilon_max) == (DELTA, gaussian.epsilon_of(DELTA / 2, 2.0))
    assert not claim.bound


def test_infinite_leaks_are_the_worst() -> None:
    mu = np.array([[1.0, math.inf], [math.inf, np.nan]])
    claim = gaussian_claim(Observer.NODE, Method.EXACT, DELTA, mu, [0, 1], [])
    assert (claim.worst_pair, claim.mu_max, claim.epsilon_max) == ((0, 1), math.inf, math.inf)


def test_of_equal_pairs_the_first_is_the_worst_and_no_pair_counts_for_nothing() -> None:
    values = np.array([[np.nan, 0.0], [0.0, np.nan]])
    assert worst_of(values, [3, 4]) == (0, 4)
    assert spread_of(np.array([[np.nan, 1.0], [3.0, np.nan]])) == (3.0, 2.0)


@pytest.mark.parametrize(
    ("name", "kind", "members"),
    [(3, Observer.NODE, (3,)), ((1, 2), Observer.COALITION, (1, 2)), (Observer.PUBLIC, Observer.PUBLIC, ())],
)
def test_names_say_what_kind_of_observer_it_is(name: Name, kind: Observer, members: tuple[int, ...]) -> None:
    assert (kind_of(name), members_of(name)) == (kind, members)


ROLES = {one: (lambda one=one: str(one)) for one in (Observer.CURATOR, Observer.PUBLIC, Observer.NETWORK)}


def test_views_are_gathered_by_observer() -> None:
    found, refusals = views_of(ground((2, 0)), Method.EXACT, list, ROLES)
    assert found == {
        Observer.NODE: [(0, [0]), (1, [1]), (2, [2])],
        Observer.COALITION: [((2, 0), [2, 0])],
        Observer.CURATOR: [(Observer.CURATOR, "curator")],
        Observer.PUBLIC: [(Observer.PUBLIC, "public")],
        Observer.NETWORK: [(Observer.NETWORK, "network")],
    }
    assert refusals == []


def test_views_that_are_not_at_hand_are_not_asked_for() -> None:
    asked: list[list[int]] = []
    found, refusals = views_of(ground((1, 2), (1, CURATOR)), Method.EXACT, lambda who: asked.append([*who]), ROLES)
    assert asked == [[0], [2]]
    assert set(found) == {Observer.PUBLIC}
    assert [(one.observer, one.reason) for one in refusals[:5]] == [
        (Observer.NODE, f"user 0: {PASSED_THROUGH}"),
        (Observer.NODE, f"user 1: {NOT_AT_HAND}"),
        (Observer.NODE, f"user 2: {PASSED_THROUGH}"),
        (Observer.COALITION, f"user 1: {NOT_AT_HAND}"),
        (Observer.CURATOR, NOT_AT_HAND),
    ]
    assert [one.observer for one in refusals[5:]] == [Observer.NETWORK]


def test_what_passed_through_others_is_refused() -> None:
    roles = {Observer.CURATOR: lambda: None}
    found, refusals = views_of(ground((0, 1)), Method.SHUFFLE, lambda _: None, roles)
    assert found == {}
    assert [one.observer for one in refusals] == [Observer.NODE] * 3 + [Observer.COALITION, Observer.CURATOR]
    assert all(one.reason.endswith(PASSED_THROUGH) and one.method == Method.SHUFFLE for one in refusals)
