from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p2pdp.cluster.peers import user_main
from p2pdp.core.addresses import Address
from p2pdp.core.errors import Refused, VerificationFailed
from p2pdp.core.expiry import Expired
from p2pdp.core.spec import AuditPart
from p2pdp.crypto.enrolment import SEAT, Answer
from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.crypto.roster import Roster, sign_roster
from p2pdp.crypto.sealed_skeleton import open_skeleton, sealed_bytes
from p2pdp.ledger.records import to_skeleton
from p2pdp.node.user import NOTE_S, RUN_KEY_FILE, SEAT_FILE, Waiting, handed_in, has_finished
from p2pdp.protocols.run_plan import skeleton_size
from p2pdp.runs.audit import verify
from p2pdp.services.enrolment import EnrolmentService
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


async def test_folders_are_for_their_owner_only_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        job = job_in(tmp_path / "run")
        await run_all(job)
    finally:
        os.umask(before)
    made = [path for path in job.folder.rglob("*") if path.is_dir()]
    assert {"nodes", "0002", "curator", "bootstrap"} <= {path.name for path in made}
    assert {path.stat().st_mode & 0o777 for path in made} == {0o700}
    ledgers = [path for path in job.folder.rglob("*") if path.suffix in (".ledger", ".key") or path.name == "seat"]
    assert len(ledgers) > 3 * job.slots
    assert {path.stat().st_mode & 0o777 for path in ledgers} == {0o600}


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


def another_seat(answer: Answer) -> Answer:
    return replace(answer, user=(answer.user + 1) % 3)


def a_roster_with(change: Callable[[Roster], dict[str, Any]]) -> Callable[[Answer], Answer]:
    """What signs another roster as this run's bootstrap would."""

    def changed(answer: Answer) -> Answer:
        roster = Roster.from_bytes(answer.roster)
        parts: dict[str, Any] = {
            name: getattr(roster, name)
            for name in ("run_id", "spec_digest", "protocol", "bootstrap", "curator", "entries")
        }
        again = sign_roster(SIGNER[0], facts=dict(roster.facts), **(parts | change(roster)))
        return replace(answer, roster=again.to_bytes())

    return changed


SIGNER: list[Identity] = []
STORIES: dict[str, tuple[Callable[[Answer], Answer], str]] = {
    "another number": (another_seat, "own entry"),
    "another run": (a_roster_with(lambda _: {"run_id": bytes(16)}), "another run"),
    "another spec": (a_roster_with(lambda _: {"spec_digest": bytes(32)}), "another spec"),
    "one user twice": (
        a_roster_with(lambda known: {"entries": [*known.entries[:], known.entries[0]]}),
        "user 0 and user 1 the same identity",
    ),
    "bootstrap is a user": (
        a_roster_with(lambda known: {"entries": [*known.entries[:], known.bootstrap]}),
        "bootstrap and user 1 the same identity",
    ),
    "a neighbour that is nobody": (lambda answer: replace(answer, neighbours=(7,)), "neighbours"),
}


@pytest.mark.parametrize("story", STORIES)
async def test_a_bootstrap_that_gives_a_seat_that_does_not_fit_is_left(tmp_path: Path, story: str) -> None:
    job = job_in(tmp_path / "run", SPEC.replace("nodes = 3", "nodes = 1"))
    honest = EnrolmentService._answer_for
    change, words = STORIES[story]

    def lying(self: EnrolmentService, token: int) -> Answer:
        SIGNER[:] = [self._identity]
        answer = honest(self, token)
        return change(answer) if answer.kind == SEAT else answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EnrolmentService, "_answer_for", lying)
        with pytest.raises(Refused, match=f"does not fit.*{words}") as raised:
            await run_all(job)
    assert raised.value.exit_code == 5
    assert not list(job.folder.glob("nodes/*/seat"))
    assert {ledger.read_bytes() for ledger in job.folder.glob("nodes/*/view.ledger")} == {b""}


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
