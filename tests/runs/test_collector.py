from __future__ import annotations

import gc

import pytest

from p2pdp.runs.collector import undisturbed


def test_the_collector_rests_and_goes_on_afterwards() -> None:
    assert gc.isenabled()
    with undisturbed():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_an_error_too() -> None:
    with pytest.raises(ValueError, match="why"), undisturbed():
        raise ValueError("why")
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with undisturbed():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
