from __future__ import annotations

from pathlib import Path

import pytest

from p2pdp.core.errors import Refused
from p2pdp.node.user import RUN_KEY_FILE, SEAT_FILE
from p2pdp.runs.audit import verify
from tests.node.local import SPEC, job_in, run_all


async def test_users_take_part_and_leave_closed_ledgers_and_no_run_key(tmp_path: Path) -> None:
    job = job_in(tmp_path / "run")
    await run_all(job)
    found = verify(job.folder)
    assert (found.verified, found.problems) == ("complete", [])
    for user in range(job.slots):
        place = job.folder / "nodes" / f"{user:04d}"
        assert not (place / RUN_KEY_FILE).exists()
        assert (place / SEAT_FILE).stat().st_mode & 0o777 == 0o600
        assert (place / "view.ledger").stat().st_mode & 0o777 == 0o600


async def test_a_wrong_join_token_is_told(tmp_path: Path) -> None:
    job = job_in(tmp_path / "run", SPEC.replace("nodes = 3", "nodes = 1"))
    other = job_in(tmp_path / "run", SPEC.replace("nodes = 3", "nodes = 1"))
    object.__setattr__(other, "secrets", [b"wrong secret 16."])
    from p2pdp.node.roles import RolesNode

    seen = RolesNode.__init__

    def with_true_secrets(self: RolesNode, settings: object) -> None:
        object.__setattr__(settings, "secrets", job.secrets)
        seen(self, settings)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RolesNode, "__init__", with_true_secrets)
        with pytest.raises(Refused, match="not valid here"):
            await run_all(other)
