"""Some thousands of authenticated hostile frames, at every kind of host of every protocol."""

from __future__ import annotations

import pytest

from tests.campaigns.hostile import HOSTILE, VICTIMS
from tests.campaigns.specs import covered


@pytest.mark.parametrize("victim", VICTIMS)
def test_hostile_frames_raise_nothing_and_do_no_harm(victim: str) -> None:
    frames = 0
    for protocol in covered():
        for seed in range(3):
            judged = HOSTILE.run(f"{protocol}:{victim}", seed)
            assert judged.violations == [], judged.story
            frames += judged.counts["frames"]
    assert frames > 1000
