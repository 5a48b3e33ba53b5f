"""Starts, watches and ends the processes of a local run; the folder holds all that a second start needs.

Processes that crash are started again (`restarts.py`). A blocked run, a full disk or a refusal ends all of
them, and so does an interruption: then each is asked to end, made to after `STOP_S`, and waited for, so that
none is left, and the run can be resumed. If this process is killed, they notice and end by themselves.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final

from p2pdp.cluster.bodies import Job, roles_body, user_body
from p2pdp.cluster.children import FAILED, INTERRUPTED, TRACE, fork
from p2pdp.cluster.events import Events, send_event
from p2pdp.cluster.restarts import Restarts
from p2pdp.core.errors import NotReady, P2pdpError, Refused, RunFailed, UsageError, VerificationFailed
from p2pdp.transports.tcp import Address

STOP_S: Final = 5.0
BACKLOG: Final = 1024
FILES_SPARE: Final = 200  # open files beside the sockets that processes listen on
ROLES: Final = -1  # the process of bootstrap and curator, among those of users
_FATAL: Final[dict[int, type[P2pdpError]]] = {
    UsageError.exit_code: RunFailed,  # what the user gave was checked before
    **{error.exit_code: error for error in (RunFailed, VerificationFailed, Refused, NotReady)},
}

OnEvent = Callable[[dict[str, Any]], None]


@dataclass
class Cluster:
    """One run or one resumption. `absent` processes are not started, `mortal` ones not more than once."""

    job: Job
    on_event: OnEvent
    absent: frozenset[int] = frozenset()
    mortal: frozenset[int] = frozenset()
    _processes: dict[int, int] = field(init=False, default_factory=dict)  # process id -> user's slot, or ROLES
    _began_s: dict[int, float] = field(init=False, default_factory=dict)
    _due_s: dict[int, float] = field(init=False, default_factory=dict)  # when to start a process again
    _restarts: Restarts = field(init=False, default_factory=Restarts)
    _reasons: dict[int, str] = field(init=False, default_factory=dict)
    _excluded: set[int] = field(init=False, default_factory=set)
    _shown: set[str] = field(init=False, default_factory=set)
    _enrolled: int | None = field(init=False, default=None)
    _roles_ended: bool = field(init=False, default=False)
    _interrupted: bool = field(init=False, default=False)

    def run(self) -> None:
        """Until everything is closed; raises what ended it otherwise."""
        with ExitStack() as stack:
            _allow_open_files(self.job.slots + FILES_SPARE)
            self._sockets = [stack.enter_context(_bound()) for _ in range(self.job.slots + 1)]
            self._addresses: list[Address] = [bound.getsockname()[:2] for bound in self._sockets]
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
            for who in (ROLES, *range(self.job.slots)):
                if who not in self.absent:
                    self._start(who)
            self._watch()

    def _interrupt(self, *_: object) -> None:
        self._interrupted = True

    # Starting

    def _start(self, who: int) -> None:
        mine, addresses, writing = self._sockets[who + 1], self._addresses, self._events.writing

        def close() -> None:
            os.close(self._events.reading)
            os.close(self._lifeline[1])
            for bound in self._sockets:
                if bound is not mine:
                    bound.close()

        if who == ROLES:
            body = roles_body(self.job, mine, addresses[1:], writing)
        else:
            body = user_body(self.job, who, mine, addresses[0], addresses[1:])
        child = fork(body, close, lambda kind, text: send_event(writing, kind, slot=who, text=text), self._lifeline[0])
        self._processes[child] = who
        self._began_s[who] = monotonic()

    def _start_due(self) -> None:
        now_s = monotonic()
        for who in [who for who, due_s in self._due_s.items() if due_s <= now_s]:
            del self._due_s[who]
            self.on_event({"event": "restarted", "user": who})
            self._start(who)

    # Watching

    def _watch(self) -> None:
        """Handles ends of processes and events until nobody is left whom to wait for."""
        while self._processes or self._due_s:
            until_s = min(self._due_s.values(), default=monotonic() + 1.0)
            self._sleep(min(1.0, until_s - monotonic()))
            self._read_events()
            for who, code in self._reaped():
                self._ended(who, code)
            if self._interrupted:
                raise SystemExit(INTERRUPTED)
            if self._roles_ended:
                return  # who is left was excluded, or has nobody to talk to any more
            self._start_due()
            if not self._due_s and list(self._processes.values()) == [ROLES]:
                os.kill(next(iter(self._processes)), signal.SIGUSR1)  # nobody is left to wait for

    def _sleep(self, delay_s: float) -> None:
        """Until a signal comes, somebody tells something, or that time is over."""
        waiting = select.poll()  # select() knows no files beyond the first 1024
        for end in (self._awake, self._events.reading):
            waiting.register(end, select.POLLIN)
        for end, _ in waiting.poll(max(0.0, 1000 * delay_s)):
            if end == self._awake:
                os.read(end, 4096)

    def _read_events(self) -> None:
        for event in self._events.read():
            slot, text = event.pop("slot", ROLES), event.pop("text", "")
            if event["event"] == FAILED:
                self._reasons[slot] = text
                continue
            if event["event"] == TRACE:
                self._show(slot, text)
                continue
            if event["event"] == "excluded":
                self._excluded.add(slot)
            elif event["event"] == "roster":
                self._enrolled = event["n"]
            if repr(event) not in self._shown:  # a restart tells again what its ledger tells
                self._shown.add(repr(event))
                self.on_event(event)

    def _show(self, who: int, trace: str) -> None:
        """A defect of ours: where it happened, once."""
        if trace not in self._shown:
            self._shown.add(trace)
            sys.stderr.write(f"p2pdp: {_name(who)} crashed:\n{trace}\n")

    def _reaped(self) -> Iterator[tuple[int, int]]:
        """Processes that have ended, with their exit codes; children of somebody else here are left alone."""
        for child in list(self._processes):
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                yield self._processes.pop(child), os.waitstatus_to_exitcode(status)

    def _ended(self, who: int, code: int) -> None:
        self._read_events()  # what it said before it ended
        if code == 0:
            self._roles_ended |= who == ROLES
            return
        if who in self._excluded or who in self.mortal:
            return
        if code == Refused.exit_code and who != ROLES and (self._enrolled or self.job.slots) < self.job.slots:
            self.on_event({"event": "stayed_away", "user": who})  # the others began without it
            return
        if code in _FATAL:
            raise _FATAL[code](self._reasons.get(who) or f"{_name(who)} gave up and did not say why")
        wait_s = self._restarts.wait_s(who, code, monotonic() - self._began_s[who])
        if wait_s is None:
            raise RunFailed(f"{_name(who)} crashed again and again; p2pdp resume tries it once more")
        self._due_s[who] = monotonic() + wait_s

    def _stop(self) -> None:
        """Asks all that are left to end, and makes them after a while."""
        for number, wait_s in ((signal.SIGTERM, STOP_S), (signal.SIGKILL, float("inf"))):
            for child in self._processes:
                os.kill(child, number)
            until_s = monotonic() + wait_s
            while self._processes and monotonic() < until_s:
                self._sleep(0.1)
                self._events.read()  # whoever is to end must not wait for somebody to listen
                for _ in self._reaped():
                    pass


def _name(who: int) -> str:
    return "bootstrap and curator" if who == ROLES else f"node {who}"


@contextmanager
def _signals(interrupt: Callable[..., None]) -> Iterator[int]:
    """Takes signals; gives the reading end of a pipe that wakes up with each of them."""
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


def _allow_open_files(count: int) -> None:
    """As many as the system lets us have, if the usual limit is too low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def _bound() -> socket.socket:
    """A listening socket on the loopback; dials succeed from now on, whoever is not up yet."""
    try:
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:
        raise NotReady(f"no further socket can be opened: {error.strerror}") from None
    try:
        bound.bind(("127.0.0.1", 0))
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise NotReady(f"no port on the loopback: {error.strerror}") from None
    return bound
