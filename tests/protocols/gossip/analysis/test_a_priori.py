"""What is promised of gossip in advance holds for every run, however late, lossy or short of users."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.auditor.context import AuditContext
from p2pdp.core.claims import Claim
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.files.spec import parse_spec
from p2pdp.mechanisms import gaussian
from p2pdp.privacy.linear.published import theorem_4_alpha_most
from p2pdp.privacy.renyi import best_epsilon
from p2pdp.protocols.gossip.analysis import a_priori
from p2pdp.protocols.gossip.analysis.a_priori import WHATEVER_HAPPENS, gossip_a_priori, hidden_graph_account
from p2pdp.protocols.gossip.analysis.rounding import Rounding, at_most
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.sim.faults import Crash, Partition
from tests.support.distances import all_distances
from tests.support.gossips import context_of, gossip
from tests.support.runs import DELTA, quiet, run_of

CUT = Partition(0.6, 4.6, frozenset({3, BOOTSTRAP, CURATOR}))


def plan(text: str) -> RunPlan:
    spec = parse_spec(text, None)
    return plan_run(spec, spec.run.nodes, 1)


def one(run: RunPlan, observer: str, colluders: tuple[int, ...] = ()) -> Claim:
    return next(claim for claim in gossip_a_priori(run, DELTA, colluders).claims if claim.observer == observer)


@pytest.mark.parametrize(
    "text",
    [
        gossip(16, "hypercube", "rounds = 3"),
        gossip(16, "hypercube", "rounds = 3\naccelerated = true"),
        gossip(16, "ring", "rounds = 3"),
        gossip(12, "path", 'rounds = 2\npublish = "one"'),
        gossip(12, "path", 'rounds = 2\npublish = "all"'),
        gossip(8, "ring", "rounds = 3\nmessage_sigma = 0.3"),
        gossip(10, "ring", "activations = 12", protocol="randomized"),
        gossip(9, "star", 'activations = 9\npublish = "one"', protocol="randomized"),
    ],
)
@pytest.mark.parametrize("faults", ["none", "late", "gone"])
def test_no_audit_finds_more(text: str, faults: str) -> None:
    if faults == "none":
        run = quiet(text)
    elif faults == "late":
        run = run_of(text, partitions=(CUT,), delay_s=0.1)
    else:
        run = run_of(text, Crash(2, at_s=0.5, down_s=None), delay_s=0.1)
    colluders = (0, 5)
    gone = [user for user in run.world.out if user >= 0]
    after = run.audit(colluders)
    before = {claim.observer: claim for claim in gossip_a_priori(plan(text), DELTA, colluders).claims}
    compared = 0
    for claim in after.claims:
        if claim.method != "exact":
            continue
        promised = before[claim.observer]
        assert WHATEVER_HAPPENS in promised.assumptions
        assert (promised.bound, promised.conditioning) == (True, "a-priori")
        for name in ("epsilon_max", "epsilon_mean", "mu_max", "mu_mean"):
            if gone and name.endswith("mean"):
                continue  # of fewer observers
            found, most = getattr(claim, name), getattr(promised, name)
            assert found <= most * (1.0 + 1e-9), (claim.observer, name)
        compared += 1
    assert compared >= 3


def added(run: RunPlan) -> float:
    """What rounding adds to the mu of a pair, unless the local ceiling is below."""
    nu = at_most(run).nu
    assert 1e-9 < nu < 1e-3
    return 2.0 * nu


def test_users_who_are_too_far_tell_nothing() -> None:
    run = plan(gossip(16, "ring", "rounds = 3"))
    node, local = one(run, "node"), one(run, "network")
    assert node.mu_max == local.mu_max
    assert node.mu_mean == pytest.approx(0.5 * 6 / 15)
    assert node.epsilon_mean == pytest.approx(gaussian.epsilon_of(DELTA, 0.5) * 6 / 15)
    pooled = one(run, "coalition", (0, 1))
    assert pooled.mu_mean == pytest.approx(0.5 * 6 / 14)


def test_means_count_messages() -> None:
    run = plan(gossip(64, "hypercube", "rounds = 6"))
    assert one(run, "node").mu_mean == pytest.approx(0.5 * math.sqrt(6 * 6 / 63) + added(run))
    pairs = plan(gossip(64, "hypercube", "activations = 64", protocol="randomized"))
    assert one(pairs, "node").mu_mean == pytest.approx(0.5 * math.sqrt(2 / 63) + added(pairs))


def test_roles_see_what_is_published() -> None:
    for publish, most, mean in (("none", 0.0, 0.0), ("one", 0.5, 0.5 / 4), ("all", 0.5, 0.5)):
        run = plan(gossip(16, "hypercube", f'rounds = 3\npublish = "{publish}"'))
        for observer in ("curator", "public"):
            claim = one(run, observer)
            assert claim.mu_max == pytest.approx(most, rel=1e-9)
            assert claim.mu_mean == pytest.approx(mean + added(run) * (publish == "one"), rel=1e-9)


def test_without_a_graph_everybody_is_near() -> None:
    run = replace(plan(gossip(16, "ring", "rounds = 1")), graph=None)
    assert one(run, "node").mu_mean == pytest.approx(0.5)
    assert one(run, "curator").mu_max == 0.0


def test_other_noise_and_none_at_all() -> None:
    laplace = one(plan(gossip(16, "ring", "rounds = 2", noise='mechanism = "laplace"\nsigma = 2.0')), "node")
    assert laplace.mu_max is None
    assert laplace.epsilon_max is not None
    assert laplace.epsilon_mean == pytest.approx(laplace.epsilon_max * 4 / 15)
    bare = plan(gossip(16, "ring", "rounds = 2", noise='mechanism = "none"'))
    assert one(bare, "node").epsilon_mean == math.inf
    assert one(bare, "public").epsilon_max == 0.0


def test_a_single_user_has_no_other() -> None:
    claims = gossip_a_priori(plan(gossip(1, "complete", "rounds = 2")), DELTA, ()).claims
    assert [claim.observer for claim in claims] == ["curator", "public", "network"]


@given(st.floats(0.01, 20.0), st.floats(0.0, 1.0), st.sampled_from([1e-9, 1e-5, 1e-2, 0.3]))
def test_epsilon_is_convex_in_mu(mu: float, share: float, delta: float) -> None:
    """So a share of mu costs at most that share of epsilon."""
    assert gaussian.epsilon_of(delta, mu * share) <= share * gaussian.epsilon_of(delta, mu) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize(("kind", "n"), [("ring", 11), ("star", 6), ("hypercube", 16), ("complete", 5), ("path", 7)])
def test_pairs_are_counted_by_their_distance(kind: str, n: int) -> None:
    for rounds in (1, 2, 3, 20):
        run = plan(gossip(n, kind, f"rounds = {rounds}"))
        assert run.graph is not None
        near = int(np.sum(all_distances(run.graph) <= rounds)) - n
        share = math.sqrt(near * min(near, run.exchanges)) / (n * (n - 1))
        most = 0.5 * near / (n * (n - 1))
        assert one(run, "node").mu_mean == pytest.approx(min(most, 0.5 * share + 2.0 * most * added(run)))


@pytest.fixture(autouse=True)
def rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grounds are made up here, so no machine can be run again on them."""
    monkeypatch.setattr(a_priori, "rounding_of", lambda context, graph: Rounding(0.0, ("rounding",)))


RANDOM = gossip(20, "regular", "rounds = 3", extra="degree = 3")


def secret(context: AuditContext) -> AuditContext:
    """The same run as if pairs had tossed for its edges."""
    return replace(context, run=replace(context.run, plan=replace(context.run.plan, coin=0.1)))


def test_a_graph_from_the_seed_in_the_spec_is_known_so_nothing_is_bounded() -> None:
    (claim,) = hidden_graph_account(context_of(quiet(RANDOM))).claims
    assert claim.bound is False
    assert any("seed in the spec" in said for said in claim.assumptions)


def test_whom_one_met_tells_all_and_the_others_share_the_rest() -> None:
    context = secret(context_of(quiet(RANDOM)))
    (claim,) = hidden_graph_account(context).claims
    local = gaussian.epsilon_of(DELTA, 0.5)
    assert claim.bound is True
    assert claim.conditioning == "view"
    assert claim.epsilon_max == pytest.approx(local)
    assert claim.epsilon_mean == pytest.approx(local), "at small deltas the orders allowed are too small to beat it"


def test_others_than_those_it_met_have_the_lesser_of_theorem_and_ceiling() -> None:
    """[CEBM22, Theorem 4].

    16 of 19 are not met: 2 * 3 * 2 / 16 of local noise, as a divergence at orders up to that of sigma = 2 Delta.
    """
    delta = 0.14
    context = replace(secret(context_of(quiet(RANDOM))), delta=delta)
    (claim,) = hidden_graph_account(context).claims
    far = best_epsilon(
        lambda excess: (1.0 + excess) * 0.25 * 0.75 / 2.0, delta, excess_most=theorem_4_alpha_most(0.5) - 1.0
    )
    local = gaussian.epsilon_of(delta, 0.5)
    assert claim.epsilon_mean == pytest.approx((3 * local + 16 * min(far, local)) / 19)


def test_where_the_order_may_not_exceed_little_the_local_ceiling_is_less() -> None:
    context = secret(context_of(quiet(RANDOM.replace("sigma = 2.0", "sigma = 0.2"))))
    (claim,) = hidden_graph_account(context).claims
    assert claim.epsilon_mean == pytest.approx(gaussian.epsilon_of(DELTA, 5.0))


def test_it_has_nothing_to_say_about_known_graphs_pairs_and_other_noise() -> None:
    texts = (
        gossip(8, "ring"),
        gossip(4, "ring", "activations = 9", protocol="randomized"),
        gossip(8, "regular", extra="degree = 3\npublic = true"),
        gossip(8, "regular", extra="degree = 3", noise='mechanism = "none"'),
    )
    for text in texts:
        finding = hidden_graph_account(context_of(quiet(text)))
        assert (finding.claims, finding.refusals) == ([], [])


def test_published_values_and_missing_ledgers_are_refused() -> None:
    text = gossip(8, "regular", 'rounds = 2\npublish = "all"', extra="degree = 3")
    published = hidden_graph_account(context_of(quiet(text)))
    assert published.claims == []
    assert "published" in published.refusals[0].reason
    finding = hidden_graph_account(context_of(quiet(RANDOM), incomplete=(4,)))
    assert [one.reason.split(":")[0] for one in finding.refusals] == ["user 4"]
    assert len(finding.claims) == 1


def test_rounding_is_beside_the_theorem(monkeypatch: pytest.MonkeyPatch) -> None:
    context = replace(secret(context_of(quiet(RANDOM))), delta=0.14)
    (exact,) = hidden_graph_account(context).claims
    means = []
    for nu in (1e-6, 1e-5, math.inf):
        monkeypatch.setattr(a_priori, "rounding_of", lambda context, graph, nu=nu: Rounding(nu, ("said",)))
        (claim,) = hidden_graph_account(context).claims
        assert "said" in claim.assumptions
        means.append(claim.epsilon_mean)
    assert exact.epsilon_mean is not None
    assert exact.epsilon_mean <= means[0] <= means[1] <= exact.epsilon_mean * 1.01 <= means[2] * 1.01
