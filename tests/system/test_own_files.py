"""A node whose own files were changed while it was away: it names what was, and what to do; it is no defect."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from p2pdp.cluster.jobs import Job
from p2pdp.cluster.peers import user_main
from p2pdp.core.addresses import Address
from p2pdp.core.errors import P2pdpError, VerificationFailed
from p2pdp.ledger.records import read
from p2pdp.node.shell import HostShell
from p2pdp.node.user import UserNode
from tests.support.local import alone, bound, job_in, run_all

ME = 1
FILES = ("run.key", "seat", "identity.key", "view.ledger", "private.ledger")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, Path]:
    """The folder of a node that was killed before its ledger was closed."""
    place = tmp_path_factory.mktemp("own")
    job, kept = job_in(place / "run"), place / "kept"
    write_totals = HostShell.write_totals

    def keep(self: HostShell, folder: Path) -> None:
        if folder.name == f"{ME:04d}":
            shutil.copytree(folder, kept)
        write_totals(self, folder)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HostShell, "write_totals", keep)
        asyncio.run(run_all(job))
    for name in ("view.ledger", "private.ledger"):
        data = (kept / name).read_bytes()
        while len(read(data).records) and read(data).records[-1].kind == 11:
            data = data[:-1]
            data = data[: len(data) - read(data).torn_bytes]
        (kept / name).write_bytes(data)
    return job, kept


class GoesOnError(Exception):
    """All of its files were read, and it has begun."""


async def goes_on(node: UserNode) -> None:
    assert node._shell.host is not None
    await asyncio.sleep(0)  # what it has begun gets its turn
    if node._shell.ended.done():
        await node._shell.ended
    raise GoesOnError


async def started(job: Job, kept: Path, name: str, changed: bytes | None) -> str:
    """What a node says when it comes back to this folder, or `goes on`."""
    folder = job.folder / "nodes" / f"{ME:04d}"
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)
    if changed is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(changed)
    with bound() as listening, pytest.MonkeyPatch.context() as patch:
        patch.setattr(UserNode, "_take_part", goes_on)
        with pytest.raises((GoesOnError, P2pdpError)) as ended:
            await user_main(job, ME, alone(listening, Address("127.0.0.1", 1)))()
    if isinstance(ended.value, GoesOnError):
        return "goes on"
    assert isinstance(ended.value, VerificationFailed)
    assert str(folder) in str(ended.value)
    return str(ended.value)


def changes(data: bytes) -> Iterator[bytes]:
    for at in {0, len(data) // 3, len(data) // 2, len(data) - 1}:
        yield data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]
    for kept in {0, 1, len(data) // 2, len(data) - 1}:
        yield data[:kept]


async def test_a_folder_as_it_was_left_is_gone_on_with(stopped: tuple[Job, Path]) -> None:
    job, kept = stopped
    for name in FILES:
        assert await started(job, kept, name, (kept / name).read_bytes()) == "goes on"


@pytest.mark.parametrize("name", ["run.key", "seat", "identity.key"])
async def test_keys_and_seat_are_damaged_or_gone_in_words(stopped: tuple[Job, Path], name: str) -> None:
    job, kept = stopped
    for changed in (*changes((kept / name).read_bytes()), (kept / name).read_bytes() + b"x"):
        said = await started(job, kept, name, changed)
        assert name.removesuffix(".key") in said
        assert "damaged" in said
    if name == "run.key":
        assert "is gone" in await started(job, kept, name, None)


@pytest.mark.parametrize("name", ["view.ledger", "private.ledger"])
async def test_a_ledger_is_damaged_in_words_or_ends_earlier(stopped: tuple[Job, Path], name: str) -> None:
    """What is lost at the end alone is what a crash leaves too: peers, who remember more, tell."""
    job, kept = stopped
    data = (kept / name).read_bytes()
    for at in (0, 20, 40, len(data) // 3, len(data) // 2):
        said = await started(job, kept, name, data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        assert name in said
        assert "neither a ledger" in said or "damaged at byte" in said
    for tail in (bytes(100), b"\xff" * 100, data[17:80]):
        assert await started(job, kept, name, data + tail) == "goes on"
    whole = sorted({len(data[:end]) - read(data[:end]).torn_bytes for end in range(17, len(data), 7)})
    for end in (*whole[1:3], len(data) // 2):
        said = await started(job, kept, name, data[:end])
        assert said == "goes on" or "put them back" in said
