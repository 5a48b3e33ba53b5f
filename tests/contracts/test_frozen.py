"""What simulated runs leave behind is what it was when digests were last recorded (`frozen.py`)."""

from __future__ import annotations

import pytest

from tests.contracts.frozen import SEEDS, SLOW, all_recorded, changed, digests, recorded, specs


def test_all_specs_are_recorded() -> None:
    for found in all_recorded().values():
        assert found.keys() == {f"{name} {seed}" for name in specs() for seed in SEEDS}


@pytest.mark.parametrize("name", specs())
def test_nothing_has_changed(name: str) -> None:
    """One seed; without the slow parts of samples, which small specs have too and the script compares."""
    if not recorded():
        pytest.skip("numerical libraries or the processor calculate otherwise than where digests were recorded")
    without = SLOW if name.startswith("sample:") else ()
    before = {key: one for key, one in recorded()[f"{name} {SEEDS[0]}"].items() if key not in without}
    assert not changed(before, digests(specs()[name], SEEDS[0], without))


def test_a_changed_number_shows() -> None:
    spec = specs()["small:ring"]
    one, other = digests(spec, 1), digests(spec, 2)
    assert {"ledgers", "result.json", "faulty", "terminal verify"} <= set(changed(one, other))
    assert "plan" not in changed(one, other)
