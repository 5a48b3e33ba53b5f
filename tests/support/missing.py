"""What a test does for which something is missing here."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(text: str) -> NoReturn:
    """Skips the test, unless nothing may be skipped."""
    if os.environ.get("P2PDP_REQUIRE") == "all":
        pytest.fail(f"P2PDP_REQUIRE=all: {text}")
    pytest.skip(text, allow_module_level=True)
