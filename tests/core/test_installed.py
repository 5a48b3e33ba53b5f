from __future__ import annotations

import importlib.metadata
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

from p2pdp.core.installed import installed, versions

if TYPE_CHECKING:
    import pytest


def test_packages_are_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def entry_points(*, group: str) -> Any:
        asked.append(group)
        return [EntryPoint("a.b", "somewhere:THING", group)]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    installed.cache_clear()
    try:
        assert list(installed("things")) == list(installed("things")) == ["a.b"]
        assert asked == ["p2pdp.things"]
    finally:
        installed.cache_clear()


def test_versions_are_those_of_installed_packages() -> None:
    assert versions(["numpy", "no-such-package"]) == {
        "numpy": importlib.metadata.version("numpy"),
        "no-such-package": "unknown",
    }
