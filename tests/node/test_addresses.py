from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from p2pdp.cluster.jobs import Job
from p2pdp.core.addresses import Address, join_address
from p2pdp.core.errors import RunFailed
from p2pdp.core.step import Output
from p2pdp.crypto.addresses import Statement, read_statement, sign_statement, statement_frame
from p2pdp.crypto.identity import Identity
from p2pdp.files.folder import write_json
from p2pdp.node import addresses, user
from p2pdp.node.addresses import AddressExchange, RemotePeersSettings
from p2pdp.node.disk import durable_secret
from p2pdp.node.roles import RolesNode, RolesSettings
from p2pdp.node.user import UserNode, UserSettings, Waiting
from p2pdp.peer.credentials import Credentials
from p2pdp.runs.audit import verify
from p2pdp.services.addresses import FORGED, AddressBook, Directory, News
from p2pdp.services.bootstrap import PROGRESS
from p2pdp.services.enrolment import Quorum
from p2pdp.transports.tcp.kind import TcpNetwork
from tests.support.local import SPEC, bound, job_in
from tests.support.toys import RUN_ID, credentials, identity, roster

ROSTER = roster(3)


class Heard:
    """A node's addresses, what it says, and addresses that a test changes."""

    def __init__(self, *addresses: str | None, me: int = 1) -> None:
        self.addresses = list(addresses)
        self.said: asyncio.Queue[Statement] = asyncio.Queue()
        self.node = AddressExchange(credentials(me, 3), self.own_address, self.send)

    async def own_address(self) -> str | None:
        return self.addresses.pop(0) if len(self.addresses) > 1 else self.addresses[0]

    def send(self, frame: bytes) -> None:
        self.said.put_nowait(read_statement(frame, ROSTER))


def of(user: int, counter: int = 1) -> bytes:
    return statement_frame(sign_statement(identity(user), RUN_ID, user, counter, f"10.0.0.{user}:7000"))


async def test_it_asks_until_it_knows_all_neighbours_and_then_when_the_way_was_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(addresses, "ASK_S", 0.01)
    heard = Heard("10.0.0.1:7000")
    task = asyncio.create_task(heard.node.announce())
    async with asyncio.timeout(30):
        first, second = await heard.said.get(), await heard.said.get()
        assert first == second
        heard.node.hear(of(0))
        assert await heard.said.get() == first
        heard.node.hear(of(2))
        assert (heard.node.where(0), heard.node.where(2)) == ("10.0.0.0:7000", "10.0.0.2:7000")
        heard.node.again()
        while await heard.said.get() != first:
            pass
    task.cancel()


def test_the_counter_rises_only_with_a_new_address() -> None:
    heard = Heard(None)
    said: list[Statement] = []
    for address in (None, "10.0.0.1:1", "10.0.0.1:1", "10.0.0.1:2", None, "10.0.0.1:1"):
        heard.node.state(address)
        while not heard.said.empty():
            said.append(heard.said.get_nowait())
    first = said[0].counter
    assert [(one.address[-1], one.counter - first) for one in said] == [("1", 0), ("1", 0), ("2", 1), ("1", 2)]


async def test_a_machine_without_a_way_says_nothing_until_it_has_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(addresses, "ASK_S", 0.01)
    heard = Heard(None, None, "10.0.0.1:7000")
    for number in (0, 2):
        heard.node.hear(of(number))
    task = asyncio.create_task(heard.node.announce())
    async with asyncio.timeout(30):
        assert (await heard.said.get()).address == "10.0.0.1:7000"
    task.cancel()


def test_a_clock_that_went_back_is_caught_up_with() -> None:
    ahead = 1 << 62
    directory = Directory(ROSTER, lambda _user: None)
    directory.hear(of(1, ahead))
    heard = Heard("10.0.0.9:7000")
    heard.node.state("10.0.0.9:7000")
    told = directory.hear(statement_frame(heard.said.get_nowait()))
    for answer in told.answers:
        heard.node.hear(answer)
    heard.node.state("10.0.0.9:7000")
    statement = heard.said.get_nowait()
    assert statement.counter == ahead + 1
    assert directory.hear(statement_frame(statement)).answers == []
    assert directory.where(1) == "10.0.0.9:7000"


def test_forged_and_older_ones_change_nothing_and_are_counted() -> None:
    heard = Heard(None)
    heard.node.hear(of(0, 5))
    forged = sign_statement(identity(2), RUN_ID, 0, 9, "6.6.6.6:666")
    for frame in (statement_frame(forged), of(0, 4), b"rubbish"):
        heard.node.hear(frame)
    assert heard.node.where(0) == "10.0.0.0:7000"
    assert heard.node.faults == {FORGED: 2, "old_address": 1}


def test_a_node_that_starts_again_is_newer_than_it_was() -> None:
    book = AddressBook(ROSTER)
    for address in ("10.0.0.1:1", "10.0.0.1:2"):
        heard = Heard(None)
        heard.node.state(address)
        taken = book.take(statement_frame(heard.said.get_nowait()))
        assert taken is not None
        assert taken[1] is News.NEWER


async def test_peers_that_know_nothing_but_bootstrap_find_each_other(tmp_path: Path) -> None:
    job = job_in(
        tmp_path / "run", SPEC.replace("ring", "complete", 1).replace('"ring"\nlaps = 2', '"random"\nhops = 9')
    )
    seats: list[Credentials] = []
    sockets = [bound() for _ in range(4)]
    users = [remote_user(job, number, sockets, seats.append) for number in range(3)]
    outputs: list[Output] = []
    enrolled: list[int] = []
    curator = job.folder / "curator"
    boss = RolesNode(
        RolesSettings(
            folder=curator,
            identity=Identity(durable_secret(curator / "bootstrap" / "identity.key")),
            curator_identity=identity(7),
            run_id=job.run_id,
            spec_text=job.text,
            spec_digest=job.digest,
            run=job.spec.run,
            secrets=job.secrets,
            quorum=Quorum(3, 3, 60.0),
            prepare=job.plan,
            network=TcpNetwork(sockets[0]),
            where=None,
            sampler=job.sampler,
            on_roster=lambda roster: write_json(job.folder / "roster.json", roster.to_json()),
            on_output=lambda _peer, output: outputs.append(output),
            on_enrolled=enrolled.append,
            linger_s=60.0,
        )
    )
    async with asyncio.timeout(60):  # nobody lingers: all have left
        await asyncio.gather(boss.run(), *(each.run() for each in users))
    for each in sockets:
        each.close()
    assert [output.type for output in outputs if output.recorded] == ["result"]
    progress = [output.fields for output in outputs if output.type == PROGRESS]
    counted = [fields[:2] for fields in progress]
    assert counted == sorted(counted), "more and more are ready, and then they go"
    assert progress[-1] == (3, True, ())
    assert enrolled == [1, 2, 3]
    assert sorted(each.me for each in seats) == [0, 1, 2]
    assert verify(job.folder).verified == "complete"
    totals = [json.loads(path.read_text()) for path in job.folder.rglob("totals.json")]
    assert [said["faults"] for said in totals] == [{}] * 5


def remote_user(job: Job, number: int, sockets: list[socket.socket], admit: Callable[[Credentials], None]) -> UserNode:
    mine = sockets[number + 1]

    async def own_address() -> str:
        return join_address(*mine.getsockname())

    return UserNode(
        UserSettings(
            folder=job.folder / "nodes" / f"{number:04d}",
            identity=identity(number),
            token=number,
            secret=job.secrets[number],
            bootstrap_public=job.bootstrap_public,
            accept=lambda _text: job.digest,
            prepare=lambda roster, me: (job.plan(roster.n), job.rows(roster.n, me)),
            network=TcpNetwork(mine),
            bootstrap_place=Address(*sockets[0].getsockname()),
            where=lambda _roster, _user: None,
            sampler=job.sampler,
            run=lambda: job.spec.run,
            remote=RemotePeersSettings(own_address, admit, lambda _text: None),
        )
    )


class Closed:
    """As much of a node as waits at its end: its ledger is closed, and nobody acknowledges its head."""

    def __init__(self, give_up_s: float, *, heard: bool) -> None:
        async def nowhere() -> None:
            return None

        self.said: list[str] = []
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        host = SimpleNamespace(closed=True, heard=lambda _peer: heard)
        self._shell = SimpleNamespace(ended=ended, host=host)
        remote = RemotePeersSettings(nowhere, lambda _credentials: None, self.said.append, give_up_s)
        self._settings = SimpleNamespace(remote=remote, bootstrap_place=Address("10.0.0.1", 7000))
        self._clock = SimpleNamespace(now_s=iter(range(10**9)).__next__)
        self._waiting = Waiting(self.said.append)
        self._connection_lost = False

    def _no_answer(self) -> str:
        return UserNode._no_answer(self)  # type: ignore[arg-type]

    async def take_part(self) -> None:
        await UserNode._take_part(self)  # type: ignore[arg-type]


@pytest.mark.parametrize("heard", [True, False])
async def test_a_closed_node_gives_up_after_a_while_and_says_whom_it_waits_for(
    monkeypatch: pytest.MonkeyPatch, heard: bool
) -> None:
    monkeypatch.setattr(user, "RETRY_S", 0.0)
    node = Closed(20.0, heard=heard)
    async with asyncio.timeout(60):
        with pytest.raises(RunFailed, match="nobody takes its head"):
            await node.take_part()
    assert node.said == ([] if heard else ["waiting for bootstrap at 10.0.0.1:7000"])


async def test_a_node_whose_head_is_acknowledged_does_not_give_up() -> None:
    node = Closed(0.0, heard=True)
    node._shell.ended.set_result(None)
    await node.take_part()
    assert node.said == []
