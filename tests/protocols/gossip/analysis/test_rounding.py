"""Blurs against the errors that machines really make: each beside a twin that gets the same and is exact."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2pdp.auditor.context import AuditContext
from p2pdp.core.draws import DITHER, Mechanism
from p2pdp.core.step import Message
from p2pdp.protocols.dithering import Reach
from p2pdp.protocols.gossip.analysis import rounding as gossip_rounding
from p2pdp.protocols.gossip.analysis.account import gossip_account
from p2pdp.protocols.gossip.analysis.rounding import Blur, _Errors, foreseen, rounding_of
from p2pdp.protocols.gossip.analysis.views import graph_of
from p2pdp.protocols.gossip.gossiping import Gossip
from p2pdp.sim.faults import Partition
from p2pdp.topology.graphs import Graph, graph_of_edges
from tests.support.gossip_world import PATIENCE_S, GossipWorld, Noise, Value, coins_of, plan_of
from tests.support.gossips import context_of, gossip
from tests.support.runs import quiet, run_of

TEXTS = {
    "ring": gossip(8, "ring", "rounds = 6"),
    "star": gossip(5, "star", "rounds = 9"),
    "accelerated": gossip(8, "hypercube", "rounds = 5\naccelerated = true"),
    "noised": gossip(6, "ring", "rounds = 4\nmessage_sigma = 0.5"),
    "published": gossip(6, "path", 'rounds = 4\npublish = "one"'),
}


def nu_of(context: AuditContext, *, by_machines: bool = False) -> float:
    return rounding_of(context, None if by_machines else graph_of(context)).nu


@pytest.mark.parametrize("name", TEXTS)
def test_both_ways_to_errors_agree_within_a_factor(name: str) -> None:
    context = context_of(quiet(TEXTS[name]))
    weights, machines = nu_of(context), nu_of(context, by_machines=True)
    assert (1e-14 if name == "noised" else 1e-8) < weights < 1e-4
    assert 0.3 < machines / weights < 3.0
    graph = graph_of(context)
    assert graph is not None
    assert foreseen(context.run, graph).nu == pytest.approx(weights, rel=1e-12)


def test_other_runs_have_bounds_of_their_own() -> None:
    late = TEXTS["accelerated"]
    run = run_of(late, partitions=(Partition(0.6, 4.6, frozenset({3, -1, -2})),), delay_s=0.1)
    found = rounding_of(context_of(run), graph_of(context_of(run)))
    assert 1e-8 < found.nu < 1e-3
    assert len(found.assumptions) == 2, "that states stay in range is then an assumption"
    for text in (
        gossip(6, "ring", "activations = 40", protocol="randomized"),
        gossip(6, "erdos_renyi", "rounds = 5", extra="changing = true\nprobability = 0.6"),
    ):
        assert 1e-8 < nu_of(context_of(quiet(text))) < 1e-4


def test_scales_are_those_of_the_records() -> None:
    context = context_of(quiet(TEXTS["ring"]))
    before, draws = nu_of(context), context.transcript.draws

    def weaker(one: Any, times: float) -> Any:
        return one._replace(scale=one.scale * times) if one.name == DITHER else one

    for user in draws:
        draws[user] = [weaker(one, 1e-3) for one in draws[user]]
    assert nu_of(context) == pytest.approx(1000.0 * before)
    draws[2] = [one for one in draws[2] if one.name != DITHER]
    assert math.isinf(nu_of(context))
    claims = gossip_account(context).claims
    local = context.sensitivity / context.run.plan.noise.scale
    assert claims[0].mu_mean == pytest.approx(local * 12 / 14, rel=0.2), "all that is told is then told wholly"


def test_rounding_is_in_claims_and_in_epsilon_and_not_in_mu_of_pairs() -> None:
    context = context_of(quiet(gossip(16, "hypercube", "rounds = 4")))
    found, nu = gossip_account(context), nu_of(context)
    assert found.mu is not None
    assert found.epsilon is not None
    claim = found.claims[0]
    local = context.sensitivity / context.run.plan.noise.scale
    assert claim.mu_max == pytest.approx(local, rel=1e-11), "nobody is told more than the noised value"
    partial = found.mu[(found.mu > 0) & (found.mu < 0.99 * local)]
    assert len(partial)
    mean = np.nanmean(found.mu) + 2.0 * nu * len(partial) / np.sum(~np.isnan(found.mu))
    assert claim.mu_mean == pytest.approx(mean, rel=1e-9)
    leak = found.leak
    assert leak is not None
    np.testing.assert_allclose(found.mu[~np.isnan(leak)], local * np.sqrt(leak[~np.isnan(leak)]), rtol=1e-11)


def test_without_noise_nothing_is_added() -> None:
    text = gossip(5, "ring", "rounds = 3", noise='mechanism = "none"')
    context = context_of(quiet(text))
    assert nu_of(context) == 0.0
    mu = np.array([0.0, 0.5, math.nan, math.inf])
    added = replace(rounding_of(context, None), nu=0.1).added_to(mu, 1.0)
    np.testing.assert_array_equal(added, [0.0, 0.7, math.nan, math.inf])
    assert gossip_rounding.Rounding(1.0, ()).added_to(np.array([0.5]), 1.0)[0] == 1.0


GRAPHS = (
    graph_of_edges(4, [(0, 1), (0, 2), (0, 3)]),
    graph_of_edges(5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]),
    graph_of_edges(5, [(a, b) for a in range(5) for b in range(a)]),
)


class Exact:
    """Numbers without rounding."""

    def __init__(self, value: Any) -> None:
        self.value = value.value if isinstance(value, Exact) else Fraction(float(value))

    def _of(self, value: Fraction) -> Exact:
        found = Exact(0)
        found.value = value
        return found

    def __add__(self, other: Any) -> Exact:
        return self._of(self.value + Exact(other).value)

    def __sub__(self, other: Any) -> Exact:
        return self._of(self.value - Exact(other).value)

    def __rsub__(self, other: Any) -> Exact:
        return Exact(other) - self

    def __mul__(self, factor: float) -> Exact:
        return self._of(self.value * Fraction(factor))


class Watched:
    """A machine with an exact and a blurred twin, which are told all that it is told."""

    def __init__(self, world: GossipWorld, user: int) -> None:
        near, plan = world.graph.neighbours[user], world.plan
        self.errors = _Errors(plan.fine / 2.0)
        values = (world.values[user], Exact(world.values[user]), self.errors.zero())
        plans = (plan, replace(plan, dither=None, message_noise=None), plan)
        self.each = [Gossip(one, user, near, Value(value)) for one, value in zip(plans, values, strict=True)]
        coins = [coins_of(world.seed, world.graph.n)[user] for _ in range(3)]
        self.draws = [Noise(world.seed * 1000 + user, one) for one in coins]
        self.worst, self.bound = 0.0, 0.0
        self.fine = plan.fine

    def _tell(self, what: str, *terms: Any) -> Any:
        steps = []
        for at, (machine, draws) in enumerate(zip(self.each, self.draws, strict=True)):
            mine = [self._as(at, term) for term in terms]
            steps.append(getattr(machine, what)(*mine[:-1], draws))
        state, exact, blur = (machine._state for machine in self.each)
        if isinstance(blur, Blur):
            off = abs(Fraction(float(state)) - exact.value)
            assert off <= blur.size
            self.worst, self.bound = max(self.worst, float(off) / self.fine), max(self.bound, blur.size / self.fine)
        return steps[0]

    def _as(self, at: int, term: Any) -> Any:
        if not isinstance(term, Message) or term.value is None or at == 0:
            return term
        return term._replace(value=Exact(term.value) if at == 1 else self.errors.zero(self.errors.rounding))

    def start(self, *terms: Any) -> Any:
        return self._tell("start", *terms)

    def receive(self, *terms: Any) -> Any:
        return self._tell("receive", *terms)

    def wake(self, *terms: Any) -> Any:
        return self._tell("wake", *terms)

    def excluded(self, *terms: Any) -> Any:
        return self._tell("excluded", *terms)


def watched(graph: Graph, rounds: int, seed: int, *, accelerated: bool, **more: Any) -> GossipWorld:
    gaussian = Mechanism("gaussian", 2.0**30)
    reach = Reach(1.0, 1.0, 1.0, rounds, graph.n, 1.9 if accelerated else 1.0).dithering(gaussian)
    plan = plan_of(graph, rounds, accelerated=accelerated, noise=gaussian, grid_exponent=-30, **reach, **more)
    world = GossipWorld(plan, graph, [0.1 * user for user in range(graph.n)], seed=seed)
    world.machines = [Watched(world, user) for user in range(graph.n)]  # type: ignore[misc]
    return world


@given(
    graph=st.sampled_from(GRAPHS), rounds=st.integers(1, 9), seed=st.integers(0, 10**6), accelerated=st.booleans(),
    noised=st.booleans(), disturbed=st.booleans(),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_no_machine_errs_by_more_than_its_blur(
    graph: Graph, rounds: int, seed: int, accelerated: bool, noised: bool, disturbed: bool
) -> None:
    """With users who are late, rounds that are skipped and undone, and users who are put out."""
    world = watched(
        graph, rounds, seed, accelerated=accelerated, message_noise=Mechanism("gaussian", 2.0**28) if noised else None
    )
    world.start()
    if disturbed:
        world.asleep = {seed % graph.n}
        for _ in range(seed % 40):
            world.deliver()
        world.pass_time(PATIENCE_S * 2)
        world.deliver_all()
        world.asleep = set()
        if seed % 3 == 0:
            world.exclude(seed % graph.n)
    world.run()
    assert all(one.bound > 0.0 for one in world.machines)  # type: ignore[attr-defined]


@pytest.mark.parametrize("accelerated", [False, True])
def test_blurs_are_not_far_above_what_happens(accelerated: bool) -> None:
    world = watched(GRAPHS[1], 200, 1, accelerated=accelerated)
    world.start()
    world.run()
    worst = max(one.worst for one in world.machines)  # type: ignore[attr-defined]
    bound = max(one.bound for one in world.machines)  # type: ignore[attr-defined]
    assert bound / 30 < worst <= bound
    assert bound < (6.0 if not accelerated else 60.0)


def test_errors_keep_their_signs() -> None:
    errors = _Errors(0.5)
    one = (errors.zero(1.0) / 2.0).round() * 2.0
    assert one.size == 2.0
    assert (one - one * 0.5).size == pytest.approx(1.0 + 0.5 + 2 * 0.5 * 0.5 + 1.0, abs=1.5)
    assert (one - one).parts.tolist() == [0.0]
    other = (errors.zero(1.0) / 2.0).round() * 2.0
    assert (one + other).parts.tolist() == [2.0, 2.0]
    assert (other - one).parts.tolist() == [-2.0, 2.0]
    assert (other * 0.5 + one - other).parts.tolist() == [2.0, -1.0]
    assert (one + 3.0) is one
    assert (3.0 + one) is one


def test_what_is_left_of_old_errors_is_counted_without_signs() -> None:
    """So a state that forgets carries the errors of its last rounds, however many there were."""
    errors = _Errors(0.0)
    forgetting = remembering = errors.zero()
    expected = 0.0
    for _ in range(500):
        forgetting = ((forgetting * 0.5) / 2.0).round() * 2.0
        expected = expected * 0.5 + 1.0
        assert expected <= forgetting.size * (1 + 1e-12)
        assert forgetting.size <= expected * (1.0 + 1e-9)
    assert len(forgetting.parts) < 50
    for _ in range(300):
        remembering = (remembering / 2.0).round() * 2.0
    assert remembering.size == 300.0
    assert forgetting.first + len(forgetting.parts) == 500
    both = forgetting - remembering
    assert both.size == pytest.approx(forgetting.size + 300.0)
