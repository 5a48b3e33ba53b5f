"""What every test may use: public data sets, networks of hosts, one way of drawing examples; and the fast tier."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from p2pdp.cluster.pool import Pool
from tests.support import netns, workers
from tests.support.missing import missing
from tests.support.tiers import in_slow_room, is_fast, slow_tests

# Hundreds of tests start processes: each would compile our modules again, and every worker would rewrite all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Every worker and process would have as many threads for small matrices as there are cores, and they wait by spinning.
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

# Nothing is a mistake because it took long: how fast this machine is at present is no property of the program.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_configure() -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        Pool.is_inside = True  # one of several processes; forking from one this large takes longer than most work


def pytest_collection_finish() -> None:
    """The collector of cycles need not look again at thousands of tests and all that they import."""
    gc.collect()
    gc.freeze()
    gc.unfreeze = _stay_frozen  # type: ignore[assignment]


def _stay_frozen() -> None:
    """A launcher that runs in this process would have the collector look at all of it again, in every test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", action="store_true", help="write what scenario scripts come to into their files")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What is left out whole need not be imported either."""
    if config.option.markexpr != "fast" or not collection_path.is_relative_to(config.rootpath):
        return None
    return in_slow_room(collection_path.relative_to(config.rootpath).as_posix()) or None


@pytest.hookimpl(tryfirst=True)  # before marks select
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: workers.scope(item.nodeid) != workers.CONTAINERS)
    slow = slow_tests()
    for item in items:
        if is_fast(item.nodeid, slow) and item.get_closest_marker("slow") is None:
            item.add_marker("fast")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return workers.workers(workers.own_cores())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return workers.scheduler(config, log) if config.getvalue("dist") == "loadgroup" else None


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
