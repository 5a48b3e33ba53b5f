"""What is made of noise that was found; `test_plan.py` says that it is the least."""

from __future__ import annotations

from pathlib import Path

import pytest

import p2pdp
from p2pdp.runs.target import rounded
from tests.support import small


@pytest.mark.parametrize("value", [1.0, 7.3173612, 123456.7, 1e-7 / 3, 0.9999999])
def test_rounding_is_to_the_safe_side_and_by_little(value: float) -> None:
    up, down = rounded(value, up=True), rounded(value, up=False)
    assert down <= value * (1 + 1e-15)
    assert up >= value * (1 - 1e-15)
    assert up - down <= 2e-5 * value


@pytest.mark.parametrize("name", ["ring", "complete", "ring_histogram"])
def test_the_line_to_copy_gives_the_plan_that_is_shown(tmp_path: Path, name: str) -> None:
    path = small.spec_file(tmp_path, small.ALL[name])
    found = p2pdp.plan(path, 1.0)
    assert found.target is not None
    assert found.at_target is not None
    override = found.target.override(p2pdp.load_spec(path))
    assert override is not None
    again = p2pdp.plan(p2pdp.load_spec(path, [override]))
    assert again.to_json() == found.at_target.to_json()
    assert again.headline["epsilon"] <= 1.0
    assert found.to_json()["at_target"]["standard_error"] == again.to_json()["standard_error"]


def test_noise_that_is_set_by_epsilon_has_no_single_line(tmp_path: Path) -> None:
    path = small.spec_file(tmp_path, small.RING)
    text = path.read_text().replace("sigma = ", "epsilon = 1.0\ndelta = 1e-5 # ")
    path.write_text(text)
    found = p2pdp.plan(path, 1.0).target
    assert found is not None
    assert found.override(p2pdp.load_spec(path)) is None
