"""Gossip among real processes: every remaining round completes, whoever is killed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from p2pdp.auditor.verify import COMPLETE
from p2pdp.runs.audit import audit, verify
from tests.support.gossip_specs import gossip, shared
from tests.support.launched import ROLES, Launched


@pytest.mark.parametrize(
    "text",
    [
        gossip(6, "ring", "rounds = 400", patience_s=6),
        gossip(6, "erdos_renyi", "rounds = 300", patience_s=6).replace("[gossip]", "changing = true\n[gossip]"),
        gossip(6, "complete", "activations = 1500", "randomized", 6),
        shared(gossip(6, "ring", "rounds = 400", patience_s=6)),
    ],
    ids=["average", "changing", "randomized", "shared"],
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


@pytest.mark.parametrize("terms", ["rounds = 5", "rounds = 5\naccelerated = true", 'rounds = 5\npublish = "all"'])
def test_known_answers_hold_live(tmp_path: Path, terms: str) -> None:
    """Of a hypercube of 2^4: leaks 4/C(4, k) at distance k < 4, and 1 at 4; all is told where all is published."""
    with Launched(tmp_path, gossip(16, "hypercube", terms)) as run:
        result = run.completes()
    audited = audit(run.folder, None, None, allow_missing=False)
    published = "publish" in terms
    bits = np.array([[(one ^ other).bit_count() for other in range(16)] for one in range(16)])
    assert audited.leak is not None
    middle = 1.0 if published else 2 / 3
    np.testing.assert_allclose(audited.leak, np.array([np.nan, 1.0, middle, 1.0, 1.0])[bits], atol=1e-9)
    assert any("everybody learns all" in said for said in audited.claims[0].assumptions) == published
    assert abs(result["error"]) <= 6 * result["standard_error"]
