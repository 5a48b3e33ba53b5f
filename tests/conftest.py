"""What every test may use: the public data sets, networks of hosts, and one way of drawing hypothesis examples."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support import netns
from tests.support.missing import missing

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of public data sets, which the repository does not hold."""
    folder = os.environ.get("P2PDP_DATA")
    if not folder or not Path(folder).is_dir():
        missing(
            "set P2PDP_DATA to the folder that holds the public data sets (email_enron.txt.gz, spambase.data.gz, ...)"
        )
    return Path(folder)


@pytest.fixture(scope="session")
def networks() -> type[netns.Network]:
    """Networks of several hosts, where this machine can have them."""
    why_not = netns.why_not()
    if why_not is not None:
        missing(why_not)
    return netns.Network
