from __future__ import annotations

import json
from pathlib import Path

from p2pdp.crypto.roster import Roster
from tests.node.local import job_in, run_all


async def test_roles_publish_sign_the_roster_and_say_what_happened(tmp_path: Path) -> None:
    job = job_in(tmp_path / "run")
    events = await run_all(job)
    assert [event["event"] for event in events] == ["roster", "published"]
    roster = Roster.from_json(json.loads((job.folder / "roster.json").read_text()))
    roster.check(job.bootstrap_public)
    assert (roster.n, roster.run_id, roster.spec_digest) == (3, job.run_id, job.digest)
    assert not list((job.folder / "curator").rglob("run.key"))
    totals = json.loads((job.folder / "curator" / "totals.json").read_text())
    assert totals["bytes"] > 0
    assert totals["faults"] == {}
