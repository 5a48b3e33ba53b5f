"""`bench noise`: the time that a number of exact noise takes in batches of one size, the table being there before."""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Any, Final

from p2pdp.bench.harness import require, require_one_of
from p2pdp.core.draws import UNIFORM, Mechanism
from p2pdp.mechanisms.sampler import ExactSampler, warm

_TURNS: Final = 15
_NUMBERS_MIN: Final = 2_000  # in one turn, if batches are smaller
_NUMBERS_MAX: Final = 10**7
_SCALE: Final = 2.0**24
_MECHANISMS: Final = {
    mechanism.name: mechanism
    for mechanism in (
        Mechanism("gaussian", _SCALE),
        Mechanism("laplace", _SCALE),
        Mechanism("randomized_response", 0.5, 8),
        UNIFORM,
    )
}


def bench_noise(mechanism: str = "gaussian", numbers: int = 10_000) -> dict[str, Any]:
    """Return the median over some turns of so many batches that there is something to measure."""
    require_one_of("--mechanism", mechanism, tuple(_MECHANISMS))
    require(1 <= numbers <= _NUMBERS_MAX, f"--numbers {numbers}", f"from 1 to {_NUMBERS_MAX}")
    drawn, sampler, batches = _MECHANISMS[mechanism], ExactSampler(), max(1, _NUMBERS_MIN // numbers)
    warm(drawn)
    seconds = []
    for _ in range(_TURNS):
        began_s = perf_counter()
        for _ in range(batches):
            sampler.batch(drawn, (numbers,), 1)
        seconds.append(perf_counter() - began_s)
    return {
        "mechanism": mechanism,
        "scale": drawn.scale,
        "numbers": numbers,
        "nanoseconds_per_number": 1e9 * median(seconds) / (batches * numbers),
    }
