from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from p2pdp.cluster.peers import roles_main
from p2pdp.core.errors import RunFailed
from p2pdp.core.expiry import Expired
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.core.messages import BLOCKED, EXCLUDED
from p2pdp.core.step import Output
from p2pdp.crypto.roster import Roster
from p2pdp.node.roles import RUN_KEY_FILE, RolesNode, have_finished, who_is
from p2pdp.peer.payloads import CONTROL, HEAD
from p2pdp.peer.peers import Peers
from p2pdp.wire.codec import pack
from tests.support.local import alone, bound, job_in, run_all, soon


async def test_roles_publish_sign_the_roster_and_say_what_happened(tmp_path: Path) -> None:
    job = job_in(tmp_path / "run")
    events = await run_all(job)
    assert [event["event"] for event in events if event["event"] != "enrolling"] == ["roster", "published"]
    assert [event["count"] for event in events if event["event"] == "enrolling"][-1] == 3
    roster = Roster.from_json(json.loads((job.folder / "roster.json").read_text()))
    roster.check(job.bootstrap_public)
    assert (roster.n, roster.run_id, roster.spec_digest) == (3, job.run_id, job.digest)
    assert not list((job.folder / "curator").rglob("run.key"))
    totals = json.loads((job.folder / "curator" / "totals.json").read_text())
    assert totals["bytes"] > 0
    assert totals["faults"] == {}


async def test_bombs_of_a_user_stop_nobody_in_a_live_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """User 1 tells everybody, time and again, that it has more messages of theirs than were ever sent."""
    told: set[int] = set()
    took = Peers.took

    def bombing(self: Peers, *given: Any) -> None:
        took(self, *given)
        if self._credentials.me == 1:
            for victim in self._credentials.peers():
                self.frame(victim, HEAD.pack(CONTROL, 0, 10**6, bytes(16)) + pack([]))
                told.add(victim)

    monkeypatch.setattr(Peers, "took", bombing)
    job = job_in(tmp_path / "run")
    events = await run_all(job)
    assert told == {BOOTSTRAP, CURATOR, 0, 2}
    assert "published" in [event["event"] for event in events]
    totals = json.loads((job.folder / "curator" / "totals.json").read_text())
    assert totals["faults"]["unproven_rollback"] > 0


async def test_roles_that_have_finished_are_not_started_again(tmp_path: Path) -> None:
    job = job_in(tmp_path / "run")
    curator = job.folder / "curator"
    assert not have_finished(curator)
    await run_all(job)
    assert have_finished(curator)
    with bound() as listening:
        await roles_main(job, alone(listening), -1)()
    places = (curator, curator / "bootstrap")
    for place in places:
        (place / RUN_KEY_FILE).write_bytes(bytes(32))
    assert not have_finished(curator), "they may still be needed: nobody has left yet"
    (curator / RUN_KEY_FILE).unlink()
    assert have_finished(curator)
    assert not (curator / "bootstrap" / RUN_KEY_FILE).exists()
    (curator / "view.ledger").write_bytes((curator / "view.ledger").read_bytes()[:-1])
    assert not have_finished(curator)


async def test_roles_for_which_nobody_comes_end_when_the_run_expires(tmp_path: Path) -> None:
    job = job_in(tmp_path / "run", soon())  # if not sooner, on a machine that stands still
    with bound() as listening, pytest.raises(Expired, match="before it had ended"):
        await roles_main(job, alone(listening), -1)()
    assert not list(job.folder.rglob(RUN_KEY_FILE))


class Blocked:
    """As much of a node as decides what a block means, and a host that has heard some peers."""

    def __init__(self, old: int, *heard: int) -> None:
        self.failed: list[BaseException] = []
        self.told: list[Output] = []
        self._settings = SimpleNamespace(on_output=lambda _peer, output: self.told.append(output))
        self._old_outputs = {BOOTSTRAP: old}
        plan = SimpleNamespace(why_needed="a ring cannot go round")
        self._run = SimpleNamespace(spec=SimpleNamespace(run=SimpleNamespace(patience_s=0.0)), plan=plan)
        self._timers: list[asyncio.TimerHandle] = []
        self.shells = {BOOTSTRAP: self}
        self.host = SimpleNamespace(heard=lambda peer: peer in heard)
        self.asked = asyncio.Event()

    def safely(self, act: Any) -> None:
        try:
            act()
        except RunFailed as error:
            self.failed.append(error)
        self.asked.set()

    def _blocked(self, who: int, *, old: bool) -> None:
        RolesNode._blocked(self, who, old=old)  # type: ignore[arg-type]

    def hear(self, *outputs: Output) -> None:
        told = RolesNode._output_handler(self, BOOTSTRAP)  # type: ignore[arg-type]
        for output in outputs:
            told(output)


async def test_a_blocked_run_fails_with_its_reason() -> None:
    roles = Blocked(0)
    with pytest.raises(RunFailed, match="user 2 is gone, and a ring cannot go round"):
        roles.hear(Output(EXCLUDED, (1, b"")), Output(BLOCKED, (2,)))
    assert len(roles.told) == 2


@pytest.mark.parametrize("heard", [(2,), ()])
async def test_a_block_of_an_earlier_start_counts_if_who_caused_it_stays_away(heard: tuple[int, ...]) -> None:
    roles = Blocked(2, *heard)
    roles.hear(Output(EXCLUDED, (1, b"")), Output(BLOCKED, (2,)))
    async with asyncio.timeout(60):
        await roles.asked.wait()
    assert [str(error) for error in roles.failed] == (
        [] if heard else ["user 2 is still gone, and a ring cannot go round"]
    )
    with pytest.raises(RunFailed):
        roles.hear(Output(BLOCKED, (2,)))  # a new one


class Ending:
    """As much of a node as waits for its two shells."""

    def __init__(self, *stopped: int) -> None:
        make = asyncio.get_running_loop().create_future
        self.shells = {
            peer: SimpleNamespace(ended=make(), host=SimpleNamespace(stopped=peer in stopped))
            for peer in (BOOTSTRAP, CURATOR)
        }

    def waiting(self) -> asyncio.Task[None]:
        return asyncio.create_task(RolesNode._ended(self))  # type: ignore[arg-type]


@pytest.mark.parametrize(("peer", "name"), [(BOOTSTRAP, "bootstrap"), (CURATOR, "curator")])
async def test_if_one_of_the_two_cannot_go_on_the_other_does_not_wait_for_it(peer: int, name: str) -> None:
    node = Ending(peer)
    waiting = node.waiting()
    node.shells[peer].ended.set_result(None)
    with pytest.raises(RunFailed, match=f"^{name} cannot go on"):
        await asyncio.wait_for(waiting, 60)


async def test_what_ended_one_of_them_ends_both() -> None:
    node = Ending()
    waiting = node.waiting()
    for shell in node.shells.values():
        shell.ended.set_exception(RunFailed("no space is left"))
    with pytest.raises(RunFailed, match="no space"):
        await asyncio.wait_for(waiting, 60)


async def test_the_run_goes_on_until_both_have_ended() -> None:
    node = Ending()
    waiting = node.waiting()
    node.shells[BOOTSTRAP].ended.set_result(None)
    assert await asyncio.wait({waiting}, timeout=0) == (set(), {waiting})
    await asyncio.wait({waiting}, timeout=0.01)
    assert not waiting.done()
    node.shells[CURATOR].ended.set_result(None)
    await asyncio.wait_for(waiting, 60)


def test_peers_are_named_for_people() -> None:
    assert [who_is(3), who_is(CURATOR)] == ["user 3", "curator"]
