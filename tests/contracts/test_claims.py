"""What every claim of an audit owes to its readers, whatever its method: of all samples and small specs.

A protocol comes in by its sample, a method by the claims that it adds there; none registers itself here.
"""

from __future__ import annotations

import math
import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

import p2pdp
from p2pdp.core.claims import Claim, Conditioning, Method, Observer
from p2pdp.core.errors import UsageError
from p2pdp.files.spec import load_spec, parse_spec
from p2pdp.mechanisms import gaussian
from tests.support.small import ALL
from tests.support.sources import TOP

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SAMPLES = {path.stem: path for path in sorted((TOP / "deploy" / "samples").glob("*.toml"))}
SPECS = {
    **{name: load_spec(path) for name, path in SAMPLES.items()},
    **{name: parse_spec(ALL[name], None) for name in ALL},
}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """The audit of a sample or small spec; each run is made once."""

    @cache
    def run(name: str, *overrides: str) -> Path:
        place = tmp_path_factory.mktemp(name) / "run"
        spec = load_spec(SAMPLES[name], overrides) if name in SAMPLES else parse_spec(ALL[name], None, overrides)
        p2pdp.simulate(spec, place)
        return place

    return lambda name, *overrides, **terms: p2pdp.audit(run(name, *overrides), **terms)


@pytest.fixture(params=SPECS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def by_terms(claims: list[Claim]) -> dict[tuple[str, str, str], Claim]:
    found = {(claim.observer, claim.method, claim.conditioning): claim for claim in claims}
    assert len(found) == len(claims)
    return found


def headline(claim: Claim) -> float:
    """`epsilon_max`; None stands for no bound at all."""
    return math.inf if claim.epsilon_max is None else claim.epsilon_max


def test_every_claim_names_its_terms_and_holds_no_nan(judged: Callable[..., Any], name: str) -> None:
    audited = judged(name, colluders=[0, 2])
    for claim in audited.claims:
        assert isinstance(claim.observer, Observer)
        assert isinstance(claim.method, Method) or claim.method.startswith(("model:", "published:"))
        assert (claim.unit, claim.relation) == (SPECS[name].privacy.unit, "replace")
        assert isinstance(claim.conditioning, Conditioning)
        assert claim.bound == isinstance(claim.method, Method)
        assert claim.assumptions
        for largest, mean in ((claim.epsilon_max, claim.epsilon_mean), (claim.mu_max, claim.mu_mean)):
            if largest is not None:
                assert largest >= 0.0
            if mean is not None:
                assert largest is not None
                assert 0.0 <= mean <= largest
    assert all(isinstance(refusal.observer, Observer) and refusal.reason for refusal in audited.refusals)


def test_epsilon_is_never_below_the_curve_of_its_mu(judged: Callable[..., Any], name: str) -> None:
    for claim in judged(name).claims:
        if claim.mu_max is not None and math.isfinite(claim.mu_max):
            assert gaussian.delta_of(claim.epsilon_max, claim.mu_max) <= claim.delta * (1 + 1e-11)


def test_nobody_learns_more_than_whoever_sees_more(judged: Callable[..., Any], name: str) -> None:
    """Of bounds by one method: public <= curator <= network, and one node <= a coalition that holds it."""
    found = by_terms([claim for claim in judged(name, colluders=[1]).claims if claim.bound])
    for (observer, method, conditioning), claim in found.items():
        for more in {"public": ("curator", "network"), "curator": ("network",)}.get(observer, ()):
            stronger = found.get((more, method, conditioning))
            assert stronger is None or headline(claim) <= headline(stronger) * (1 + 1e-9)


def test_a_smaller_delta_never_has_a_smaller_epsilon(judged: Callable[..., Any], name: str) -> None:
    audits = [by_terms(judged(name, delta=delta).claims) for delta in (1e-2, 1e-5, 1e-9)]
    for larger, smaller in pairwise(audits):
        assert larger.keys() == smaller.keys()
        for terms, claim in larger.items():
            assert headline(claim) <= headline(smaller[terms]) * (1 + 1e-12), terms
            assert claim.mu_max == smaller[terms].mu_max


def rounding(claim: Claim) -> float:
    """What rounding may add to a claim, as it says itself."""
    said = [
        found
        for one in claim.assumptions
        if (found := re.search(r"by at most (\S+) deviations of (?:its|their) noise", one))
    ]
    return 2.1 * sum(float(found[1]) for found in said)


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.noise.sigma is not None])
def test_twice_the_noise_halves_mu(judged: Callable[..., Any], name: str) -> None:
    """On the same route: it comes from a stream of its own. What rounding adds stays as it is."""
    noise = SPECS[name].noise
    assert noise.sigma is not None
    twice = [f"noise.sigma={2 * noise.sigma}"]
    twice += [] if noise.pair_sigma is None else [f"noise.pair_sigma={2 * noise.pair_sigma}"]
    before, after = by_terms(judged(name).claims), by_terms(judged(name, *twice).claims)
    assert before.keys() == after.keys()
    for terms, claim in before.items():
        assert claim.mu_max is not None or claim.method == "hidden-path" or not claim.bound  # whose curve is another
        if claim.mu_max is not None:
            assert after[terms].mu_max == pytest.approx(claim.mu_max / 2, rel=1e-6, abs=rounding(claim))
        assert headline(after[terms]) <= headline(claim)


@pytest.mark.parametrize("delta", [math.nan, 0.0, 1.0, -1.0, math.inf])
def test_an_audit_at_no_delta_is_refused(judged: Callable[..., Any], delta: float) -> None:
    with pytest.raises(UsageError, match="delta"):
        judged("ring", delta=delta)


@pytest.mark.parametrize("nodes", [1, 2, 3])
@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.graph.kind in ("complete", "ring")])
def test_the_smallest_runs_are_answered(judged: Callable[..., Any], name: str, nodes: int) -> None:
    """Every observer that there is gets a claim or a refusal by name."""
    one_token = ["walk.tokens=1"] if SPECS[name].run.protocol.startswith("walk.") else []
    audited = judged(name, f"run.nodes={nodes}", *one_token)
    named = {claim.observer for claim in audited.claims} | {refusal.observer for refusal in audited.refusals}
    assert named >= {"curator", "public", "network"} | ({"node"} if nodes > 1 else set())
    assert not any(math.isnan(headline(claim)) for claim in audited.claims)
