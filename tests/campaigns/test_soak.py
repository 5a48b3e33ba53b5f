"""The limits of the soak: what is flat passes, what grows is named. Long runs are started by hand."""

from __future__ import annotations

from tests.campaigns.soak import Sample, growth, problems


def _samples(rss: float = 0.0, fds: float = 0.0) -> list[Sample]:
    """A minute of samples, in which something grows by so much a second."""
    return [
        Sample(float(at), int(1e8 + rss * at + 1e6 * (at % 3)), int(200 + fds * at), 24, 1000 * at) for at in range(60)
    ]


def test_what_is_flat_passes_though_it_varies() -> None:
    assert problems(_samples()) == []


def test_what_grows_is_named() -> None:
    assert ["rss" in one.what for one in problems(_samples(rss=1e6))] == [True]
    assert ["fds" in one.what for one in problems(_samples(fds=2.0))] == [True]


def test_growth_is_a_share_of_the_mean_over_the_time_watched() -> None:
    assert abs(growth([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 1.0, 2.0, 3.0, 4.0, 5.0]) - 3.0 / 3.5) < 1e-9
    assert growth([0.0], [5.0]) == 0.0


def test_samples_with_a_process_down_do_not_count() -> None:
    down = [one._replace(threads=3, rss=0) for one in _samples()[20:30]]
    assert problems(sorted([*_samples(), *down])) == []
