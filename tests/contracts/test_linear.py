"""Every exact claim against the linear account, and the linear account against dense matrices.

Runs are plain, lossy, cut in two, with crashes, restarts and exclusions, several tokens, vectors, noise on messages,
acceleration, results that are published and graphs that change.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from p2pdp.auditor.audit import audit_run
from p2pdp.auditor.exact import ExactAuditor
from p2pdp.core.spec import Spec
from p2pdp.files.spec import load_spec, parse_spec
from p2pdp.protocols.gossip.analysis.account import gossip_account
from p2pdp.protocols.gossip.analysis.averages import linear_account
from p2pdp.protocols.gossip.analysis.views import masks_hold
from p2pdp.replay.evidence import Recorded
from p2pdp.sim.faults import Crash, Partition
from tests.support.gossips import context_of, gossip
from tests.support.replay_oracle import leaks, seen_by
from tests.support.runs import DELTA, Run, ring, run_of, walk
from tests.support.sources import TOP

COLLUDERS = (0, 2)
SAMPLES = ("gossip_average", "gossip_randomized", "ring_sum", "vector_sum")


class Case(NamedTuple):
    text: str
    crashes: tuple[Crash, ...] = ()
    network: tuple[tuple[str, Any], ...] = ()


GONE = tuple(Crash(peer=2, at_record=at, down_s=None) for at in (13, 18, 23))
EARLY = tuple(Crash(peer=2, at_record=at, down_s=None) for at in (7, 11, 16, 17, 18, 22, 27, 32))
BACK = Crash(peer=1, at_record=15, down_s=1.5)
CUT = ("partitions", (Partition(0.15, 9.0, frozenset({1, 2})),)), ("delay_s", 0.1)
SHARED = 'mechanism = "gaussian"\nsigma = 1.0\npair_sigma = 3.0'
SHARED_RING = gossip(6, "ring", "rounds = 5", noise=SHARED)
SHARED_NOISED = gossip(6, "ring", "rounds = 4\nmessage_sigma = 0.4", noise=SHARED)
SHARED_PAIRS = gossip(6, "ring", "activations = 25", protocol="randomized", noise=SHARED)
RANDOMIZED = gossip(6, "ring", "activations = 25", protocol="randomized")
GOSSIP = {
    "ring": Case(gossip(6, "ring", "rounds = 6")),
    "star": Case(gossip(4, "star", "rounds = 5", extra='weights = "lazy"')),
    "grid": Case(gossip(9, "grid", "rounds = 3")),
    "noise on messages": Case(gossip(6, "ring", "rounds = 5\nmessage_sigma = 0.4")),
    "noise on messages, gone": Case(gossip(6, "ring", "rounds = 5\nmessage_sigma = 0.4"), GONE[1:2]),
    "accelerated": Case(gossip(6, "ring", "rounds = 6\naccelerated = true")),
    "one publishes": Case(gossip(6, "path", 'rounds = 4\npublish = "one"')),
    "all publish": Case(gossip(5, "ring", 'rounds = 4\npublish = "all"')),
    "graph changes": Case(gossip(6, "erdos_renyi", "rounds = 5", extra="changing = true\nprobability = 0.5")),
    "lossy": Case(gossip(6, "ring", "rounds = 5"), network=(("loss", 0.2),)),
    "cut": Case(gossip(6, "ring", "rounds = 5"), network=CUT),
    "back": Case(gossip(6, "ring", "rounds = 5"), (BACK,)),
    "randomized": Case(RANDOMIZED),
    "randomized, back": Case(RANDOMIZED, (BACK,)),
    "shared": Case(SHARED_RING),
    "shared, star": Case(gossip(5, "star", "rounds = 4", noise=SHARED)),
    "shared, complete": Case(gossip(8, "complete", "rounds = 2", noise=SHARED)),
    "shared, accelerated": Case(gossip(8, "hypercube", "rounds = 4\naccelerated = true", noise=SHARED)),
    "shared, noise on messages": Case(SHARED_NOISED),
    "shared, one publishes": Case(gossip(6, "path", 'rounds = 4\npublish = "one"', noise=SHARED)),
    "shared, all publish": Case(gossip(5, "ring", 'rounds = 4\npublish = "all"', noise=SHARED)),
    "shared, lossy": Case(SHARED_RING, network=(("loss", 0.2),)),
    "shared, cut": Case(SHARED_RING, network=CUT),
    "shared, back": Case(SHARED_RING, (BACK,)),
    "shared, randomized": Case(SHARED_PAIRS),
    "shared, randomized, back": Case(SHARED_PAIRS, (BACK,)),
    **{f"shared, gone at {one.at_record}": Case(SHARED_RING, (one,)) for one in EARLY},
    **{f"shared, noised, gone at {one.at_record}": Case(SHARED_NOISED, (one,)) for one in EARLY[1::3]},
    **{f"shared, randomized, gone at {one.at_record}": Case(SHARED_PAIRS, (one,)) for one in EARLY[1::2]},
    **{f"gone at {one.at_record}": Case(gossip(6, "ring", "rounds = 5"), (one,)) for one in GONE},
    **{f"randomized, gone at {one.at_record}": Case(RANDOMIZED, (one,)) for one in GONE},
}
WALKS = {
    "ring": Case(ring(4, 3)),
    "ring, tokens": Case(ring(5, 2, tokens=2)),
    "ring, shared": Case(ring(5, 2, "share = true\n")),
    "complete": Case(walk(5, 25)),
    "complete, tokens": Case(walk(5, 15, tokens=3)),
    "path": Case(walk(5, 25, "path")),
    "lossy": Case(walk(5, 25), network=(("loss", 0.2),)),
    "back": Case(walk(5, 25), (BACK,)),
    **{f"gone at {one.at_record}": Case(walk(5, 25), (one,)) for one in GONE},
    **{f"tokens, gone at {one.at_record}": Case(walk(5, 12, tokens=2), (one,)) for one in GONE},
}


def spec_of(text: str, seed: int) -> Spec:
    spec = load_spec(TOP / "deploy" / "samples" / f"{text}.toml") if text in SAMPLES else parse_spec(text, None)
    return replace(spec, run=replace(spec.run, seed=seed))


@cache
def run_with(case: Case, seed: int) -> Run:
    return run_of(spec_of(case.text, seed), *case.crashes, **dict(case.network))


CASES = [*(Case(name) for name in SAMPLES), *GOSSIP.values(), *WALKS.values()]
NAMES_OF_GOSSIP = [*SAMPLES[:2], *GOSSIP]
NAMES = [*SAMPLES, *(f"gossip: {name}" for name in GOSSIP), *(f"walk: {name}" for name in WALKS)]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_every_exact_claim_is_as_by_dense_matrices(case: Case, seed: int) -> None:
    """Each observer's rows written out in full, with the scales of the records and numpy's pseudo-inverse."""
    run = run_with(case, seed)
    out, n, transcript = run.world.out, run.plan.n, run.transcript()
    colluders = COLLUDERS if not set(COLLUDERS) & set(out) else (0, 1)
    audit = audit_run(run.plan, Recorded(run.plan, run.contents()), out, DELTA, colluders)
    exact = {claim.observer: claim for claim in audit.claims if claim.method == "exact"}
    unit = context_of(run).sensitivity * run.plan.plan.unit
    assert {"node", "coalition", "curator", "public"} <= exact.keys()

    def brute(observer: str, members: tuple[int, ...] = ()) -> Any:
        return unit * np.sqrt(leaks(transcript, n, seen_by(transcript, observer, members), members))

    for observer in ("curator", "public", *(("network",) if "network" in exact else ())):
        assert_agrees(run, exact[observer].mu_max, brute(observer).max())
    assert audit.mu is not None
    assert audit.mu_coalition is not None
    assert_agrees(run, audit.mu_coalition, brute("coalition", colluders))
    for user in set(range(n)) - set(out):
        assert_agrees(run, audit.mu[:, user], brute("node", (user,)))


def assert_agrees(run: Run, claimed: Any, brute: Any) -> None:
    """Equal; of gossip never less, and at most by what the rounding of states may tell beside."""
    if run.plan.protocol.name.startswith("gossip."):
        assert np.nanmin(claimed - brute * (1 - 1e-8)) >= -1e-9
        np.testing.assert_allclose(claimed, brute, rtol=1e-4, atol=1e-5)
    else:
        np.testing.assert_allclose(claimed, brute, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("case", [Case(SAMPLES[0]), Case(SAMPLES[1]), *GOSSIP.values()], ids=NAMES_OF_GOSSIP)
def test_the_account_of_gossip_is_the_linear_one(case: Case, seed: int) -> None:
    """Ranks by primes and spans in layers, or rows and recorded draws: the same, and never less."""
    run = run_with(case, seed)
    context = context_of(run, (), run.world.out)
    plan = run.plan.plan
    found, linear = gossip_account(context), ExactAuditor(context.transcript, run.plan.n, plan.unit)
    if not masks_hold(context):
        assert (found.claims, found.refusals) == ([], [])
        assert linear_account(context).claims
        return
    assert found.leak is not None
    for user in set(range(run.plan.n)) - set(run.world.out):
        leak = linear.nodes([user]).values
        assert leak is not None
        leak = leak * plan.noise.scale**2
        np.testing.assert_allclose(found.leak[:, user], leak, rtol=1e-9, atol=1e-11)
        assert np.nanmax(leak - found.leak[:, user]) <= 1e-10


def test_noise_of_pairs_is_taken_back_of_somebody_who_never_counted_and_then_tells_more() -> None:
    """Whoever saw a state with that noise and one without it may know it; the linear account follows."""
    held = {}
    for one in EARLY:
        run = run_with(Case(SHARED_RING, (one,)), 1)
        context = context_of(run, (), run.world.out)
        held[one.at_record] = masks_hold(context)
        least = ExactAuditor(context.transcript, 6, run.plan.plan.unit).network().values
        assert least is not None
        if not held[one.at_record]:
            left = [user for user in range(6) if user != 2]
            path = np.zeros((5, 5))  # of those who are left, without both edges to the one who is gone
            for low, high in ((0, 1), (0, 4), (2, 3), (3, 4)):
                path[[low, high], [low, high]] += 1
                path[[low, high], [high, low]] -= 1
            known = np.linalg.inv(np.eye(5) + 9.0 * path).diagonal()
            assert np.all(least[left] * run.plan.plan.noise.scale**2 <= known * (1 + 1e-9))
            ring = np.mean([1.0, 1 / 10, 1 / 10, 1 / 28, 1 / 28, 1 / 37])  # of all six, with nothing taken back
            assert run.plan.plan.noise.scale**2 * least.max() > 1.1 * ring
    assert held == {7: True, 11: False, 16: False, 17: True, 18: True, 22: True, 27: True, 32: True}
