"""The shell around one host: carries out its effects, in order, on a disk, a transport and a clock.

Guarantee: what a host wants written is with the operating system before any frame of the same call is
handed to the transport. Everything happens in callbacks of one event loop, so calls into the host never
overlap. A call that fails, on a full disk say, ends everything: nothing is recorded or sent after it, and
`ended` tells whoever runs the node. So a record that was half written stays the last one.

A host is woken once all that arrived before was read, so that it misses nobody whose answer lies unread: after
turns of the loop that brought nothing, or `READ_TURNS_MAX` of them where there is no end of frames. In each turn every
connection is read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from p2pdp.core.ids import Peer
from p2pdp.core.step import Output
from p2pdp.node.aside import Aside
from p2pdp.node.clock import Clock
from p2pdp.node.disk import Disk, write_durably
from p2pdp.peer.effects import Effects
from p2pdp.peer.host import Host
from p2pdp.transports.contract import Origin, SendsTogether, Transport
from p2pdp.wire.frames import Kind

TOTALS_FILE: Final = "totals.json"
TIMER_S: Final = 0.001  # what an event loop rounds its waits to
READ_TURNS: Final = 2  # without any frame: a loop that looks at its timers first reads its sockets between the two
READ_TURNS_MAX: Final = 16
KIND_AT: Final = 1  # where a frame's kind stands
_BOXED: Final = int(Kind.BOXED)

Documents = Callable[[Origin, bytes], None]


def _nobody(_peer: Peer) -> None:
    pass


def _unheeded(_peer: Peer, _there: bool) -> None:
    pass


class HostShell:
    """Runs a host. Make it within a running event loop."""

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        documents: Documents,
        on_output: Callable[[Output], None],
        on_lost: Callable[[Peer], None] = _nobody,
        on_connection: Callable[[Peer, bool], None] = _unheeded,
        slowness: Callable[[], float] | None = None,
    ) -> None:
        """Frames that are not boxed go to `documents`. A host that watches others is told the machine's `slowness`.

        A lost connection is reported to `on_lost` while there is no host; afterwards `on_connection` is told when a
        peer's connection is lost or restored.
        """
        self._disk = disk
        self._clock = clock
        self._documents = documents
        self._on_output = on_output
        self._on_lost = on_lost
        self._on_connection = on_connection
        self._slowness = slowness
        self._arrivals = 0
        self._wake: asyncio.TimerHandle | None = None
        self._wake_at_s = 0.0
        self._stopped = False
        self._idles = False
        self._aside: Aside[Effects] | None = None
        self._held: dict[Peer, list[bytes]] = {}
        self.transport: Transport | None = None
        self.host: Host | None = None
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.bytes_sent = 0

    def begin(self, host: Host) -> None:
        self.host = host
        self.carry_out(self._called(partial(host.begin, self._clock.now_s())))

    def beside(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return what does this work of the host's machine aside where it takes long."""
        self._aside = Aside(partial(self.safely, self._worked))
        return self._aside.does(work)

    def _called(self, act: Callable[[], Effects]) -> Effects:
        """Call the host; if its machine works now, return what is to be done before that is over."""
        found = act() if self._aside is None else self._aside.call(act)
        return self._begin_work() if found is None else found

    @property
    def _works(self) -> bool:
        return self._aside is not None and self._aside.working

    def _begin_work(self) -> Effects:
        assert self.host is not None
        return self.host.meanwhile.begin(self._clock.now_s())

    def _worked(self) -> None:
        """Go on with the call whose work is done, then with what came meanwhile."""
        host, aside = self.host, self._aside
        assert host is not None
        assert aside is not None
        if host.stopped:  # it must not draw any more
            aside.leave()
            return
        host.meanwhile.end(self._clock.now_s())
        found = aside.go_on()
        self.carry_out(self._begin_work() if found is None else found)
        while host.meanwhile.kept and not (self._works or self._stopped):
            now_s = self._clock.now_s()
            self.carry_out(self._called(partial(host.meanwhile.next_kept, now_s)))

    def fail(self, error: BaseException) -> None:
        """Stop; the error goes to whoever awaits `ended`."""
        self.stop()
        if not self.ended.done():
            self.ended.set_exception(error)

    def safely(self, act: Callable[[], None]) -> None:
        """Run a callback of the event loop, which would report an error and go on."""
        if self._stopped:
            return
        try:
            act()
        except Exception as error:  # noqa: BLE001  (it is told to whoever awaits `ended`)
            self.fail(error)

    # transports.contract.Shell

    def arrived(self, origin: Origin, frame: bytes) -> None:
        if self._stopped:
            return
        try:
            host, transport = self.host, self.transport
            if len(frame) <= KIND_AT or frame[KIND_AT] != _BOXED:
                self._documents(origin, frame)
            elif host is not None and transport is not None:  # else it will be sent again once there are both
                self._arrivals += 1
                now_s = self._clock.now_s()
                stranger = origin in transport.strangers
                aside = self._aside
                fast = host.fast_frame if aside is None or aside.does_at_once else None
                hop = None if stranger or fast is None else fast(frame, now_s)
                if hop is None:
                    effects = self._took(host, frame, now_s)
                    self.carry_out(self._from_stranger(origin, effects) if stranger else effects)
                    return
                writes, frames, wake_at_s = hop  # what little `carry_out` would do with it
                if writes:
                    self._disk.append(writes)
                if frames:
                    (self._hold if host.gathers else self._send)(frames)
                if wake_at_s is not None and (self._wake is None or wake_at_s < self._wake_at_s):
                    self._schedule(wake_at_s)
                if host.wants_idle and not self._idles:
                    self._idle_soon()
        except Exception as error:  # noqa: BLE001  (as in `safely`, without its cost for each frame)
            self.fail(error)

    def _took(self, host: Host, frame: bytes, now_s: float) -> Effects:
        if self._works:
            return host.meanwhile.frame(frame, now_s)
        return self._called(partial(host.full_frame, frame, now_s))

    def lost(self, peer: Peer) -> None:
        self.safely(lambda: self._on_lost(peer) if self.host is None else self._greet(peer, there=False))

    def connected(self, peer: Peer) -> None:
        self.safely(lambda: self._greet(peer, there=True))

    def _greet(self, peer: Peer, *, there: bool) -> None:
        """Compare sequence numbers with a peer; the transport connects to it if necessary."""
        if self.host is not None and not self.host.done:
            self.carry_out(self.host.connected(peer, self._clock.now_s()))
        if self.host is not None:
            self._on_connection(peer, there)

    def _from_stranger(self, origin: Origin, effects: Effects) -> Effects:
        """Tell the transport which peer is at a new origin, once a fresh frame proves it.

        Until then the claimed peer is answered at this origin only, with all that the frame led to: if it is the peer,
        it answers our question, and if somebody repeats old frames, the peer misses nothing.
        """
        assert self.host is not None
        assert self.transport is not None
        proved, fresh = self.host.proved
        if proved is None:
            return effects
        if fresh:
            self.transport.belongs(origin, proved)
            return effects
        if effects.writes:
            self._disk.append(effects.writes)
        for peer, frame in effects.frames:
            if peer == proved:
                self.bytes_sent += len(frame)
                self.transport.answer(origin, frame)
        others = tuple((peer, frame) for peer, frame in effects.frames if peer != proved)
        return effects._replace(writes=(), frames=others)

    # Effects

    def carry_out(self, effects: Effects) -> None:
        writes, frames, wake_at_s, outputs, _ = effects
        if writes:
            self._disk.append(writes)
        for output in outputs:
            self._on_output(output)
        if self._held:
            self._let_go()  # what came before
        self._send(frames)
        host = self.host
        if wake_at_s is not None and (self._wake is None or wake_at_s < self._wake_at_s):
            self._schedule(wake_at_s)
        if host is None:
            return
        if host.wants_idle and not self._idles:
            self._idle_soon()
        if host.over and not self.ended.done():
            self.ended.set_result(None)

    def _send(self, frames: Sequence[tuple[Peer, bytes]]) -> None:
        transport = self.transport
        assert transport is not None
        for peer, frame in frames:
            self.bytes_sent += len(frame)
            transport.send(peer, frame)

    def _hold(self, frames: Sequence[tuple[Peer, bytes]]) -> None:
        """Keep frames until all is taken that the loop reads in this turn."""
        held = self._held
        if not held:
            self._loop.call_soon(self.safely, self._let_go)
        for peer, frame in frames:
            held.setdefault(peer, []).append(frame)

    def _let_go(self) -> None:
        """Write what the host has gathered, then send what was kept, the frames of each peer together."""
        held, self._held = self._held, {}
        if not held or self.host is None or self.transport is None:
            return
        writes = self.host.take_writes()
        if writes:
            self._disk.append(writes)
        transport = self.transport
        for peer, frames in held.items():
            self.bytes_sent += sum(map(len, frames))
            if len(frames) > 1 and isinstance(transport, SendsTogether):
                transport.send_together(peer, frames)
            else:
                for frame in frames:
                    transport.send(peer, frame)

    def _idle_soon(self) -> None:
        self._idles = True
        self._loop.call_soon(self.safely, self._idle)  # after what was sent has left

    def _idle(self) -> None:
        self._idles = False
        if self.host is not None:
            self.carry_out(self.host.idle(self._clock.now_s()))

    def _schedule(self, at_s: float) -> None:
        """Set the only timer; one that is set for an earlier time stays, for a spurious wake does no harm."""
        if self._wake is not None:
            self._wake.cancel()
        self._wake_at_s = at_s
        delay_s = max(0.0, at_s - self._clock.now_s()) + TIMER_S  # a loop that rounds down would wake too early, often
        self._wake = self._loop.call_later(delay_s, self.safely, self._woken)

    def _woken(self) -> None:
        self._read_first(READ_TURNS, READ_TURNS_MAX, self._arrivals)

    def _read_first(self, turns: int, turns_max: int, arrivals: int) -> None:
        """Let the loop read what arrived, then wake the host."""
        if arrivals != self._arrivals:
            turns = READ_TURNS
        if turns and turns_max:
            again = partial(self._read_first, turns - 1, turns_max - 1, self._arrivals)
            self._loop.call_soon(self.safely, again)
            return
        self._wake = None
        if self.host is not None:
            if self._slowness is not None:
                self.host.slowness = self._slowness()
            wake = partial(self.host.wake, self._clock.now_s())
            self.carry_out(wake() if self._works else self._called(wake))

    def write_totals(self, folder: Path) -> None:
        """Write what only this process knows: bytes sent and fault counts by kind."""
        faults = {} if self.host is None else self.host.fault_counts
        write_durably(folder / TOTALS_FILE, json.dumps({"bytes": self.bytes_sent, "faults": faults}).encode())

    def stop(self) -> None:
        self._stopped = True
        if self._aside is not None and self._works:
            self._aside.leave()
        if self._wake is not None:
            self._wake.cancel()
        self._disk.close()
