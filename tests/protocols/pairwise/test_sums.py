from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.core.draws import NO_NOISE, UNIFORM
from p2pdp.core.errors import VerificationFailed
from p2pdp.files.data import load_data
from p2pdp.files.spec import parse_spec
from p2pdp.mechanisms import gaussian
from p2pdp.protocols.pairwise.sums import COMPONENT, PROTOCOL, TOGETHER
from tests.support.pairwise_world import COUNTS, NUMBERS, SmallWorld, pairwise, planned

TARGET = 'mechanism = "gaussian"\nepsilon = 1.0\ndelta = 1e-5'
WIDE = '[data]\nkind = "uniform"\nclip = [-1.0, 3.0]'


def own_sigma(text: str) -> float:
    plan = planned(text).plan
    return math.ldexp(plan.noise.scale, plan.grid_exponent)


@pytest.mark.parametrize(("colluders", "least", "hidden"), [(0, 20, 20), (3, 20, 17), (2, 30, 28), (9, 10, 1)])
def test_users_who_are_left_together_add_the_noise_of_the_target(colluders: int, least: int, hidden: int) -> None:
    text = pairwise(
        30, terms=f"survivors_min = {least}", noise=TARGET, privacy=f"colluders_max = {colluders}", data=WIDE
    )
    assert planned(text).plan.hidden == hidden
    assert own_sigma(text) * math.sqrt(hidden) == pytest.approx(gaussian.sigma_of(1.0, 1e-5, 4.0), rel=1e-12)


def test_colluders_who_are_named_count_where_they_are_more() -> None:
    for most, hidden in ((0, 17), (2, 17), (5, 15)):
        text = pairwise(30, noise=TARGET, privacy=f"colluders = [1, 2, 3]\ncolluders_max = {most}")
        assert (planned(text).plan.hidden, planned(text).plan.colluders_max) == (hidden, max(3, most))
    many = planned(pairwise(6, terms="survivors_min = 3", privacy="colluders = [0, 1, 2, 3]")).plan
    assert (many.hidden, many.colluders_max) == (1, 2)


def test_a_ring_hides_nobody_among_all_who_are_left() -> None:
    plan = planned(pairwise(30, '"ring"', noise=TARGET, privacy="colluders_max = 3")).plan
    assert 1 <= plan.hidden < 17


def test_without_a_target_noise_is_each_users_own() -> None:
    assert own_sigma(pairwise(30)) == pytest.approx(1.0, rel=1e-12)
    assert planned(pairwise(30, noise='mechanism = "none"')).plan.noise == NO_NOISE


def test_the_node_expects_no_more_noise_than_there_will_be() -> None:
    for graph in ('"complete"', '"ring"'):
        text = pairwise(30, graph, noise=TARGET, privacy="colluders_max = 3", data=WIDE)
        spec = parse_spec(text, None)
        assert PROTOCOL.sigma(spec, 1) <= own_sigma(text) * (1 + 1e-12)


def test_components_are_signed() -> None:
    run = planned(pairwise(12, '"regular"\ndegree = 4', privacy="colluders_max = 2"))
    assert run.facts[COMPONENT] == run.plan.hidden
    assert run.facts[TOGETHER] == run.plan.together == 8
    for name in (COMPONENT, TOGETHER):
        for number in (None, 0, 13, 2.5):
            with pytest.raises(VerificationFailed, match=name):
                PROTOCOL.plan(run.spec, 12, 1, {**run.facts, name: number})  # type: ignore[dict-item]


@pytest.mark.parametrize("n", [2, 1000, 100_000])
@pytest.mark.parametrize("clip", ["[0.0, 1.0]", "[-1e6, 1e6]", "[5.0, 5.5]"])
def test_every_sum_stays_far_below_the_end_of_its_numbers(n: int, clip: str) -> None:
    data = f'[data]\nkind = "uniform"\nclip = {clip}'
    spec = parse_spec(pairwise(n, noise=TARGET, data=data, privacy="colluders_max = 1"), None)
    plan = PROTOCOL.plan(spec, n, 1, {COMPONENT: max(1, n // 2), TOGETHER: max(1, n // 2)})
    low, high = (float(end) for end in clip.strip("[]").split(","))
    steps = n * max(abs(low), abs(high)) / math.ldexp(1.0, plan.grid_exponent) + 64 * plan.noise.scale * math.sqrt(n)
    assert steps < 2**61
    assert plan.noise.scale >= 2**20


def test_masks_are_of_their_own_kind() -> None:
    assert planned(pairwise(5)).plan.mask == UNIFORM
    noise = 'mechanism = "gaussian"\nsigma = 1.0\npair_sigma = 8.0'
    plan = planned(pairwise(5, terms='masks = "gaussian"', noise=noise)).plan
    assert (plan.mask.name, plan.mask.scale / plan.noise.scale) == ("gaussian", 8.0)


def test_a_category_is_one_count_and_a_number_the_first_row() -> None:
    spec = parse_spec(pairwise(6, data=COUNTS), None)
    run = planned(pairwise(6, data=COUNTS))
    data = load_data(spec, 6)
    one = math.ldexp(1.0, -run.plan.grid_exponent)
    for user in range(6):
        inputs, kept = PROTOCOL.inputs(run.plan, data.user(user))
        expected = np.zeros(3)
        expected[int(data.user(user).rows[0])] = one
        assert np.array_equal(inputs.contribution(0), expected)
        assert inputs.contribution(0).dtype == np.int64
        assert np.array_equal(PROTOCOL.inputs_again(run.plan, kept).contribution(0), expected)


@pytest.mark.parametrize(("task", "divisor"), [("sum", 1), ("mean", 4)])
def test_the_estimate_is_of_the_survivors(task: str, divisor: int) -> None:
    text = pairwise(6, terms="survivors_min = 3", data=f'{WIDE}\n[task]\nkind = "{task}"')
    plan = planned(text).plan
    step = math.ldexp(1.0, plan.grid_exponent)
    found = PROTOCOL.estimate(plan, 3 * 2**20, 4)
    assert found.value == 3 * 2**20 * step / divisor
    assert found.standard_error == pytest.approx(2.0 / divisor, rel=1e-12)
    assert PROTOCOL.estimate(plan, None, 0).value is None


def test_counts_are_estimated_one_by_one() -> None:
    world = SmallWorld(pairwise(6, data=COUNTS), 1)
    world.play(0)
    found = PROTOCOL.estimate(world.run.plan, world.curator.published, 6)
    assert isinstance(found.value, list)
    assert isinstance(found.standard_error, list)
    assert len(found.value) == len(found.standard_error) == 3


def test_an_estimate_alone_counts_the_survivors_and_knows_no_error_of_noise_that_may_be_left() -> None:
    plan = planned(pairwise(6, data=f'{NUMBERS}\n[task]\nkind = "mean"')).plan
    one = PROTOCOL.estimate_alone(plan, 2**40, [0, 1, 3])
    assert one == PROTOCOL.estimate(plan, 2**40, 3)
    noise = 'mechanism = "gaussian"\nsigma = 1.0\npair_sigma = 8.0'
    left = planned(pairwise(6, terms='masks = "gaussian"\nsettle = "none"', noise=noise)).plan
    assert PROTOCOL.estimate_alone(left, 2**40, [0, 1, 2, 3]).standard_error is None
    assert PROTOCOL.estimate_alone(left, 2**40, [0, 1, 2, 3, 4, 5]).standard_error is not None
