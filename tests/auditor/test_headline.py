"""Which claim is an observer's bound, and which observers the headline and the worst bound are about."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.auditor.a_priori import claims_a_priori, epsilon_against
from p2pdp.auditor.context import NO_KEYS, NOT_AT_HAND
from p2pdp.auditor.headline import SEES_MORE, bounds_of, reading_of, verdict_in_advance, verdict_of
from p2pdp.core.claims import NOT_TRUSTED, Claim, Method, Refusal
from p2pdp.core.ids import Peer
from p2pdp.report.documents import bound_document
from p2pdp.report.page.words import in_words
from tests.support.plans import DELTA, plan
from tests.support.small import COMPLETE, HISTOGRAM, RING

CLAIM = Claim("node", "user", "replace", 1e-5, "exact", "public", 1.5, 0.75, 0.5, 0.25, (0, 2), True, None, ("a",))


def made(observer: str, epsilon: float | None, method: str = "exact", given: str = "public", **more: object) -> Claim:
    changed = {"observer": observer, "epsilon_max": epsilon, "method": method, "conditioning": given, **more}
    return replace(CLAIM, **changed)  # type: ignore[arg-type]


def bound(claims: list[Claim], observer: str = "node", refusals: tuple[Refusal, ...] = ()) -> tuple[float, str | None]:
    (found,) = (one for one in bounds_of(claims, refusals, 5, 1e-5) if one.observer == observer)
    return found.epsilon, found.conditioning


@pytest.mark.parametrize(
    ("epsilon", "word"),
    [(0.0, "strong"), (0.999, "strong"), (1.0, "moderate"), (5.0, "moderate"), (5.001, "weak"), (1e9, "weak"),
     (math.inf, "none")],
)  # fmt: skip
def test_an_epsilon_in_one_word(epsilon: float, word: str) -> None:
    assert reading_of(epsilon, 1e-5) == word
    assert reading_of(epsilon, 0.01) == "none", "anything may be told with a chance of 0.01"


def test_the_smallest_bound_of_one_conditioning_counts() -> None:
    assert bound([made("node", 3.0), made("node", 2.0, "iteration"), made("network", 2.5, "local")]) == (2.0, "public")
    assert bound([made("node", 3.0), made("network", 2.5, "local")]) == (2.5, "public"), "it sees no less than a user"
    assert bound([made("node", 3.0), made("node", 1.0, "published:x", bound=False)]) == (3.0, "public")
    assert bound([made("node", None), made("node", 3.0, "local")]) == (3.0, "public")


def test_conditionings_are_never_mixed_even_where_the_other_is_smaller() -> None:
    both = [made("node", 1.0), made("node", 2.0, "hidden-path", "view"), made("network", 0.5, "local")]
    assert bound(both) == bound(both[::-1]) == (2.0, "view")
    assert bound([*both, made("network", 1.5, "other", "view")]) == (1.5, "view")
    assert bound([made("network", 4.0, "local"), made("network", 3.0, "x", "view")]) == (3.0, "view")


def test_whoever_holds_no_key_bounds_nobody_who_holds_one() -> None:
    """One end of a pair knows what the two drew together, and its own noise, which no message tells."""
    claims = [made("network", 0.1, assumptions=("a", NO_KEYS)), made("network", 1.0, "local"), made("node", 0.2)]
    assert bound(claims) == (0.2, "public")
    assert bound(claims[:2]) == (1.0, "public")
    assert bound(claims, "network") == (0.1, "public")
    assert verdict_of(claims, (), 5, 1e-5).worst.epsilon == 1.0


def test_whoever_only_watches_wires_bounds_nobody_else() -> None:
    claims = [made("network", 0.1, Method.SHUFFLE), made("network", 1.0, "local")]
    assert bound(claims) == (1.0, "public")
    assert bound(claims, "network") == (1.0, "public"), "the whole network is not only its wires"


def test_a_claim_that_leaves_out_users_who_know_too_much_is_none_about_users() -> None:
    claims = [made("node", 1.0, "hidden-path", "view"), made("node", 2.0)]
    assert bound(claims, refusals=(Refusal("node", "hidden-path", "user 3: it was told more"),)) == (2.0, "public")
    assert bound(claims[:1], refusals=(Refusal("node", "hidden-path", "user 3: it was told more"),)) == (1.0, "view")
    assert bound(claims, refusals=(Refusal("node", "hidden-path", f"user 3: {NOT_AT_HAND}"),)) == (1.0, "view")
    assert bound(claims, refusals=(Refusal("network", "hidden-path", "it sees all"),)) == (1.0, "view")


def test_the_headline_is_the_worst_of_those_whom_nobody_trusts() -> None:
    claims = [made(one, epsilon) for one, epsilon in zip((*NOT_TRUSTED, *SEES_MORE), range(7), strict=True)]
    verdict = verdict_of(claims, [], 5, 1e-5)
    assert (verdict.headline.observer, verdict.headline.epsilon) == ("public", 2.0)
    assert (verdict.worst.observer, verdict.worst.epsilon) == ("network", 5.0), "which covers a broker"
    alone = verdict_of(claims[:1], [], 5, 1e-5)
    assert (alone.headline.observer, alone.headline.epsilon, alone.headline.method) == ("curator", math.inf, None)
    assert alone.worst == alone.headline


def test_a_refused_observer_counts_as_unbounded() -> None:
    claims = [made(one, 1.0) for one in NOT_TRUSTED]
    verdict = verdict_of(claims, [Refusal("network", "local", "a ledger is missing")], 5, 1e-5)
    assert (verdict.headline.epsilon, verdict.headline.reading) == (1.0, "moderate")
    assert (verdict.worst.observer, verdict.worst.epsilon, verdict.worst.claim) == ("network", math.inf, None)


def test_users_whose_views_are_not_known_are_named_beside_the_bound() -> None:
    lacking = [Refusal("node", "exact", f"user {user}: {NOT_AT_HAND}", user) for user in (3, 1)]
    claims = [made("node", 1.0, "exact"), made("curator", 2.0, "exact"), made("public", 0.5, "exact")]
    verdict = verdict_of(claims, lacking, 5, 1e-5)
    assert (verdict.headline.observer, verdict.headline.left_out) == ("curator", (1, 3))
    assert bound_document(verdict.headline)["left_out"] == [1, 3]
    assert "users 1, 3" in in_words(bound_document(verdict.headline), bound_document(verdict.worst))[0]
    whole = verdict_of([made("network", 3.0, "local")], lacking, 5, 1e-5).headline
    assert whole.left_out == (), "a bound on what everybody saw together covers them"
    assert "left_out" not in bound_document(whole)


def test_of_equals_the_worst_is_whoever_sees_most_and_the_headline_a_user() -> None:
    verdict = verdict_of([made("network", 3.0, "local"), made("broker", 3.0, "local")], [], 5, 1e-5)
    assert (verdict.headline.observer, verdict.worst.observer) == ("node", "network")
    assert verdict_of([made("network", 3.0, "local")], [], 1, 1e-5).headline.observer == "curator", "there is no other"


EPSILONS = st.sampled_from([0.0, 0.5, 2.0, 7.0, math.inf])
CLAIMS = st.lists(
    st.builds(made, st.sampled_from(NOT_TRUSTED + SEES_MORE), EPSILONS,
              st.sampled_from([Method.EXACT, Method.LOCAL, Method.SHUFFLE]), st.sampled_from(["view", "public"])),
    max_size=9,
)  # fmt: skip


@given(CLAIMS)
def test_the_worst_is_never_below_the_headline_nor_that_below_a_bound_of_its_observers(claims: list[Claim]) -> None:
    verdict = verdict_of(claims, [], 4, 1e-5)
    assert verdict.worst.epsilon >= verdict.headline.epsilon
    assert verdict.headline.observer in NOT_TRUSTED
    for one in bounds_of(claims, [], 4, 1e-5):
        assert one.epsilon <= verdict.worst.epsilon
        assert len({claim.conditioning for claim in one.claims}) <= 1
        assert one.epsilon in {claim.epsilon_max for claim in claims} | {math.inf}


@pytest.mark.parametrize("text", [RING, COMPLETE, HISTOGRAM])
def test_in_advance_it_is_that_of_the_a_priori_claims(text: str) -> None:
    run = plan(text)
    colluders: tuple[Peer, ...] = (1,)
    verdict = verdict_in_advance(run, DELTA, colluders, one_value=True)
    assert verdict.headline.conditioning in ("a-priori", None)
    assert verdict.headline.epsilon == epsilon_against(NOT_TRUSTED, run, DELTA, one_value=True)
    found = claims_a_priori(run, DELTA, colluders, one_value=True)
    assert verdict == verdict_of(found.claims, found.refusals, run.n, DELTA)
