from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from p2pdp.host.effects import Effects
from p2pdp.ledger.journal import VIEW
from p2pdp.ledger.records import LEDGER_MAGIC
from p2pdp.node.clock import Clock
from p2pdp.node.disk import Disk
from p2pdp.node.shell import HostShell


class Wire:
    """A transport that notes what was on the disk when a frame was handed to it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.sent: list[tuple[int, bytes, bytes]] = []

    def send(self, peer: int, frame: bytes) -> None:
        self.sent.append((peer, frame, self.file.read_bytes()))


def shell_in(folder: Path, documents: Any = None) -> tuple[HostShell, Wire]:
    shell = HostShell(Disk(folder, power=False), Clock(), documents or (lambda *_: None), lambda _output: None)
    wire = Wire(folder / "view.ledger")
    shell.transport = wire  # type: ignore[assignment]
    return shell, wire


async def test_a_record_is_written_before_its_frame_leaves(tmp_path: Path) -> None:
    shell, wire = shell_in(tmp_path)
    shell.carry_out(Effects(writes=((VIEW, LEDGER_MAGIC),), frames=((1, b"frame"),)))
    assert wire.sent == [(1, b"frame", LEDGER_MAGIC)]
    assert shell.bytes_sent == len(b"frame")
    shell.stop()


async def test_what_is_no_boxed_frame_goes_to_enrolment(tmp_path: Path) -> None:
    documents: list[tuple[Any, bytes]] = []
    shell, _ = shell_in(tmp_path, lambda origin, frame: documents.append((origin, frame)))
    shell.arrived("origin", b"\x01\x02rest")
    shell.arrived("origin", b"\x01\x01boxed, but there is no host yet")
    assert documents == [("origin", b"\x01\x02rest")]
    await asyncio.sleep(0)
    shell.stop()
