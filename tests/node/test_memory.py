from __future__ import annotations

from pathlib import Path

import pytest

from p2pdp.node import memory


def test_a_process_has_some_memory_and_less_than_the_machine() -> None:
    found = memory.resident_bytes()
    if found is None:
        pytest.skip("this system does not tell")
    assert 1 << 20 < found < 1 << 40


def test_where_the_system_does_not_tell_it_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_STATM", tmp_path / "absent")
    assert memory.resident_bytes() is None
