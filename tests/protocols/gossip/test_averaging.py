from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.core.spec import DataPart, GraphPart, NoisePart, RunPart, Spec, TaskPart
from p2pdp.core.values import ZERO_FORM, snapped
from p2pdp.mechanisms.clipping import Bounds, clip
from p2pdp.mechanisms.grid import Grid
from p2pdp.protocols.gossip import averaging
from p2pdp.protocols.gossip.options import GossipPart
from p2pdp.topology.graphs import make_graph


def spec(noise: NoisePart, **gossip: float) -> Spec:
    return Spec(
        run=RunPart("gossip.average", 6),
        graph=GraphPart("ring"),
        noise=noise,
        data=DataPart("uniform", clip=(-1.0, 1.0)),
        task=TaskPart("mean"),
        options=GossipPart(rounds=3, **gossip),  # type: ignore[arg-type]
    )


def test_noise_is_on_a_grid_and_as_large_as_the_spec_says() -> None:
    setting = averaging.setting_of(spec(NoisePart("gaussian", sigma=0.5), message_sigma=0.01), 1)
    assert math.ldexp(setting.noise.scale, setting.grid_exponent) == pytest.approx(0.5)
    assert setting.message_noise is not None
    assert math.ldexp(setting.message_noise.scale, setting.grid_exponent) == pytest.approx(0.01)
    assert setting.message_noise.scale >= 2**20
    assert (setting.sigma, setting.span, setting.shape) == (0.5, 2.0, ())


def test_laplace_noise_has_the_scale_of_its_deviation_and_none_has_none() -> None:
    laplace = averaging.setting_of(spec(NoisePart("laplace", sigma=0.5)), 3)
    assert math.ldexp(laplace.noise.scale, laplace.grid_exponent) == pytest.approx(0.5 / math.sqrt(2))
    assert laplace.shape == (3,)
    assert averaging.setting_of(spec(NoisePart("none")), 1).noise.scale == 0.0


def test_a_user_averages_its_first_row() -> None:
    inputs, values = averaging.inputs_of((), clip([0.25, 0.5], Bounds(0.0, 1.0)), Grid(-20))
    assert (values, inputs.contribution(0)) == ([0.25], 0.25)
    _, rows = averaging.inputs_of((2,), clip([[0.25, 0.5], [0.0, 0.0]], Bounds(0.0, 1.0)), Grid(-20))
    np.testing.assert_array_equal(rows[0], [0.25, 0.5])


@given(st.floats(0.0, 1.0), st.integers(-(2**40), 2**40))
def test_nothing_of_a_value_is_seen_beside_the_noise(value: float, noise: int) -> None:
    """Neither its remainder on the grid, nor that of a state which is noised once more."""
    step = 2.0**-20
    _, (kept,) = averaging.inputs_of((), clip([value], Bounds(0.0, 1.0)), Grid(-20))
    assert abs(kept - value) < step
    for hidden in (kept, snapped(value / 3.0, step)):
        assert math.fmod(hidden + noise * step, step) == 0.0
    assert snapped(np.array([value, 0.7]), step)[0] == snapped(value, step)
    assert snapped(ZERO_FORM, step) is ZERO_FORM


def test_what_is_public_of_a_graph() -> None:
    facts = averaging.facts_of(spec(NoisePart("none")), make_graph(GraphPart("ring"), 6, 0))
    assert facts["degree_max"] == 2
    assert facts["gap"] == pytest.approx((2 - 2 * math.cos(math.pi / 3)) / 3)
    assert averaging.fact(facts, "gap") == facts["gap"]
    for facts_without in ({}, {"gap": "wide"}):
        with pytest.raises(VerificationFailed, match="lacks the fact gap"):
            averaging.fact(facts_without, "gap")
    uniform = replace(spec(NoisePart("none")), graph=GraphPart("ring", weights="uniform"))
    with pytest.raises(UsageError, match="bipartite"):
        averaging.facts_of(uniform, make_graph(GraphPart("ring"), 6, 0))


def test_results_are_published_side_by_side_and_their_mean_is_the_estimate() -> None:
    assert averaging.publish([]) is None
    assert averaging.estimate_of((), averaging.publish([])).value is None
    assert averaging.estimate_of((), averaging.publish([1.0, 2.0])).value == 1.5
    vectors = averaging.publish([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
    assert averaging.estimate_of((2,), vectors).value == [2.0, 3.0]
