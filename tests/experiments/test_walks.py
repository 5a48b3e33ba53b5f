from __future__ import annotations

import math

import numpy as np
import pytest

from p2pdp.accounting.hidden_path.gaps import Stretch
from p2pdp.experiments import walks
from p2pdp.experiments.contract import Setting
from p2pdp.mechanisms import gaussian


def test_a_path_is_that_of_the_protocol_and_of_its_number() -> None:
    first = walks.path(7, 0)
    assert (len(first), int(first[0])) == (700, 0)
    assert set(first.tolist()) == set(range(7))
    assert np.array_equal(first, walks.path(7, 0))
    assert not np.array_equal(first, walks.path(7, 1))


def test_what_observers_see_of_a_path() -> None:
    steps = np.array([0, 2, 1, 0, 0, 2])
    gaps = walks.gaps(steps, 3)
    assert gaps[0] == [(Stretch(2, 2, 1, 1),), (Stretch(1, 2, None, 0),)]
    assert gaps[1] == [(Stretch(2, 0, 2, 1),), (Stretch(3, 0, None, 1),)]
    gap, user = walks.seen_by(steps, 0)
    assert (gap.tolist(), user.tolist()) == ([1, 1, 3], [2, 1, 2])


def test_noise_is_that_of_one_contribution() -> None:
    assert gaussian.epsilon_of(walks.DELTA, walks.ratio(0.4)) == pytest.approx(0.4, rel=1e-9)


def test_losses_are_gathered_over_walks() -> None:
    spread = walks.spread(np.array([[np.nan, 1.0], [3.0, np.nan]]))
    assert spread == {"mean": 2.0, "best": 1.0, "worst": 3.0}
    more = {"a": {"mean": 4.0, "best": 0.5, "worst": 5.0}}
    assert walks.gathered([{"a": spread}, more], "a") == (3.0, 0.5, 5.0)
    assert walks.gathered([more], "b") is None
    assert not math.isnan(walks.gathered([more, {}], "a")[0])  # type: ignore[index]


def test_quick_forms_are_smaller() -> None:
    assert max(walks.nodes(Setting(quick=True))) < max(walks.nodes(Setting()))
    assert walks.walks(Setting(quick=True)) < walks.walks(Setting()) == 10
