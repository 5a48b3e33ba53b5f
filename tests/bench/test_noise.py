from __future__ import annotations

from typing import Any

import pytest

from p2pdp.bench import noise as module
from p2pdp.bench.noise import bench_noise
from p2pdp.core.errors import UsageError
from p2pdp.mechanisms.sampler import ExactSampler


def test_time_is_divided_by_all_numbers_that_were_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []

    class Sampler(ExactSampler):
        def batch(self, mechanism: Any, shape: tuple[int, ...], count: int) -> list[Any]:
            drawn.append(shape[0] * count)
            return super().batch(mechanism, shape, count)

    monkeypatch.setattr(module, "ExactSampler", Sampler)
    monkeypatch.setattr(module, "perf_counter", lambda: 1e-6 * sum(drawn))
    measured = bench_noise("laplace", 300)
    assert measured["nanoseconds_per_number"] == pytest.approx(1000.0)
    assert (measured["mechanism"], measured["numbers"], measured["scale"]) == ("laplace", 300, 2.0**24)
    assert sum(drawn) == 15 * 6 * 300


def test_noise_in_bulk_takes_half_a_microsecond_a_number_at_most() -> None:
    """The aim, which is missed only by an order of magnitude: an exact number by a loop takes ten times as long."""
    for mechanism in ("gaussian", "laplace", "randomized_response", "uniform_bits"):
        assert 0 < bench_noise(mechanism)["nanoseconds_per_number"] < 500, mechanism


@pytest.mark.parametrize(("terms", "says"), [(("normal",), "--mechanism normal"), (("gaussian", 0), "--numbers 0")])
def test_what_cannot_be_measured_is_refused(terms: tuple[Any, ...], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        bench_noise(*terms)
