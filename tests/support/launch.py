"""A launcher in a process of its own, with what a test wants to go wrong; `tests/support/launched.py` starts it.

    main("run", SPEC, FOLDER, {"absent": [..], "mortal": [..], "crash": .., "file_bytes_max": ..,
                               "flood": [user, kind, victim], "stands": [PLACE, peer, arrivals, ..], "clock": PLACE,
                               "die": [PLACE, arrivals, peer, ..], "amid": [PLACE, peer, pieces],
                               "silent": [PLACE, peer, ..], "enrol_s": .., "constants": {"module:NAME": value, ..}}
                                     and "nodes_per_process", "spawn", "trace_wire" as `p2pdp.run` takes them
    main("resume", FOLDER, {..})

Prints the result as one line; events go to the error stream, one JSON document a line. Or the command line itself, in a
process that stands still or whose clock a test sets: `tests/support/across.py` starts that.

    command({"stands": [..], "clock": PLACE, "before": [FUNCTION, calls]})
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import runpy
import signal
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import p2pdp
from p2pdp.cli.main import main as command_line
from p2pdp.cluster import launcher, spawned
from p2pdp.cluster.launcher import Cluster
from p2pdp.core.errors import P2pdpError
from p2pdp.core.step import Step
from p2pdp.protocols.participant import Participant
from p2pdp.runs import live
from p2pdp.services.enrolment import EnrolmentService, Replies
from tests.support.floods import flood_from
from tests.support.set_clocks import live_by
from tests.support.standing import stand_amid, stand_before, stand_once_silent, stand_still


def said(event: dict[str, Any]) -> None:
    print(json.dumps(event), file=sys.stderr, flush=True)


def crash_at(user: int) -> None:
    """This user's machine has a defect, which it meets in each life again."""
    receive = Participant.receive

    def receives(self: Participant, sender: int, message: Any, now_s: float, draws: Any) -> Step:
        if self._me == user and message.type == "token":
            raise ZeroDivisionError(f"a value: {message.value}, {314159 / 10000}")
        return receive(self, sender, message, now_s, draws)

    Participant.receive = receives  # type: ignore[method-assign]


def enrol_for(seconds: float) -> None:
    """Have bootstrap wait so long for users who never come; those who came still have the time that the spec says."""
    begin = EnrolmentService.begin

    def begins(self: EnrolmentService, now_s: float) -> Replies:
        self._quorum = replace(self._quorum, enrol_timeout_s=seconds)
        return begin(self, now_s)

    EnrolmentService.begin = begins  # type: ignore[method-assign]


def interrupted(*_: object) -> NoReturn:
    raise SystemExit(130)


def _in_time(wrong: dict[str, Any]) -> None:
    """What has processes wait for a test, and be as patient as it wants."""
    for path, value in wrong.get("constants", {}).items():
        module, _, name = path.partition(":")
        setattr(importlib.import_module(module), name, value)
    if "stands" in wrong:
        place, peer, *arrivals = wrong["stands"]
        stand_still(peer, arrivals, Path(place))
    if "die" in wrong:
        place, arrivals, *peers = wrong["die"]
        for peer in peers:
            stand_still(peer, [arrivals], Path(place), signal.SIGKILL)
    if "amid" in wrong:
        place, peer, pieces = wrong["amid"]
        stand_amid(peer, pieces, Path(place))
    if "silent" in wrong:
        place, *peers = wrong["silent"]
        stand_once_silent(peers, Path(place))
    if "before" in wrong:
        stand_before(*wrong["before"])
    if "clock" in wrong:
        live_by(Path(wrong["clock"]))


def _with_wishes(wishes: str) -> None:
    """Have interpreters that are started from here for the processes of a run heed these wishes too."""
    start = "import sys; from tests.support.launch import spawned_process; spawned_process(*sys.argv[1:])"
    spawn = os.posix_spawn

    def spawns(program: str, command: list[str], environment: dict[str, str], **more: Any) -> int:
        assert command[:3] == [program, "-m", spawned.__name__]
        return spawn(program, [program, "-c", start, wishes, *command[3:]], environment, **more)

    setattr(os, "posix_spawn", spawns)  # noqa: B010 - the type checker knows it as a function


def spawned_process(wishes: str, *arguments: str) -> NoReturn:
    _in_time(json.loads(wishes))
    os._exit(spawned.main(arguments))


def command(wishes: str) -> int:
    _in_time(json.loads(wishes))
    return command_line()


def module(wishes: str, name: str) -> None:
    """As `python -m name`."""
    _in_time(json.loads(wishes))
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def main(verb: str, *given: str) -> int:
    for number in (signal.SIGINT, signal.SIGTERM):  # as the command line does
        signal.signal(number, interrupted)
    *places, wishes = given
    wrong = json.loads(wishes)
    cluster = partial(Cluster, absent=frozenset(wrong.get("absent", ())), mortal=frozenset(wrong.get("mortal", ())))
    setattr(live, "Cluster", cluster)  # noqa: B010 - the type checker knows it as a class
    if "file_bytes_max" in wrong:
        resource.setrlimit(resource.RLIMIT_FSIZE, (wrong["file_bytes_max"],) * 2)
    if "flood" in wrong:
        flood_from(*wrong["flood"])
    if "enrol_s" in wrong:
        enrol_for(wrong["enrol_s"])
    _in_time(wrong)
    if wrong.get("spawn"):
        _with_wishes(wishes)
    if "crash" in wrong:
        crash_at(wrong["crash"])
        launcher.RESTARTS_MAX = 3  # type: ignore[misc]
    way = {name: wrong[name] for name in ("nodes_per_process", "spawn", "trace_wire") if name in wrong}
    try:
        if verb == "run":
            result = p2pdp.run(places[0], places[1], on_event=said, **way)
        else:
            result = p2pdp.resume(places[0], on_event=said, **way)
        for number in (signal.SIGINT, signal.SIGTERM):  # whoever interrupts it now comes too late
            signal.signal(number, signal.SIG_IGN)
    except P2pdpError as error:
        said({"event": "error", "text": str(error)})
        return error.exit_code
    print(json.dumps(result.to_json()))
    return 0
