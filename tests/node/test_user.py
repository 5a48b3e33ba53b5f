from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from p2pdp.cluster.peers import user_main
from p2pdp.core.addresses import Address
from p2pdp.core.errors import Refused, VerificationFailed
from p2pdp.core.expiry import Expired
from p2pdp.core.spec import AuditPart
from p2pdp.crypto.identity import RunKey
from p2pdp.crypto.sealed_skeleton import open_skeleton, sealed_bytes
from p2pdp.ledger.records import to_skeleton
from p2pdp.node.user import NOTE_S, RUN_KEY_FILE, SEAT_FILE, Waiting, handed_in, has_finished
from p2pdp.protocols.run_plan import skeleton_size
from p2pdp.runs.audit import verify
from tests.support.local import SPEC, alone, bound, job_in, run_all, soon
from tests.support.runs import quiet, walk
from tests.support.toys import credentials


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


async def test_a_node_that_has_finished_is_not_started_again(tmp_path: Path) -> None:
    """It would make a new run key, with which nobody could read what it says."""
    job = job_in(tmp_path / "run")
    place = job.folder / "nodes" / "0001"
    assert not has_finished(place, job.spec.run)
    await run_all(job)
    assert has_finished(place, job.spec.run)
    with bound() as listening:
        await user_main(job, 1, alone(listening, Address("127.0.0.1", 1)))()
    assert not (place / RUN_KEY_FILE).exists()
    (place / RUN_KEY_FILE).write_bytes(bytes(32))
    assert not has_finished(place, job.spec.run)


async def test_a_node_that_waits_for_bootstrap_ends_when_the_run_expires(tmp_path: Path) -> None:
    job = job_in(tmp_path / "run", soon())
    place = job.folder / "nodes" / "0001"
    with bound() as listening, bound() as nobody, pytest.raises(Expired, match="before it had ended"):
        await user_main(job, 1, alone(listening, Address(*nobody.getsockname())))()
    assert (place / "view.ledger").exists()
    assert not (place / RUN_KEY_FILE).exists()


async def test_in_the_middle_of_a_run_everybody_ends_when_it_expires(tmp_path: Path) -> None:
    endless = SPEC.replace("laps = 2", "laps = 1_000_000")
    job = job_in(tmp_path / "run", soon(endless, 1.5))
    with pytest.raises(Expired):
        await run_all(job)
    with bound() as listening, pytest.raises(Expired):  # whoever comes back later does nothing at all
        await user_main(job, 1, alone(listening, Address("127.0.0.1", 1)))()
    assert not (job.folder / "nodes" / "0001" / RUN_KEY_FILE).exists()
    assert b"" not in [path.read_bytes() for path in job.folder.rglob("view.ledger")]


async def test_a_node_whose_run_key_is_lost_before_the_end_says_so(tmp_path: Path) -> None:
    job = job_in(tmp_path / "run")
    await run_all(job)
    ledger = job.folder / "nodes" / "0001" / "view.ledger"
    ledger.write_bytes(ledger.read_bytes()[:-1])  # it was never closed
    with bound() as listening, pytest.raises(VerificationFailed, match="is gone"):
        await user_main(job, 1, alone(listening, Address("127.0.0.1", 1)))()


@pytest.mark.parametrize("credentials", [b"", b"\x93\x01\xc0\xc4\x02no", b"\x91\x01", b"\x93\x00\xc0\x00"])
async def test_a_damaged_seat_is_refused(tmp_path: Path, credentials: bytes) -> None:
    job = job_in(tmp_path / "run")
    place = job.folder / "nodes" / "0000"
    place.mkdir(parents=True)
    (place / RUN_KEY_FILE).write_bytes(bytes(32))
    (place / SEAT_FILE).write_bytes(credentials)
    with bound() as listening, pytest.raises(VerificationFailed, match="damaged"):
        await user_main(job, 0, alone(listening, Address("127.0.0.1", 1)))()


AUDITOR = RunKey(bytes([7] * 32))
RUN = quiet(walk(4, 30))


def test_a_skeleton_is_sealed_to_the_auditor_that_the_spec_names() -> None:
    view = RUN.evidence.views[2]
    assert handed_in(lambda _: view, RUN.plan, credentials(2, 4))() == to_skeleton(view)
    spec = replace(RUN.plan.spec, audit=AuditPart(AUDITOR.public.hex()))
    plan = replace(RUN.plan, spec=spec)
    sealed = handed_in(lambda _: view, plan, credentials(2, 4))
    assert open_skeleton(sealed(), AUDITOR) == to_skeleton(view)
    assert sealed() == sealed()
    assert len(sealed()) == sealed_bytes(skeleton_size(plan, 3))


def test_its_length_is_that_of_every_other_user() -> None:
    plan = replace(RUN.plan, spec=replace(RUN.plan.spec, audit=AuditPart(AUDITOR.public.hex())))
    views = [RUN.evidence.views[user] for user in range(4)]
    assert len({len(view) for view in map(to_skeleton, views)}) > 1
    assert len({len(handed_in(lambda _, view=view: view, plan, credentials(1, 4))()) for view in views}) == 1  # type: ignore[misc]


def test_what_lasts_is_told_once_and_then_each_change_and_the_end() -> None:
    told: list[str] = []
    waiting = Waiting(told.append)
    waiting.note("for one", 10.0)
    waiting.note("for one", 10.0 + NOTE_S - 0.1)
    assert told == []
    waiting.note("for one", 10.0 + NOTE_S)
    waiting.note("for one", 20.0)
    waiting.note("for two", 20.1)
    assert told == ["for one", "for two"]
    waiting.note(None, 21.0)
    waiting.note(None, 22.0)
    assert told[2:] == ["bootstrap is there; it goes on"]
    waiting.note("for one", 23.0)
    assert len(told) == 3


def test_what_passes_soon_is_not_told() -> None:
    told: list[str] = []
    waiting = Waiting(told.append)
    for second in range(10):
        waiting.note("for one", float(second))
        waiting.note(None, second + 0.5)
    assert told == []
