"""Claims about the curator after skeletons were handed in: readable, sealed, and sealed with a size that tells."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.auditor.a_priori import claims_a_priori
from p2pdp.auditor.claims import (
    READABLE,
    Cost,
    claim_of,
    claims_with_broker,
    cost_of,
    gaussian_claim,
    kind_of,
    left_of,
    members_of,
    refusals_with_broker,
    spread_of,
    told_by_skeletons,
    views_of,
    worst_of,
)
from p2pdp.auditor.context import NOT_AT_HAND, PASSED_THROUGH, AuditContext
from p2pdp.auditor.verify import verify
from p2pdp.core.claims import Claim, Conditioning, Method, Name, Observer, Protected, Refusal, Relation, Unit
from p2pdp.core.errors import UsageError
from p2pdp.core.ids import CURATOR
from p2pdp.core.messages import SKELETON
from p2pdp.core.spec import AuditPart, Spec
from p2pdp.core.step import Message
from p2pdp.crypto.sealed_skeleton import sealed_bytes
from p2pdp.files.spec import parse_spec
from p2pdp.ledger.records import RECEIVED
from p2pdp.mechanisms import gaussian
from p2pdp.protocols.run_plan import skeleton_size
from p2pdp.replay.evidence import Evidence
from p2pdp.wire.codec import pack_message
from tests.support.estimates import PRIVATE
from tests.support.learners import learning, prepared
from tests.support.plans import node_epsilon
from tests.support.runs import DELTA, Run, Written, audited, quiet
from tests.support.shuffle_specs import EARLY

WHOLE = Protected(Unit.USER)


def context(colluders: tuple[int, ...] = (), incomplete: tuple[int, ...] = ()) -> AuditContext:
    run = quiet(learning(3, 9))
    return AuditContext(run.plan, run.contents(), run.transcript(), incomplete, DELTA, colluders)


@given(st.floats(0.0, math.inf), st.none() | st.floats(0.0, math.inf))
def test_a_mean_never_exceeds_the_largest_value(most: float, mean: float | None) -> None:
    claim = claim_of(
        WHOLE,
        Observer.NODE,
        Method.LOCAL,
        Conditioning.VIEW,
        DELTA,
        (0, 1),
        ["a"],
        epsilon=(most, mean),
        mu=(most, mean),
    )
    for largest, known in ((claim.epsilon_max, claim.epsilon_mean), (claim.mu_max, claim.mu_mean)):
        assert largest == most
        assert known == (None if mean is None else min(most, mean))


def test_what_all_claims_have_in_common_is_filled_in() -> None:
    claim = claim_of(
        WHOLE, Observer.PUBLIC, Method.LOCAL, Conditioning.PUBLIC, DELTA, None, ["a", "b"], epsilon=(1.0, None)
    )
    assert (claim.unit, claim.relation, claim.bound, claim.violated_pairs) == ("user", "replace", True, None)
    assert (claim.mu_max, claim.mu_mean, claim.assumptions) == (None, None, ("a", "b"))


def test_a_claim_says_what_it_protects() -> None:
    for unit in Unit:
        for relation in Relation:
            made = Protected(unit, relation)
            claim = gaussian_claim(made, Observer.NODE, Method.EXACT, DELTA, np.array([[1.0]]), [7], [])
            assert (claim.unit, claim.relation) == (unit, relation)


def test_a_gaussian_claim_is_that_of_its_worst_pair() -> None:
    mu = np.array([[np.nan, 0.5], [1.5, 0.0], [0.25, np.nan]])
    claim = gaussian_claim(WHOLE, Observer.COALITION, Method.EXACT, DELTA, mu, [(4, 5), (6,)], ["a"])
    assert claim.worst_pair == (1, (4, 5))
    assert (claim.mu_max, claim.mu_mean) == (1.5, pytest.approx(2.25 / 4))
    assert claim.epsilon_max == gaussian.epsilon_of(DELTA, 1.5)
    each = [gaussian.epsilon_of(DELTA, one) for one in (0.5, 1.5, 0.0, 0.25)]
    assert claim.epsilon_mean == pytest.approx(sum(each) / 4, rel=1e-6)
    assert claim.bound
    assert claim.delta == DELTA


def test_a_gaussian_claim_may_keep_a_part_of_delta_for_something_else() -> None:
    mu = np.array([[2.0], [1.0]])
    claim = gaussian_claim(WHOLE, Observer.NODE, Method.EXACT, DELTA, mu, [7], [], at=DELTA / 2, bound=False)
    assert (claim.delta, claim.epsilon_max) == (DELTA, gaussian.epsilon_of(DELTA / 2, 2.0))
    assert not claim.bound


def test_infinite_leaks_are_the_worst() -> None:
    mu = np.array([[1.0, math.inf], [math.inf, np.nan]])
    claim = gaussian_claim(WHOLE, Observer.NODE, Method.EXACT, DELTA, mu, [0, 1], [])
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
    found, refusals = views_of(context((2, 0)), Method.EXACT, list, ROLES)
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
    found, refusals = views_of(context((1, 2), (1, CURATOR)), Method.EXACT, lambda who: asked.append([*who]), ROLES)
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
    found, refusals = views_of(context((0, 1)), Method.SHUFFLE, lambda _: None, roles)
    assert found == {}
    assert [one.observer for one in refusals] == [Observer.NODE] * 3 + [Observer.COALITION, Observer.CURATOR]
    assert all(one.reason.endswith(PASSED_THROUGH) and one.method == Method.SHUFFLE for one in refusals)


TEXT = """[run]
protocol = "walk.sum"
nodes = 4
transport = "{}"
[graph]
kind = "ring"
[walk]
order = "ring"
laps = 1
[noise]
mechanism = "none"
[data]
kind = "uniform"
clip = [0.0, 1.0]
"""


def spec(transport: str) -> Spec:
    return parse_spec(TEXT.format(transport), None)


def claim(observer: str) -> Claim:
    return Claim(
        observer, "user", "replace", 1e-6, "exact", "public", 2.0, 1.0, None, None, (0, observer), True, None, ("a",)
    )


def test_a_broker_has_what_whoever_watches_the_network_has() -> None:
    claims = [claim("node"), claim("network"), claim("public")]
    found = claims_with_broker(spec("mqtt"), claims)
    assert [one.observer for one in found] == ["node", "network", "broker", "public"]
    assert found[2] == replace(claims[1], observer="broker", worst_pair=(0, "broker"))
    nowhere = replace(claims[1], worst_pair=None)
    assert claims_with_broker(spec("mqtt"), [nowhere])[1].worst_pair is None


def test_it_is_refused_what_the_network_is_refused_once() -> None:
    refusals = [
        Refusal("network", "exact", "so"),
        Refusal("network", "shuffle", "too"),
        Refusal("broker", "exact", "x"),
    ]
    found = refusals_with_broker(spec("mqtt"), refusals)
    assert [(one.observer, one.method, one.reason) for one in found] == [
        ("network", "exact", "so"),
        ("network", "shuffle", "too"),
        ("broker", "shuffle", "too"),
        ("broker", "exact", "x"),
    ]


def test_without_a_broker_nothing_is_said_of_one() -> None:
    for transport in ("tcp", "memory"):
        assert claims_with_broker(spec(transport), [claim("network")]) == [claim("network")]
        refusal = Refusal("network", "exact", "so")
        assert refusals_with_broker(spec(transport), [refusal]) == [refusal]


PUBLIC = learning(5, 60, data="unit_norm = true")


def test_only_estimates_cost_something() -> None:
    assert cost_of(prepared(PUBLIC)[0].spec) is None
    assert cost_of(prepared(learning())[0].spec) is None, "public ranges are free"
    assert cost_of(prepared(PRIVATE)[0].spec) == Cost(0.5, 4e-6)


def test_an_audit_adds_their_cost_to_every_claim() -> None:
    whole, dear = quiet(PUBLIC).audit(delta=6e-6), quiet(PRIVATE).audit(delta=1e-5)
    assert len(whole.claims) == len(dear.claims)
    for free, claim in zip(whole.claims, dear.claims, strict=True):
        assert (free.observer, free.method) == (claim.observer, claim.method)
        assert claim.delta == pytest.approx(1e-5)
        assert free.epsilon_max is not None
        assert claim.epsilon_max == pytest.approx(free.epsilon_max + 0.5)
        assert claim.mu_max is None
        assert any("standardized cost epsilon 0.5" in text for text in claim.assumptions)
    assert whole.epsilon is not None
    assert dear.epsilon == pytest.approx(whole.epsilon + 0.5, nan_ok=True)


def test_a_plan_does_too() -> None:
    free = claims_a_priori(prepared(PUBLIC)[0], 6e-6, (), one_value=False)
    dear = claims_a_priori(prepared(PRIVATE)[0], DELTA, (), one_value=False)
    for one, other in zip(free.claims, dear.claims, strict=True):
        assert other.epsilon_max == pytest.approx((one.epsilon_max or 0.0) + 0.5, rel=1e-6)
    bound = node_epsilon(prepared(PRIVATE)[0], DELTA, one_value=False)
    assert bound == pytest.approx(node_epsilon(prepared(PUBLIC)[0], 6e-6, one_value=False) + 0.5, rel=1e-6)


def test_a_delta_that_they_use_up_is_refused() -> None:
    assert left_of(1e-5, None) == 1e-5
    with pytest.raises(UsageError, match="leaves nothing"):
        quiet(PRIVATE).audit(delta=4e-6)
    with pytest.raises(UsageError, match="leaves nothing"):
        claims_a_priori(prepared(PRIVATE)[0], 1e-6, (), one_value=False)


KEY = AuditPart("09" * 32)


def with_skeleton(run: Run, user: int, size: int, audit: AuditPart) -> Evidence:
    """The evidence had this user handed in so many bytes, under a spec with this section."""
    piece = Written(RECEIVED, (0.0, user, pack_message(Message(SKELETON, (0, size))), bytes(16)), bytes(24))
    view = run.rewritten(CURATOR, lambda written: [*written[:-1], piece, *written[-1:]])
    return replace(run.having(CURATOR, view), spec=replace(run.evidence.spec, audit=audit))


def context_of(run: Run, evidence: Evidence) -> AuditContext:
    found = verify(replace(evidence, spec=run.evidence.spec))
    plan = replace(run.plan, spec=evidence.spec)
    return AuditContext(plan, found.views, run.transcript(), (), DELTA, ())


@pytest.fixture(scope="module")
def run() -> Run:
    return quiet(EARLY)


def test_without_skeletons_nothing_is_told(run: Run) -> None:
    assert told_by_skeletons(context_of(run, run.evidence)) is None


def test_readable_ones_tell_every_route(run: Run) -> None:
    assert told_by_skeletons(context_of(run, with_skeleton(run, 3, 5000, AuditPart()))) == READABLE


def test_sealed_ones_tell_nothing_unless_one_did_not_fit(run: Run) -> None:
    size = skeleton_size(run.plan, 4)
    fits = with_skeleton(run, 3, sealed_bytes(size), KEY)
    assert told_by_skeletons(context_of(run, fits)) is None
    lengthened = with_skeleton(run, 3, sealed_bytes(2 * size), KEY)
    assert "user 3" in (told_by_skeletons(context_of(run, lengthened)) or "")
    context = context_of(run, fits)
    without = replace(context, views={peer: view for peer, view in context.views.items() if peer != 3})
    assert "user 3" in (told_by_skeletons(without) or "")


def test_the_claim_about_the_curator_is_refused_and_that_about_the_public_stays(run: Run) -> None:
    evidence = with_skeleton(run, 3, 5000, AuditPart())
    found = audited(evidence, verify(evidence), (), DELTA)
    assert ("curator", READABLE) in {(refusal.observer, refusal.reason) for refusal in found.refusals}
    methods = {(claim.observer, claim.method) for claim in found.claims}
    assert ("curator", "shuffle") not in methods
    assert ("public", "shuffle") in methods
