"""What [CEBM22] says about the errors of gossip, and guide/accounting.md about its leaks, on runs.

Runs whose errors are counted are those of the fast path, which agree with the machines to the last digits
(`gossip/analysis/test_fast.py`); what is said of leaks is audited in simulated worlds. Every sum over many seeds is
met within 5 standard deviations of its own, with seeds that are fixed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from p2pdp.core.errors import UsageError
from p2pdp.files.data import load_data
from p2pdp.files.spec import parse_spec
from p2pdp.protocols.gossip.analysis.fast import Pairs, _activations, fast_average, fixed_rounds
from p2pdp.protocols.gossip.plan import GossipPlan
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.topology.gossip_rounds import activations_needed
from p2pdp.topology.weights import sparse_weights
from tests.support.gossips import gossip
from tests.support.runs import quiet

SEEDS = 400
SIGMA = 0.5
NOISE = f'mechanism = "gaussian"\nsigma = {SIGMA}'


def prepared(text: str) -> tuple[RunPlan, Any]:
    spec = parse_spec(text, None)
    data = load_data(spec, spec.run.nodes)
    return plan_run(spec, spec.run.nodes, data.dimensions, sampler="seeded"), data.user


def weights_of(run: RunPlan, seed: int) -> Any:
    """Of all users' noised values (columns) in all results (rows)."""
    if isinstance(run.plan, GossipPlan):
        return fixed_rounds(run).shares(np.eye(run.n))[0]
    return Pairs(run, _activations(run, seed)).shares(np.eye(run.n))[0].T


def errors(run: RunPlan, rows: Any, seeds: int = SEEDS) -> tuple[np.ndarray, np.ndarray]:
    """Of each seed: half the mean square error, and the mean square of its noise over what it is expected to be."""
    values = np.array([float(rows(user).rows[0]) for user in range(run.n)])
    halves, ratios = [], []
    fixed = weights_of(run, 0) if isinstance(run.plan, GossipPlan) else None
    for seed in range(seeds):
        weights = weights_of(run, seed) if fixed is None else fixed
        found = fast_average(run, rows, seed, with_error=False).finals
        results = np.array([found[user] for user in range(run.n)])
        halves.append(0.5 * np.mean((results - values.mean()) ** 2))
        ratios.append(np.sum((results - weights @ values) ** 2) / (SIGMA**2 * np.sum(weights**2)))
    return np.array(halves), np.array(ratios)


def assert_mean_is_one(ratios: np.ndarray) -> None:
    assert abs(ratios.mean() - 1.0) < 5 * ratios.std() / math.sqrt(len(ratios))
    assert ratios.std() / math.sqrt(len(ratios)) < 0.1, "an interval that says nothing tests nothing"


def surely_below(halves: np.ndarray, most: float) -> bool:
    return bool(halves.mean() + 5 * halves.std() / math.sqrt(len(halves)) <= most)


@pytest.mark.parametrize(("kind", "n"), [("ring", 12), ("hypercube", 32), ("path", 8), ("complete", 8)])
@pytest.mark.parametrize("accelerated", ["true", "false"])
def test_theorem_2_and_the_exact_variance(kind: str, n: int, accelerated: str) -> None:
    run, rows = prepared(gossip(n, kind, f'rounds = "auto"\naccelerated = {accelerated}', noise=NOISE))
    halves, ratios = errors(run, rows)
    assert_mean_is_one(ratios)
    assert surely_below(halves, (3 if accelerated == "true" else 2) * SIGMA**2 / n)


def expected_gap(run: RunPlan) -> float:
    """The spectral gap of the expected step of randomized gossip, whose square it is too."""
    assert run.graph is not None
    weights = sparse_weights(run.graph, run.plan.weights).toarray()
    np.fill_diagonal(weights, 0.0)
    probabilities = weights / (weights.sum() / 2)
    laplacian = np.diag(probabilities.sum(axis=1)) - probabilities
    return float(np.linalg.eigvalsh(laplacian)[1] / 2)


@pytest.mark.parametrize(("kind", "n"), [("ring", 8), ("hypercube", 16), ("star", 7), ("complete", 10)])
def test_theorem_3_and_the_exact_variance(kind: str, n: int) -> None:
    """[CEBM22, Theorem 3]."""
    text = gossip(n, kind, "activations = {}", noise=NOISE, protocol="randomized")
    gap = expected_gap(prepared(text.format(1))[0])
    run, rows = prepared(text.format(activations_needed(gap, n, SIGMA, 1.0, 1)))
    halves, ratios = errors(run, rows)
    assert_mean_is_one(ratios)
    assert surely_below(halves, 2 * SIGMA**2 / n)


def test_theorem_3_needs_the_gap_of_the_expected_step() -> None:
    """[CEBM22, Theorem 3] with the gap as printed fails.

    With lambda(p) = 2 lambda_W / n, as printed, which is twice that gap, it stops too early.
    """
    text = gossip(64, "complete", "activations = {}", noise=NOISE, protocol="randomized")
    gap = expected_gap(prepared(text.format(1))[0])
    assert gap == pytest.approx(1 / 63)
    run, rows = prepared(text.format(activations_needed(2 * gap, 64, SIGMA, 1.0, 1)))
    halves, _ = errors(run, rows, 100)
    assert halves.mean() - 5 * halves.std() / 10 > 2 * SIGMA**2 / 64


@pytest.mark.parametrize(
    ("kind", "n", "rounds"), [("ring", 9, 3), ("grid", 12, 4), ("star", 6, 2), ("hypercube", 16, 3)]
)
def test_accelerated_and_plain_gossip_leak_the_same(kind: str, n: int, rounds: int) -> None:
    plain, accelerated = (
        quiet(gossip(n, kind, f"rounds = {rounds}\naccelerated = {how}")).audit((0, n - 1)) for how in ("false", "true")
    )
    assert plain.leak is not None
    assert accelerated.leak is not None
    np.testing.assert_allclose(accelerated.leak, plain.leak, atol=1e-10)
    np.testing.assert_allclose(accelerated.leak_coalition, plain.leak_coalition, atol=1e-10)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["ring", "hypercube"])
def test_what_all_publish_tells_all_and_the_claim_says_why(kind: str) -> None:
    audit = quiet(gossip(16, kind, 'rounds = 3\npublish = "all"')).audit()
    assert audit.leak is not None
    assert np.nanmin(audit.leak) == 1.0
    local = next(claim for claim in audit.claims if claim.method == "local")
    for claim in audit.claims:
        if claim.method == "exact":
            assert claim.mu_max == pytest.approx(local.mu_max)
            assert claim.mu_mean == pytest.approx(local.mu_max)
            assert any("everybody learns all that local noise allows" in said for said in claim.assumptions)


@pytest.mark.parametrize("text", [gossip(2, "path"), gossip(2, "path", "activations = 3", protocol="randomized")])
def test_of_two_users_each_learns_all_of_the_other(text: str) -> None:
    audit = quiet(text).audit()
    assert audit.leak is not None
    assert np.nanmin(audit.leak) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("kind", "extra", "says"),
    [
        ("hypercube", 'weights = "uniform"', "bipartite the two sides would exchange their values for ever"),
        ("ring", 'weights = "uniform"', 'choose "metropolis" or "lazy"'),
        ("erdos_renyi", "probability = 0.01", "were all disconnected"),
        ("geometric", "radius = 0.01", "give the nodes more edges"),
    ],
)
@pytest.mark.parametrize("protocol", ["average", "randomized"])
def test_what_never_comes_to_an_average_is_refused_with_the_reason(
    kind: str, extra: str, says: str, protocol: str
) -> None:
    terms = "rounds = 3" if protocol == "average" else "activations = 9"
    with pytest.raises(UsageError, match=says):
        prepared(gossip(8, kind, terms, protocol=protocol, extra=extra))
