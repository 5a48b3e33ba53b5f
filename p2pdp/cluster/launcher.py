"""Starts, watches and ends the processes of a local run; the folder holds all that a second start needs.

A process that crashes is restarted: at once at first, then after waits that double up to `WAIT_MAX_S`, until it lived
for `SETTLED_S`. One that failed by itself `RESTARTS_MAX` times is given up. One that was killed from outside is not:
nothing is wrong with it, and if it stays away its peers go round it.

A blocked run, a full disk or a refusal ends all processes, and so does an interruption: then each is asked to end,
killed after `STOP_S`, and waited for, so that none is left, and the run can be resumed. If the launcher is killed, the
processes notice and end by themselves.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final

from p2pdp.cluster.jobs import Job
from p2pdp.cluster.layout import ONE_EACH, Packing, Sockets, allow_open_files, layout_of
from p2pdp.cluster.peers import REFUSED, SEATED, process_main
from p2pdp.cluster.processes import FAILED, INTERRUPTED, PEEKS, TRACE, Events, fork, send_event
from p2pdp.cluster.spawned import brief, spawn
from p2pdp.core.errors import NotReady, P2pdpError, Refused, RunFailed, UsageError, VerificationFailed
from p2pdp.core.messages import EXCLUDED
from p2pdp.transports.contract import ROLES
from p2pdp.transports.registry import transport_kind

RESTARTS_MAX: Final = 20
WAIT_S: Final = 0.05
WAIT_MAX_S: Final = 2.0
SETTLED_S: Final = 5.0
_FROM_OUTSIDE: Final = (-signal.SIGKILL, -signal.SIGTERM, INTERRUPTED)


class Restarts:
    """Counts failures of each process by its number."""

    def __init__(self) -> None:
        self._failed: dict[int, int] = {}
        self._next_wait_s: dict[int, float] = {}

    def wait_s(self, who: int, code: int, lived_s: float) -> float | None:
        """Return how long to wait before a restart; None if there is none."""
        if code not in _FROM_OUTSIDE:
            self._failed[who] = self._failed.get(who, 0) + 1
            if self._failed[who] > RESTARTS_MAX:
                return None
        wait_s = 0.0 if lived_s >= SETTLED_S else self._next_wait_s.get(who, 0.0)
        self._next_wait_s[who] = min(max(WAIT_S, 2 * wait_s), WAIT_MAX_S)
        return wait_s


STOP_S: Final = 5.0
PROGRESS_S: Final = 0.1
_FATAL: Final[dict[int, type[P2pdpError]]] = {
    UsageError.exit_code: RunFailed,  # what the user gave was checked before
    **{error.exit_code: error for error in (RunFailed, VerificationFailed, Refused, NotReady)},
}

OnEvent = Callable[[dict[str, Any]], None]


@dataclass
class Cluster:
    """One run or one resumption. `absent` processes are not started, `mortal` ones not restarted."""

    job: Job
    on_event: OnEvent
    packing: Packing = ONE_EACH
    absent: frozenset[int] = frozenset()
    mortal: frozenset[int] = frozenset()
    _processes: dict[int, int] = field(init=False, default_factory=dict)  # process id -> number in the layout
    _began_s: dict[int, float] = field(init=False, default_factory=dict)
    _due_s: dict[int, float] = field(init=False, default_factory=dict)  # when to start a process again
    _restarts: Restarts = field(init=False, default_factory=Restarts)
    _reasons: dict[int, str] = field(init=False, default_factory=dict)
    _excluded: set[int] = field(init=False, default_factory=set)  # users' slots
    _seated: set[int] = field(init=False, default_factory=set)
    _shown: set[str] = field(init=False, default_factory=set)
    _n: int | None = field(init=False, default=None)  # of users, once the roster is closed
    _roles_ended: bool = field(init=False, default=False)
    _interrupted: bool = field(init=False, default=False)

    def run(self) -> None:
        """Run until everything is closed; raise what ended the run otherwise."""
        self._layout = layout_of(self.job.spec, self.packing)
        kind = transport_kind(self.job.spec.run.transport)
        with ExitStack() as stack:
            allow_open_files(self.job.slots, self.packing.nodes_per_process)
            self._provision = stack.enter_context(kind.provide(self.job.spec))
            self._provided = None if self._provision is None else self._provision.known
            slots = map(self._layout.first_slot, self._layout.processes if kind.opens_sockets else ())
            self._sockets = stack.enter_context(closing(Sockets(slots)))
            known = brief(self.job.folder, self.packing, self._sockets.addresses, self._provided)
            self._brief = stack.enter_context(known)
            self._events = Events()
            stack.callback(self._events.close)
            self._lifeline = os.pipe()
            for end in self._lifeline:
                stack.callback(os.close, end)
            self._awake = stack.enter_context(_signals(self._interrupt))
            gc.collect()
            gc.freeze()  # what children inherit stays shared: the collector would touch every page of it
            stack.callback(gc.unfreeze)
            stack.callback(self._stop)
            self._start_all()
            self._watch()

    @property
    def processes(self) -> dict[int, int]:
        """Return the processes that run now: their numbers in the layout, by process id."""
        return dict(self._processes)

    def _interrupt(self, *_: object) -> None:
        self._interrupted = True

    # Starting

    def _start_all(self) -> None:
        """Start all, bootstrap first; read events meanwhile, so that no process waits for the pipe."""
        told_s = 0.0
        processes = [who for who in self._layout.processes if who not in self.absent]
        for begun, who in enumerate(processes, start=1):
            self._start(who)
            if monotonic() >= told_s + PROGRESS_S or begun == len(processes):
                told_s = monotonic()
                self.on_event({"event": "started", "count": begun, "of": len(processes)})
            self._read_events()
            if self._interrupted:
                raise SystemExit(INTERRUPTED)

    def _start(self, who: int) -> None:
        writing, sockets = self._events.writing, self._sockets
        first = self._layout.first_slot(who)
        mine = [sockets.descriptors[first]] if first in sockets.descriptors else []
        if self.packing.spawn:
            child = spawn(who, self._brief, writing, self._lifeline[0], mine)
        else:
            child = self._fork(who, mine)
        self._processes[child] = who
        self._began_s[who] = monotonic()

    def _fork(self, who: int, mine: list[int]) -> int:
        writing, sockets = self._events.writing, self._sockets

        def close() -> None:
            os.close(self._events.reading)
            os.close(self._lifeline[1])
            sockets.keep_only(mine)

        def report(kind: str, text: str) -> None:
            send_event(writing, kind, process=who, text=text)

        async def main() -> None:
            await process_main(self.job, self._layout, who, mine, sockets.addresses, writing, self._provided)()

        return fork(main, close, report, self._lifeline[0])

    def _start_due(self) -> None:
        now_s = monotonic()
        for who in [who for who, due_s in self._due_s.items() if due_s <= now_s]:
            del self._due_s[who]
            users = self._layout.users(who)
            self.on_event({"event": "restarted", "user": users[0] if who != ROLES else ROLES, "users": len(users)})
            self._start(who)

    # Watching

    def _watch(self) -> None:
        """Handle ends of processes and events until no process is left to wait for."""
        while self._processes or self._due_s:
            until_s = min(self._due_s.values(), default=monotonic() + 1.0)
            self._sleep(min(1.0, until_s - monotonic()))
            self._read_events()
            if self._provision is not None:
                self._provision.check()
            for who, code in self._reaped():
                self._ended(who, code)
            if self._interrupted:
                raise SystemExit(INTERRUPTED)
            if self._roles_ended:
                return  # who is left was excluded, or has nobody to talk to any more
            self._start_due()
            if not (self._due_s or self._layout.in_one_process) and len(self._processes) == 1:
                ((child, last),) = self._processes.items()
                if last == ROLES:
                    os.kill(child, signal.SIGUSR1)  # nobody is left to wait for

    def _sleep(self, delay_s: float) -> None:
        """Wait for a signal or an event, at most so long."""
        waiting = select.poll()  # select() knows no files beyond the first 1024
        for end in (self._awake, self._events.reading):
            waiting.register(end, select.POLLIN)
        for end, _ in waiting.poll(max(0.0, 1000 * delay_s)):
            if end == self._awake:
                os.read(end, 4096)

    def _read_events(self) -> None:
        for event in self._events.read():
            name, text = event["event"], event.pop("text", "")
            if name == FAILED:
                self._reasons[event["process"]] = text
            elif name == TRACE:
                self._show(event["process"], text)
            elif name == REFUSED:
                self._refused(event["slot"], text)
            elif name == SEATED:
                self._seated.add(event["slot"])
                self._tell_seats()
            elif name == "enrolling":
                self.on_event({**event, "of": self.job.slots})
            else:
                self._take_note(event)
        if len(self._seated) == self._n:
            self._tell_once({"event": "enrolled", "n": self._n})

    def _take_note(self, event: dict[str, Any]) -> None:
        slot = event.pop("slot", None)
        early = self._n is None and bool(self._seated)
        if event["event"] == EXCLUDED:
            self._excluded.add(slot)
        elif event["event"] == "roster":
            self._n = event["n"]
        self._tell_once(event)
        if early:
            self._tell_seats()

    def _tell_seats(self) -> None:
        """Tell how many have their seats of how many: a user's first message may come before the bootstrap's."""
        if self._n is not None:
            self.on_event({"event": SEATED, "count": len(self._seated), "of": self._n})

    def _tell_once(self, event: dict[str, Any]) -> None:
        """Pass an event on unless that was done: a restarted process sends what its ledger holds again."""
        if repr(event) not in self._shown:
            self._shown.add(repr(event))
            self.on_event(event)

    def _refused(self, slot: int, text: str) -> None:
        if (self._n or self.job.slots) == self.job.slots:
            raise Refused(text)
        self._tell_once({"event": "stayed_away", "user": slot})  # the others began without it

    def _show(self, who: int, trace: str) -> None:
        """Show where an unforeseen error happened, once."""
        if trace not in self._shown:
            self._shown.add(trace)
            sys.stderr.write(f"p2pdp: {self._layout.name(who)} crashed:\n{trace}\n")

    def _reaped(self) -> Iterator[tuple[int, int]]:
        """Yield processes that have ended, with their exit codes; other children of this process are left alone."""
        while self._processes:
            first = _first_ended() if PEEKS else 0
            if first is None:
                return
            ours = [first] if first in self._processes else list(self._processes)
            for child in ours:
                found, status = os.waitpid(child, os.WNOHANG)
                if found:
                    yield self._processes.pop(child), os.waitstatus_to_exitcode(status)
            if first not in ours:
                return  # a stranger's is first in line, and stays there; or nobody can say whose is

    def _ended(self, who: int, code: int) -> None:
        self._read_events()  # what it said before it ended
        users = self._layout.users(who)
        if code == 0:
            self._roles_ended |= who == ROLES
            return
        if who in self.mortal or (who != ROLES and self._excluded.issuperset(users)):
            return
        if code == Refused.exit_code and who != ROLES and self._n != self.job.slots:
            return  # who was refused has been told of
        if code in _FATAL:
            raise _FATAL[code](self._reasons.get(who) or f"{self._layout.name(who)} gave up and did not say why")
        wait_s = self._restarts.wait_s(who, code, monotonic() - self._began_s[who])
        if wait_s is None:
            raise RunFailed(f"{self._layout.name(who)} crashed again and again; p2pdp resume tries it once more")
        self._due_s[who] = monotonic() + wait_s

    def _stop(self) -> None:
        """Ask all processes that are left to end, and kill them after `STOP_S`."""
        for number, wait_s in ((signal.SIGTERM, STOP_S), (signal.SIGKILL, float("inf"))):
            for child in self._processes:
                os.kill(child, number)
            until_s = monotonic() + wait_s
            while self._processes and monotonic() < until_s:
                self._sleep(0.1)
                self._events.read()  # whoever is to end must not wait for somebody to listen
                for _ in self._reaped():
                    pass


def _first_ended() -> int | None:
    """Return the first child of this process that has ended, ours or not, and leave it to be waited for."""
    ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return None if ended is None else ended.si_pid


@contextmanager
def _signals(interrupt: Callable[..., None]) -> Iterator[int]:
    """Take signals; yield the reading end of a pipe that becomes readable with each of them."""
    awake, wake = os.pipe()
    for end in (awake, wake):
        os.set_blocking(end, False)
    handlers = {signal.SIGINT: interrupt, signal.SIGTERM: interrupt, signal.SIGCHLD: lambda *_: None}
    before_fd = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield awake
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before_fd)
        os.close(awake)
        os.close(wake)
