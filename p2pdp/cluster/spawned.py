"""Processes of a local run that are fresh interpreters, which share no memory with the launcher.

    python -m p2pdp.cluster.spawned PROCESS BRIEF EVENTS LIFELINE [LISTENING ...]

The command line holds numbers only: of the process, and of the open files that it inherits. `BRIEF` is one in
the run's folder that has no name; it says where the folder is, who listens where, and what the transport
provided. Keys and secrets are read from the folder, or made in the new process. Everything else is as in a forked
one: signals, the lifeline, what is reported, exit codes.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from p2pdp.cluster.folder import RunFolder
from p2pdp.cluster.jobs import job_of
from p2pdp.cluster.layout import Packing, layout_of
from p2pdp.cluster.peers import process_main
from p2pdp.cluster.processes import live, send_event, signals_held
from p2pdp.core.addresses import Address
from p2pdp.core.errors import NotReady
from p2pdp.node.helper import ONE_THREAD

BRIEF_BYTES_MAX: Final = 1 << 26


@contextmanager
def brief(
    folder: Path, packing: Packing, addresses: Mapping[int, Address], provided: Mapping[str, Any] | None = None
) -> Iterator[int]:
    """Yield an open file that holds what a fresh interpreter cannot know otherwise."""
    document = {
        "folder": str(folder.absolute()),
        "nodes_per_process": packing.nodes_per_process,
        "addresses": list(addresses.items()),
        "provided": provided,
    }
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(json.dumps(document).encode())
        file.flush()
        yield file.fileno()


def spawn(process: int, open_brief: int, events: int, lifeline: int, listening: Sequence[int]) -> int:
    """Start an interpreter; return its process id."""
    inherited = (open_brief, events, lifeline, *listening)
    home = str(Path(__file__).parents[2])
    paths = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "p2pdp.cluster.spawned", str(process), *map(str, inherited)]
    no_terminal = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1)]
    with signals_held():  # until it has its own ways of taking them; what a process holds back survives the start
        try:
            for number in inherited:
                os.set_inheritable(number, True)
            return os.posix_spawn(
                sys.executable, command, {**os.environ, **ONE_THREAD, "PYTHONPATH": paths}, file_actions=no_terminal
            )
        except OSError as error:
            raise NotReady(f"no further process can be started: {error.strerror}") from None
        finally:
            for number in inherited:
                os.set_inheritable(number, False)


def main(arguments: Sequence[str]) -> int:
    process, open_brief, events, lifeline, *listening = map(int, arguments)

    async def run() -> None:
        told = json.loads(os.pread(open_brief, BRIEF_BYTES_MAX, 0))
        job = job_of(RunFolder(Path(told["folder"])))
        layout = layout_of(job.spec, Packing(told["nodes_per_process"]))
        addresses = {slot: Address(*address) for slot, address in told["addresses"]}
        await process_main(job, layout, process, listening, addresses, events, told["provided"])()

    def report(kind: str, text: str) -> None:
        send_event(events, kind, process=process, text=text)

    return live(run, lambda: None, report, lifeline)


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
