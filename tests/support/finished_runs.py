"""Folders of runs that are over."""

from __future__ import annotations

import json
from pathlib import Path

from p2pdp.cluster.jobs import Job
from tests.support.local import SPEC, job_in, run_all


async def finished(folder: Path, text: str = SPEC) -> Job:
    """A run whose processes have ended, and whose launcher was killed before it could look at what they left."""
    job = job_in(folder, text)
    write_public(job)
    (folder / "run.json").write_text(json.dumps({"run_id": job.run_id.hex(), "started": "2024-01-01T00:00:00+00:00"}))
    await run_all(job)
    return job


def write_public(job: Job) -> None:
    (job.folder / "curator" / "bootstrap" / "identity.pub").write_text(job.bootstrap_public.hex() + "\n")
