"""What every randomizer owes to the protocol that carries its reports."""

from __future__ import annotations

import numpy as np
import pytest

from p2pdp.mechanisms.reporting.contract import MalformedReport, Randomizer, Report, drawn_of, rows_of
from p2pdp.mechanisms.sampler import SeededSampler
from tests.support.randomizers import MAKERS, OneSampler, values_for


@pytest.fixture(params=sorted(MAKERS))
def randomizer(request: pytest.FixtureRequest) -> Randomizer:
    return MAKERS[request.param]()


def test_draws_are_the_same_whatever_the_value_and_for_a_dummy(randomizer: Randomizer) -> None:
    asked = []
    for value in values_for(randomizer, 6):
        draws = OneSampler()
        randomizer.randomize(value, draws)
        asked.append(draws.asked)
    draws = OneSampler()
    randomizer.dummy(randomizer.draw(draws))
    assert all(one == list(randomizer.needs) for one in [*asked, draws.asked])
    assert randomizer.mechanisms == tuple(mechanism for mechanism, _ in randomizer.needs)


def test_reports_and_dummies_have_one_length_and_come_back_whole(randomizer: Randomizer) -> None:
    for seed, value in enumerate(values_for(randomizer, 20)):
        report = randomizer.randomize(value, OneSampler(seed))
        data = randomizer.report(value, randomizer.draw(OneSampler(seed)))
        assert data == randomizer.encode(report)
        assert randomizer.decode(data) == report
        dummy = randomizer.dummy(randomizer.draw(OneSampler(seed)))
        assert len(data) == len(dummy) == randomizer.report_bytes
        assert len(randomizer.decode(dummy).numbers) == len(report.numbers) == randomizer.width


def test_one_at_a_time_and_all_at_once_are_the_same(randomizer: Randomizer) -> None:
    values = values_for(randomizer, 7)
    drawn = drawn_of(randomizer.needs, 7, SeededSampler(4, "x"))
    together = randomizer.applied(values, drawn)
    alone = [randomizer.decode(randomizer.report(values[i], [one[i] for one in drawn])) for i in range(7)]
    np.testing.assert_array_equal(together, rows_of(alone))
    np.testing.assert_array_equal(
        randomizer.dummies(7, drawn)[3],
        randomizer.decode(randomizer.dummy([one[3] for one in drawn])).numbers,
    )
    assert randomizer.applied(values[:0], drawn_of(randomizer.needs, 0, SeededSampler(4, "x"))).shape[0] == 0


def test_other_lengths_are_no_reports(randomizer: Randomizer) -> None:
    data = randomizer.dummy(randomizer.draw(OneSampler()))
    for wrong in (b"", data[:-1], data + b"\0"):
        with pytest.raises(MalformedReport):
            randomizer.decode(wrong)


def test_weights_of_a_dummy_have_the_moments_that_are_said(randomizer: Randomizer) -> None:
    count = 40_000
    drawn = drawn_of(randomizer.needs, count, SeededSampler(9, "dummies"))
    weights = randomizer.weights(randomizer.dummies(count, drawn))
    mean, square = randomizer.dummy_moments
    error = 6.0 * weights.std(axis=0) / count**0.5 + 1e-6
    assert np.all(np.abs(weights.mean(axis=0) - mean) <= error)
    assert np.all(np.abs((weights**2).mean(axis=0) - square) <= 6.0 * (weights**2).std(axis=0) / count**0.5 + 1e-6)


def test_no_text_shows_a_number(randomizer: Randomizer) -> None:
    assert repr(Report((12345, 7))) == "Report(2 numbers)"
    assert "12345" not in str(Report((12345,)))
    assert repr(randomizer).startswith(type(randomizer).__name__)
