"""Processes of a run that stop themselves, as by SIGSTOP, so that a test finds the run where it wants it.

A test that watches a run and then signals one of its processes may come too late on a busy machine: the run is over.
"""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import Callable, Collection, Sequence
from operator import attrgetter
from pathlib import Path
from threading import Event
from typing import Any

from p2pdp.core.ids import BOOTSTRAP, Peer
from p2pdp.core.step import Step
from p2pdp.node.disk import PieceFiles
from p2pdp.node.shell import HostShell
from p2pdp.services.bootstrap import Bootstrap
from p2pdp.transports.contract import Origin


def standing(place: Path, peer: Peer, number: int) -> Path:
    """The file that names the process of a peer which stopped itself, for its first stop (0) or a later one."""
    return place / f"standing-{peer}-{number}"


def stopped(told: Path) -> int | None:
    """Return the process that such a file names, once it has stopped."""
    text = told.read_text() if told.exists() else ""
    return int(text) if text and state_of(int(text))[:1] == ["T"] else None


def state_of(process: int) -> list[str]:
    """Return what the system says of a process: state, parent, group, session and more; nothing where it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def stand_still(peer: Peer, arrivals: Sequence[int], place: Path, how: int = signal.SIGSTOP) -> None:
    """Have the process of this peer stop once at each of these numbers of boxed frames; for processes forked later.

    With SIGKILL for `how` it dies there.
    """
    stops = [(least, standing(place, peer, number)) for number, least in enumerate(arrivals)]
    arrived = HostShell.arrived

    def arrives(shell: HostShell, origin: Origin, frame: bytes) -> None:
        host = shell.host
        if host is not None and host._credentials.me == peer and stops and shell._arrivals >= stops[0][0]:
            told = stops.pop(0)[1]
            if not told.exists():  # else it was in an earlier life
                told.write_text(str(os.getpid()))
                os.kill(os.getpid(), how)
        arrived(shell, origin, frame)

    HostShell.arrived = arrives  # type: ignore[method-assign]


def stand_amid(peer: Peer, pieces: int, place: Path) -> None:
    """Have the process of this user stop once when it has kept so many pieces of values; for processes forked later."""
    write, told, left = PieceFiles.write, standing(place, peer, 0), pieces

    def writes(shelf: PieceFiles, sender: Peer, at: int, head: bytes, data: bytes) -> None:
        nonlocal left
        write(shelf, sender, at, head, data)
        left -= shelf._folder.name == f"{peer:04d}"
        if left == 0 and not told.exists():
            told.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGSTOP)

    PieceFiles.write = writes  # type: ignore[method-assign]


def stand_once_silent(peers: Collection[Peer], place: Path) -> None:
    """Have bootstrap stop once when all of these count as silent, and before it puts any of them out."""
    missed, silent = set(peers), Bootstrap._silent
    told = standing(place, BOOTSTRAP, 0)

    def told_of(bootstrap: Bootstrap, sender: Peer, peer: Peer, now_s: float) -> Step:
        missed.discard(peer)
        if not missed and not told.exists():
            told.write_text(str(os.getpid()))
            _stop()
        return silent(bootstrap, sender, peer, now_s)

    Bootstrap._silent = told_of  # type: ignore[method-assign]


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def stand_before(function: str, calls: int, stop: Callable[[], object] = _stop) -> None:
    """Have this process stop itself when it comes to a function, `module:name`, after so many calls of it."""
    module, _, path = function.partition(":")
    *owners, name = path.split(".")
    owner: Any = importlib.import_module(module)
    if owners:
        owner = attrgetter(".".join(owners))(owner)
    called, left = getattr(owner, name), calls

    def calls_later(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        if left == 0:
            stop()
        left -= 1
        return called(*arguments, **named)

    setattr(owner, name, calls_later)


def dask_setup(_worker: object) -> None:
    """Have a worker on a Dask cluster that loads this module first stay in a run, after so many, which it tells."""
    runs, _, told = os.environ["STAYS"].partition(" ")

    def stay() -> None:
        Path(told).touch()
        Event().wait()

    stand_before("p2pdp.runs.sweep:row_of", int(runs), stay)
