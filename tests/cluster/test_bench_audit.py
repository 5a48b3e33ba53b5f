from __future__ import annotations

import pytest

from p2pdp.cluster.bench_audit import measure_audit
from p2pdp.core.errors import RunFailed
from tests.support.gossips import gossip


def test_a_run_is_audited_in_a_process_of_its_own() -> None:
    measured = measure_audit(gossip(8, "hypercube", "rounds = 3"))
    assert measured["seconds"] > 0.0
    assert measured["peak_mib"] > 10.0


def test_why_it_failed_is_told() -> None:
    with pytest.raises(RunFailed, match=r"the benchmark failed: .*rounds"):
        measure_audit(gossip(8, "hypercube", "rounds = -3"))
