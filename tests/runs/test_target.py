"""How much noise a wanted epsilon takes: what is found is enough, hardly more than enough, and else refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import p2pdp
from p2pdp.core.errors import Refused, UsageError
from p2pdp.mechanisms import gaussian
from p2pdp.protocols.run_plan import plan_run
from p2pdp.runs.plan import planned_of
from p2pdp.runs.target import Planned, Target, target_of
from tests.support import small
from tests.support.gossip_learners import gossip_learning
from tests.support.learners import learning, prepared
from tests.support.plans import node_epsilon
from tests.support.shuffle_specs import shuffle

DELTA = 1e-5
STANDARDIZED = "standardize = { mean = [40.0, 5.0], deviation = [12.0, 3.0], epsilon = 0.5, delta = 4e-6 }"
ESTIMATED = prepared(learning(5, 60, data=f"{STANDARDIZED}\nunit_norm = true"))[0].spec


def planned(tmp_path: Path, name: str, *overrides: str) -> Planned:
    return planned_of(p2pdp.load_spec(small.spec_file(tmp_path, small.ALL[name]), overrides))


def bound_with(given: Planned, target: Target, factor: float) -> float:
    """The bound of one other node with so much of the noise that was found."""
    spec = given.run.spec
    value = target.value / factor if target.parameter == "epsilon" else target.value * factor
    noise = replace(spec.noise, sigma=None, epsilon=None, delta=None)
    noise = replace(noise, epsilon=value) if target.parameter == "epsilon" else replace(noise, sigma=value)
    run = plan_run(replace(spec, noise=noise), given.run.n, given.run.dimensions, given.edges)
    return node_epsilon(run, DELTA, one_value=given.one_value)


@pytest.mark.parametrize("name", ["ring", "complete", "sparse", "histogram", "ring_histogram"])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_what_is_found_is_enough_and_little_less_is_not(tmp_path: Path, name: str, epsilon: float) -> None:
    given = planned(tmp_path, name)
    target = target_of(given, epsilon)
    assert target.reached <= epsilon
    assert bound_with(given, target, 1.0) == pytest.approx(target.reached, rel=1e-9)
    assert bound_with(given, target, 0.97) > epsilon
    assert (target.epsilon, target.delta) == (epsilon, DELTA)


def test_the_ring_needs_what_its_closed_form_says(tmp_path: Path) -> None:
    """Two laps: mu^2 = 2/sigma^2 for the worst pair, and for local differential privacy just as much."""
    target = target_of(planned(tmp_path, "ring"), 1.0)
    sigma = 2**0.5 * gaussian.sigma_of(1.0, DELTA)
    assert target.parameter == "sigma"
    assert sigma <= target.value <= sigma * 1.001
    assert target.local_value == pytest.approx(sigma)


def test_a_smaller_epsilon_takes_more_noise(tmp_path: Path) -> None:
    given = planned(tmp_path, "ring")
    values = [target_of(given, epsilon).value for epsilon in (0.01, 0.1, 1.0, 10.0, 100.0)]
    assert values == sorted(values, reverse=True)


def test_the_noise_in_the_spec_does_not_matter(tmp_path: Path) -> None:
    small_noise, large_noise = (planned(tmp_path, "ring", f"noise.sigma={sigma}") for sigma in (0.01, 100.0))
    assert target_of(small_noise, 1.0).value == pytest.approx(target_of(large_noise, 1.0).value, rel=1e-6)


def test_what_no_noise_can_give_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="infinite"):
        target_of(planned(tmp_path, "ring", "noise.closing=false"), 1.0)
    with pytest.raises(Refused, match="protects nobody"):
        target_of(planned(tmp_path, "bare"), 1.0)
    with pytest.raises(Refused, match="cannot be met"):
        target_of(planned(tmp_path, "sparse"), 1e-10)


@pytest.mark.parametrize("epsilon", [1e-3, 0.3, 0.4999, 0.5])
def test_what_estimates_cost_no_noise_takes_away(epsilon: float) -> None:
    with pytest.raises(Refused, match=r"the smallest .* is 0\.5"):
        target_of(planned_of(ESTIMATED), epsilon)


@pytest.mark.parametrize("epsilon", [0.501, 0.6, 5.0])
def test_above_what_estimates_cost_noise_is_found_for_the_rest(epsilon: float) -> None:
    target = target_of(planned_of(ESTIMATED), epsilon)
    assert 0.5 + (epsilon - 0.5) * 0.99 <= target.reached <= epsilon
    assert 0.0 < target.local_value < float("inf")


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf"), 1e5])
def test_impossible_epsilons_are_refused(tmp_path: Path, epsilon: float) -> None:
    with pytest.raises(UsageError, match="--target-epsilon"):
        target_of(planned(tmp_path, "ring"), epsilon)


@pytest.mark.parametrize(
    "noise", ['"randomized_response"\nepsilon = 3.0', '"laplace"\nepsilon = 1.0', '"privunit"\nepsilon = 2.0']
)
def test_of_shuffling_the_curator_learns_no_more_either(tmp_path: Path, noise: str) -> None:
    text = shuffle(60, terms="rounds = 5").replace('"randomized_response"\nepsilon = 3.0', noise)
    if "response" not in noise:
        data = '"unit_mixture"' if "privunit" in noise else '"uniform"\nclip = [0.0, 1.0]'
        text = text.replace('"categories"', data).replace('"histogram"\ncategories = 3', '"mean"')
    given = planned_of(p2pdp.load_spec(small.spec_file(tmp_path, text)))
    target = target_of(given, 0.5)
    assert target.observers == ("node", "curator")
    assert "curator" in target.against
    assert 0.49 <= target.reached <= 0.5
    smaller = target.local_value < target.value if target.parameter == "epsilon" else target.value < target.local_value
    assert smaller, "a hidden report needs less noise than one that everybody sees"


def test_learners_by_gossip_need_noise_for_all_their_gradients() -> None:
    """Three of them, at twice the clip: the local ceiling is the bound, so it is what local privacy needs."""
    given = planned_of(prepared(gossip_learning(5, "changing"))[0].spec)
    found = target_of(given, 2.0)
    assert found.reached <= 2.0
    assert found.local_value == pytest.approx(2.0 * 3**0.5 / gaussian.mu_of_curve(2.0, DELTA), rel=1e-6)
    assert found.local_value <= found.value <= found.local_value * 1.01
