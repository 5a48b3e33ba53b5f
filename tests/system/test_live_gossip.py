"""Gossip among real processes: every remaining round completes, whoever is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from p2pdp.audit.verify import COMPLETE
from p2pdp.runs.audit import audit, verify
from tests.scenarios.test_gossip import gossip
from tests.system.launched import ROLES, Launched


@pytest.mark.parametrize(
    "text",
    [
        gossip(6, "ring", "rounds = 400", patience_s=6),
        gossip(6, "erdos_renyi", "rounds = 300", patience_s=6).replace("[gossip]", "changing = true\n[gossip]"),
        gossip(6, "complete", "activations = 1500", "randomized", 6),
    ],
    ids=["average", "changing", "randomized"],
)
def test_users_and_bootstrap_are_killed(tmp_path: Path, text: str) -> None:
    with Launched(tmp_path, text) as run:
        run.wait_for_everybody()
        for who in (2, ROLES, 5):
            run.wait_for_progress(20_000)
            run.kill(who)
        result = run.completes()
    assert result["missing"] == []
    assert [output["user"] for output in result["outputs"]] == list(range(6))
    assert (verify(run.folder).verified, verify(run.folder).problems) == (COMPLETE, [])
    assert audit(run.folder, None, None, allow_missing=False).claims
