"""An audit is the same, bit for bit, however many processes make it."""

from __future__ import annotations

from pathlib import Path

import pytest

import p2pdp
from p2pdp.cluster import blocks
from tests.contracts.frozen import specs

SMALL = [name for name in specs() if name.startswith("small:")]


@pytest.mark.parametrize("name", SMALL)
def test_an_audit_is_the_same_on_any_number_of_cores(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    p2pdp.simulate(specs()[name], tmp_path / "run")
    monkeypatch.setattr(blocks, "ALONE_S", 0.0)
    found = [p2pdp.audit(tmp_path / "run", [1], workers=workers) for workers in (1, 2, 3)]
    assert found[0].to_json() == found[1].to_json() == found[2].to_json()
    for part in ("mu", "leak", "epsilon", "variation", "published"):
        one, *others = (getattr(audited, part) for audited in found)
        assert all((one is None) == (other is None) for other in others)
        assert all(one is None or one.tobytes() == other.tobytes() for other in others)
