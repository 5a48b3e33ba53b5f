"""A user that floods another peer as fast as it can, and otherwise does its part. For processes that tests launch."""

from __future__ import annotations

import asyncio
from typing import Final

from p2pdp.core import messages
from p2pdp.core.ids import Peer
from p2pdp.core.step import Message
from p2pdp.node.shell import HostShell
from p2pdp.peer import payloads
from p2pdp.peer.host import Host
from p2pdp.wire.codec import pack_message

HELLO, POKE, RESEND, SILENT = "hello", "poke", "resend", "silent"
KINDS: Final = (HELLO, POKE, RESEND, SILENT)
EVERY_S: Final = 0.01
FRAMES: Final = 2000
MESSAGES: Final = 60_000  # about silence, in all
CONTROL: Final = 60_000  # other frames, in all


def flood_from(user: Peer, kind: str, victim: Peer) -> None:
    """Have this user flood from now on, in processes that are forked after this."""
    begin = HostShell.begin

    def begins(shell: HostShell, host: Host) -> None:
        begin(shell, host)
        if host._credentials.me == user:
            asyncio.get_running_loop().call_later(EVERY_S, shell.safely, lambda: _flood(shell, host, kind, victim, 0))

    HostShell.begin = begins  # type: ignore[method-assign]


def _flood(shell: HostShell, host: Host, kind: str, victim: Peer, sent: int) -> None:
    peers, transport = host._peers, shell.transport
    assert transport is not None
    if host._journal.closed or sent >= (MESSAGES if kind == SILENT else CONTROL):
        return
    host._catch_up()
    link = peers.link(victim)
    if kind == SILENT:
        about = pack_message(Message(messages.SILENT, ((host._credentials.me + 1) % 2,)))
        for _ in range(FRAMES):
            peers.send(victim, about, b"", shell._clock.now_s())
    else:
        control = {
            HELLO: lambda: link.control(0, link.hello(b"question")),
            POKE: lambda: link.control(payloads.POKE),
            RESEND: lambda: link.control(payloads.RESEND),
        }[kind]
        peers.frame(victim, control())
        peers.frames.extend([peers.frames[-1]] * (FRAMES - 1))
    frames, peers.frames = peers.frames, []
    for peer, frame in frames:
        transport.send(peer, frame)
    asyncio.get_running_loop().call_later(
        EVERY_S, shell.safely, lambda: _flood(shell, host, kind, victim, sent + FRAMES)
    )
