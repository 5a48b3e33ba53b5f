"""What others wrote is read or refused: the kept corpus again, and some new inputs of each kind."""

from __future__ import annotations

import pytest

from p2pdp.core.errors import VerificationFailed
from tests.campaigns.decoders import TARGETS, Coverage, Target, fuzz, kept, problem


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_are_read_or_refused(name: str) -> None:
    for data in TARGETS[name].inputs() + kept(name):
        assert problem(name, data) is None
    found, _, reached = fuzz(name, 0, 40)
    assert found == []
    assert reached > 5


def test_an_exception_that_no_reader_may_raise_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def reads(data: bytes) -> None:
        if b"\xff\xff" in data:
            raise KeyError

    monkeypatch.setitem(TARGETS, "toy", Target(lambda: [b"abcdef"], reads, (VerificationFailed,)))
    found, _, _ = fuzz("toy", 1, 400)
    assert found
    assert found[0].kind == "exception"


def test_lines_in_another_order_are_new_coverage() -> None:
    coverage = Coverage()
    for data, fresh in ((b"127.0.0.1:80", True), (b"127.0.0.1:80", False), (b"nothing", True)):
        with coverage.watching():
            problem("addresses", data)
        assert coverage.learn() is fresh
