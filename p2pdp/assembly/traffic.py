"""Sizes of frames as plans count them."""

from __future__ import annotations

from typing import Any, Final

from p2pdp.wire.padding import frame_size

ENVELOPE_BYTES: Final = 120
"""Of a frame, at most, around its content."""
_NUMBER_BYTES: Final = 9  # of a number, packed


def numbers_frame(count: int) -> int:
    """Return the size of a frame that carries so many numbers."""
    return frame_size(ENVELOPE_BYTES + count * _NUMBER_BYTES)


def numbers_in(plan: Any) -> int:
    """Return how many numbers a value of a run has."""
    return plan.shape[0] if plan.shape else 1
