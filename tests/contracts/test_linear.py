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
BACK = Crash(peer=1, at_record=15, down_s=1.5)
CUT = ("partitions", (Partition(0.15, 9.0, frozenset({1, 2})),)), ("delay_s", 0.1)
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
    assert found.leak is not None
    for user in set(range(run.plan.n)) - set(run.world.out):
        leak = linear.nodes([user]).values
        assert leak is not None
        leak = leak * plan.noise.scale**2
        np.testing.assert_allclose(found.leak[:, user], leak, rtol=1e-9, atol=1e-11)
        assert np.nanmax(leak - found.leak[:, user]) <= 1e-10
