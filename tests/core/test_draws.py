from __future__ import annotations

import inspect

import pytest

from p2pdp.core.draws import Draws, Mechanism, Sampler
from p2pdp.mechanisms.sampler import ExactSampler, FastSampler, SeededSampler
from p2pdp.peer.draws import RecordedDraws


def test_a_mechanism_is_a_value_that_can_name_a_pool() -> None:
    assert Mechanism("gaussian", 2.0) == Mechanism("gaussian", 2.0, 0)
    assert len({Mechanism("gaussian", 2.0), Mechanism("gaussian", 2.0), Mechanism("laplace", 2.0)}) == 2
    with pytest.raises(AttributeError):
        Mechanism("gaussian", 2.0).scale = 0.0  # type: ignore[misc]


def parameters(interface: type, name: str) -> list[str]:
    return list(inspect.signature(getattr(interface, name)).parameters)


def test_noise_and_routing_are_two_separate_calls_everywhere() -> None:
    for name in ("noise", "choice"):
        assert parameters(RecordedDraws, name) == parameters(Draws, name)
    for sampler in (ExactSampler, FastSampler, SeededSampler):
        for name in ("batch", "choice"):
            assert parameters(sampler, name) == parameters(Sampler, name)
