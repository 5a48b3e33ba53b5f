"""A benchmark forks, so it is measured in a process of its own (`tests/cli/test_bench.py`)."""

from __future__ import annotations

import pytest

from p2pdp.cluster.bench_gossip import is_exchange, seconds_between
from p2pdp.core.errors import RunFailed
from p2pdp.ledger.records import read
from tests.support.gossips import gossip
from tests.support.runs import quiet


def test_rounds_last_from_the_first_to_go_to_the_last_result() -> None:
    run = quiet(gossip(6, "ring", "rounds = 5"))
    users = [read(bytes(run.world.processes[user].disk.view)).records for user in range(6)]
    assert sum(is_exchange(record) for records in users for record in records) == 2 * 6 * 5
    seconds = seconds_between(users)
    assert 5 * 0.001 <= seconds <= run.world.now_s  # a message takes a millisecond there
    assert seconds_between(users[:3]) <= seconds
    with pytest.raises(RunFailed, match="1 users did not come to a result"):
        seconds_between([*users, []])
