from __future__ import annotations

import pytest

from p2pdp.core.step import Fault, Output
from p2pdp.peer.effects import Effects, Timing


def test_effects_show_how_much_and_never_what_or_to_whom() -> None:
    shown = repr(Effects((("view", b"secret"),), ((77, b"frame"), (78, b"frame")), 9.5, (Output("o", (), 123456),)))
    assert shown == "Effects(1 writes, 2 frames)"


def test_effects_are_frozen_and_empty_by_default() -> None:
    effects = Effects()
    assert effects == Effects((), (), None, (), ())
    with pytest.raises(AttributeError):
        effects.faults = (Fault("a"),)  # type: ignore[misc]


def test_acknowledgements_go_out_on_a_tick_of_the_promised_length() -> None:
    timing = Timing()
    assert 0.2 <= timing.tick_s <= 1.0
    assert timing.tick_s < timing.resend_s < timing.resend_max_s
