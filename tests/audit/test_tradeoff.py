from __future__ import annotations

from p2pdp.audit.tradeoff import NEXT_TO_NOTHING, Tradeoff, recommended


def tried(ratio: float, error: float) -> Tradeoff:
    return Tradeoff(ratio, ratio, 1.0, None, 0.5, 1.0, 0.5, error)


def test_the_most_noise_that_costs_next_to_nothing_is_recommended() -> None:
    cheap = 1.0 + 0.9 * NEXT_TO_NOTHING
    found = recommended([tried(0.0, 1.0), tried(0.1, 1.001), tried(0.3, cheap), tried(1.0, 2.0)])
    assert found is not None
    assert found.ratio == 0.3
    assert recommended([tried(0.0, 1.0), tried(0.1, 1.5)]) is None
