from __future__ import annotations

import time
from typing import TYPE_CHECKING

from p2pdp.node.clock import Clock

if TYPE_CHECKING:
    import pytest


def test_the_clock_never_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    told = iter([5.0, 7.0, 6.0, 8.0])
    monkeypatch.setattr(time, "time", lambda: next(told))
    clock = Clock()
    assert [clock.now_s() for _ in range(4)] == [5.0, 7.0, 7.0, 8.0]
