"""What every test may use: the public data sets, and one way of drawing hypothesis examples."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of public data sets, which the repository does not hold."""
    folder = os.environ.get("P2PDP_DATA")
    if folder and Path(folder).is_dir():
        return Path(folder)
    text = "set P2PDP_DATA to the folder that holds the public data sets (email_enron.txt.gz, spambase.data.gz, ...)"
    if os.environ.get("P2PDP_REQUIRE") == "all":
        pytest.fail(f"P2PDP_REQUIRE=all: {text}")
    pytest.skip(text)
