"""A browser that opens pages and says what it complains of."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="module")
def browser() -> str:
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if found is not None:
        return found
    text = "install chromium, in which report.html is to be looked at"
    if os.environ.get("P2PDP_REQUIRE") == "all":
        pytest.fail(f"P2PDP_REQUIRE=all: {text}")
    pytest.skip(text)


def complaints(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line or "Content Security" in line]
