"""How the whole suite is shared among its workers.

One project of containers is up at a time, so those tests go to one worker, which begins with them: on several they
would wait for each other. `--dist loadgroup` cannot do that with every pytest: since its 9.2, marks of groups are
without effect (https://github.com/pytest-dev/pytest-xdist/issues/1386). For a third of its time a worker waits for
processes and containers, so there are half as many workers again as cores.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pytest

CONTAINERS: Final = "tests/system/test_compose.py"


def workers(cores: int) -> int:
    return cores + (cores + 1) // 2 if cores > 1 else 1


def own_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def scope(node_id: str) -> str:
    """Return what a test shares a worker with: that of containers its file, any other one only itself."""
    return CONTAINERS if node_id.partition("::")[0] == CONTAINERS else node_id


def scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Scheduler(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope(nodeid)

    return Scheduler(config, log)
