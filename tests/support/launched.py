"""Real runs for tests: a launcher in a session of its own, its processes by user, and the oracle on its folder.

Nothing here waits for a time: it waits for a file to grow or a process to end, within a generous guard.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self, cast

from p2pdp.auditor.verify import excluded_in
from p2pdp.core.ids import BOOTSTRAP, Peer
from p2pdp.files.data import load_data
from p2pdp.files.folder import read_evidence
from p2pdp.ledger.records import read
from p2pdp.ledger.stored import bytes_of
from p2pdp.protocols.run_plan import plan_run
from p2pdp.sim.world import World
from tests.support.forked import Forked
from tests.support.run_oracle import Judged, judge
from tests.support.sources import TOP
from tests.support.standing import standing, state_of, stopped

GUARD_S = 240.0
POLL_S = 0.005
ROLES = -1
PLACE = "P2PDP_TEST_PLACE"  # in the environment of all that a launcher starts, in its session or not


def spec(graph: str, nodes: int, walk: str, run: str = "", noise: str = "sigma = 1.0") -> str:
    return (
        f'[run]\nprotocol = "walk.sum"\nnodes = {nodes}\nseed = 1\npatience_s = 6\n{run}\n'
        f'[graph]\nkind = {graph}\n[walk]\n{walk}\n[noise]\nmechanism = "gaussian"\n{noise}\n'
        '[data]\nkind = "uniform"\nclip = [0.0, 1.0]\n'
    )


def ring(nodes: int, laps: int, run: str = "") -> str:
    return spec('"ring"', nodes, f'order = "ring"\nlaps = {laps}', run)


def complete(nodes: int, hops: int, run: str = "") -> str:
    return spec('"complete"', nodes, f'order = "random"\nhops = {hops}', run)


def sparse(nodes: int, hops: int) -> str:
    return spec('"regular"\ndegree = 4', nodes, f'order = "random"\nhops = {hops}\ntokens = 2')


def wait_for(condition: Callable[[], Any], what: str) -> None:
    until_s = time.monotonic() + GUARD_S
    while not condition():
        assert time.monotonic() < until_s, f"in vain: {what}"
        time.sleep(POLL_S)


class Launched:
    """A launcher that runs or goes on with the run in a folder."""

    def __init__(
        self, place: Path, text: str | None = None, stands: tuple[Peer, *tuple[int, ...]] | None = None, **wrong: Any
    ) -> None:
        """With a text it is a fresh run of that spec, in `place / "run"`; without one a resumption.

        With `stands`, a peer and numbers of frames, the peer's process stops itself whenever one of these came to it.
        Then the run cannot end before the test acts, however slow the test is.
        """
        self.folder = place / "run"
        self._place = place
        self._stops = 0
        self._stander = 0 if stands is None else stands[0]
        if stands is not None:
            wrong["stands"] = [str(place), *stands]
        if text is None:
            verb = ["resume", str(self.folder)]
        else:
            (place / "spec.toml").write_text(text)
            verb = ["run", str(place / "spec.toml"), str(self.folder)]
        self.process = Forked(
            verb,
            main="tests.support.launch:main",
            arguments=[*verb, json.dumps(wrong)],
            cwd=TOP,
            environment={**os.environ, "PYTHONPATH": str(TOP), PLACE: str(place)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            session=True,
        )
        self.said: list[dict[str, Any]] = []
        self.other = ""
        self.out = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Whatever a test did, nothing of it stays behind."""
        for member in self.members():
            with suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        self.process.communicate()

    def members(self) -> list[int]:
        """All processes of the launcher's session that are no zombies of ours."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            fields = state_of(int(place.name))
            if fields and fields[3] == str(self.process.pid) and (fields[0] != "Z" or place.name != fields[3]):
                found.append(int(place.name))
        return found

    def children(self) -> dict[int, int]:
        """The process of each user, and of the roles, which has opened its ledger."""
        found = {}
        for child in self.members():
            for name in _open_files(child):
                path = Path(name)
                if path.name == "view.ledger" and path.is_relative_to(self.folder):
                    found[ROLES if "curator" in path.parts else int(path.parent.name)] = child
        return found

    def kill(self, *them: int) -> None:
        """Kills their processes as they are now, and waits until the launcher has taken note."""
        children = self.children()
        killed = [children[who] for who in them if who in children]
        for child in killed:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        wait_for(lambda: not any(map(state_of, killed)), "what was killed is gone")

    def stands(self) -> int:
        """Waits until the process that was to stop has stopped, for the first or the next time; gives the process."""
        self._stops += 1
        return self.standing(self._stander, self._stops - 1)

    def standing(self, peer: Peer, stop: int = 0) -> int:
        told = standing(self._place, peer, stop)
        wait_for(lambda: not self.running or stopped(told), "the process has stopped itself")
        assert self.running, "the run ended before"
        return int(told.read_text())

    def ledger(self, user: int) -> Path:
        return self.folder / "nodes" / f"{user:04d}" / "view.ledger"

    def sizes(self) -> dict[int, int]:
        places = (self.folder / "nodes").glob("*/view.ledger")
        return {int(path.parent.name): path.stat().st_size for path in places}

    def holder(self) -> int:
        """Who wrote to its ledger last, and so has the token or has just passed it on."""
        places = (self.folder / "nodes").glob("*/view.ledger")
        return max((path.stat().st_mtime_ns, int(path.parent.name)) for path in places)[1]

    def excluded(self) -> list[int]:
        """Who is out by now, in bootstrap's ledger."""
        data = (self.folder / "curator" / "bootstrap" / "view.ledger").read_bytes()
        return excluded_in(read(data))

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def wait_for_progress(self, grown_bytes: int = 20_000) -> None:
        """Until the ledgers grew by so much since now, or it is over."""
        before = sum(self.sizes().values())
        wait_for(lambda: not self.running or sum(self.sizes().values()) >= before + grown_bytes, "ledgers grow")

    def wait_for_everybody(self) -> None:
        def all_are_there() -> bool:
            nodes = len(list((self.folder / "nodes").glob("*")))
            enrolled = (self.folder / "roster.json").exists()
            return not self.running or (enrolled and len(self.children()) == nodes + 1)

        wait_for(all_are_there, "all processes have opened their ledgers")

    def end(self) -> int:
        """Waits for the end; gives the exit code. No process may be left then."""
        self.out, err = self.process.communicate(timeout=GUARD_S)
        for line in err.splitlines():
            try:
                self.said.append(json.loads(line))
            except ValueError:
                self.other += line + "\n"
        assert self.members() == [], "no process is left"
        assert self.process.returncode is not None
        return self.process.returncode

    def completes(self) -> dict[str, Any]:
        code = self.end()
        assert (code, self.other) == (0, ""), (self.said, self.other)
        result: dict[str, Any] = json.loads(self.out)
        found, expected = (
            one if isinstance(one, list) else [one] for one in (result["error"], result["standard_error"])
        )
        assert all(abs(error) <= 8 * deviation for error, deviation in zip(found, expected, strict=True))
        return result

    def count(self, event: str) -> int:
        return sum(said["event"] == event for said in self.said)

    @property
    def error(self) -> str:
        return next(str(said["text"]) for said in self.said if said["event"] == "error")


def _open_files(process: int) -> list[str]:
    found = []
    with suppress(OSError):  # it is gone
        for link in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):  # this file was closed in between
                found.append(str(link.readlink()))
    return found


def judge_folder(folder: Path) -> Judged:
    """The oracle of the simulated worlds, on what a live run left."""
    evidence = read_evidence(folder)
    n = evidence.roster.n
    run = plan_run(evidence.spec, n, load_data(evidence.spec, n).dimensions)
    processes = {
        peer: SimpleNamespace(
            peer=peer,
            host=None,
            faults=Counter(),
            disk=SimpleNamespace(
                view=bytes_of(view), private=bytes_of(evidence.private.get(peer, b"")), cut_torn_tails=lambda: None
            ),
        )
        for peer, view in evidence.views.items()
    }
    out = excluded_in(read(bytes_of(evidence.views[BOOTSTRAP])))
    world = SimpleNamespace(processes=processes, run=run, roster=evidence.roster, out=out)
    return judge(cast("World", world), {})


def modes(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): path.stat().st_mode & 0o777
        for path in folder.rglob("*")
        if path.suffix in (".ledger", ".key") or path.name in ("seat", "secrets")
    }
