"""Live crash campaign: real processes over TCP or a real Mosquitto, killed and paused as a seed says.

Users, roles, several processes at once and the launcher are killed with SIGKILL; the launcher is ended by SIGTERM or
killed and the run resumed; processes are stopped and continued within the patience. Every process writes what it
opened to `wire.jsonl`, which holds all frames of all lives: on a link a number never carries two contents. Ledgers are
held against the rules of the simulated runs (`tests/support/run_oracle.py`): each contribution and draw once, each
value as it was sent, nothing lost. Parts with machines of their own are in `machines.py`.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from p2pdp.core.errors import P2pdpError
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.files.folder import peer_folder
from tests.campaigns.machines import MACHINES
from tests.campaigns.oracle import Violation
from tests.campaigns.running import Campaign, Judged, show_line
from tests.support.launched import ROLES, Launched, complete, judge_folder, ring, wait_for
from tests.support.mosquitto import mosquitto

NODES: Final = 5
PATIENCE_S: Final = 6.0  # of the specs in `tests/support/launched.py`
INTERRUPTED: Final = 130


@dataclass(frozen=True)
class Way:
    """How the processes of a run are started, and what its spec says besides."""

    run: str = ""
    nodes_per_process: int | None = None
    spawn: bool = False

    @property
    def wishes(self) -> dict[str, Any]:
        found: dict[str, Any] = {"trace_wire": True}
        if self.nodes_per_process is not None:
            found["nodes_per_process"] = self.nodes_per_process
        if self.spawn:
            found["spawn"] = True
        return found


WAYS: Final = {
    "tcp": Way(),
    "packed": Way(nodes_per_process=2),
    "spawned": Way(spawn=True),
    "memory": Way('transport = "memory"'),
    "mqtt": Way('transport = "mqtt"'),
}


class _Campaign:
    """One run, its faults, and the launcher that it has now."""

    def __init__(self, way: Way, seed: int, hops: int, place: Path) -> None:
        self.dice = Random(f"live {seed}")  # noqa: S311 - what is thrown is no secret
        self.place = place
        text = self.dice.choice((complete(NODES, hops, way.run), ring(NODES, hops // NODES, way.run)))
        self.launched = Launched(place, text, **way.wishes)
        self.done: list[str] = []

    def strike(self) -> None:
        """Let one thing go wrong, after a while that the seed says."""
        run = self.launched
        run.wait_for_everybody()
        run.wait_for_progress(self.dice.randrange(1, 20_000))
        if not run.running:
            return
        ways = (self.kill_some, self.kill_some, self.kill_roles, self.kill_all, self.pause, self.interrupt, self.behead)
        way = self.dice.choice(ways)
        self.done.append(way.__name__)
        way()

    def kill_some(self) -> None:
        self.launched.kill(*self.dice.sample(range(NODES), self.dice.choice((1, 1, 2))))

    def kill_roles(self) -> None:
        self.launched.kill(ROLES)

    def kill_all(self) -> None:
        self.launched.kill(*self.launched.children())

    def pause(self) -> None:
        children = list(set(self.launched.children().values()))
        stopped = self.dice.sample(children, min(len(children), 2))
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for process in stopped:
                with suppress(ProcessLookupError):
                    os.kill(process, number)
            time.sleep(PATIENCE_S / 8 if number == signal.SIGSTOP else 0.0)

    def interrupt(self) -> None:
        self.launched.process.send_signal(signal.SIGTERM)
        self._resume()

    def behead(self) -> None:
        """Kill the launcher, whose processes end by themselves."""
        run = self.launched
        run.process.kill()
        wait_for(lambda: not run.members(), "the processes end with their launcher")
        self._resume()

    def _resume(self) -> None:
        code = self.launched.end()
        if code != 0:  # else the run was over before
            self.launched = Launched(self.place)


def strike(part: str, seed: int, *, hops: int = 4000, strikes: int = 6) -> Judged:
    """Run once, with so many faults, and judge what is left."""
    if part == "mqtt":
        mosquitto()
    with tempfile.TemporaryDirectory(prefix="p2pdp-live-") as folder:
        campaign = _Campaign(WAYS[part], seed, hops, Path(folder))
        try:
            for _ in range(strikes):
                if campaign.launched.running:
                    campaign.strike()
            found = _ended(campaign.launched)
        except AssertionError as error:
            found = [Violation("live", str(error)[:500])]
        finally:
            campaign.launched.__exit__()
    done = Counter(campaign.done)
    return Judged(found, None, f"{part} seed {seed}: {', '.join(campaign.done)}", done)


def _ended(launched: Launched) -> list[Violation]:
    code = launched.end()
    if code != 0:
        return [Violation("live", f"ended with {code}: {[said for said in launched.said if said['event'] == 'error']}")]
    try:
        judged = judge_folder(launched.folder)
    except (AssertionError, P2pdpError) as error:
        return [Violation("ledgers", str(error)[:500])]
    if judged.verification.excluded:
        return [Violation("out", f"put out: {judged.verification.excluded}")]
    return [found for peer in (BOOTSTRAP, CURATOR, *range(NODES)) for found in trace_problems(launched.folder, peer)]


def trace_problems(folder: Path, peer: int) -> list[Violation]:
    """Compare all frames that a peer ever opened: a number of a link has one content, without its salt and value."""
    contents: dict[tuple[object, int], tuple[object, ...]] = {}
    for line in (peer_folder(folder, peer) / "wire.jsonl").read_text().splitlines():
        try:
            told = json.loads(line)
        except ValueError:
            continue  # a process was killed in the middle of a line
        if told["number"] is None:
            continue
        content = told["type"], json.dumps(told["fields"]), told["control"].get("value_bytes")
        if contents.setdefault((told["from"], told["number"]), content) != content:
            return [Violation("conflict", f"{told['from']} -> {peer}: number {told['number']} carries two contents")]
    return []


def case(part: str, seed: int) -> Judged:
    """Run one case; what it needs and is not installed is said, and an error where everything is required."""
    try:
        return MACHINES[part](seed) if part in MACHINES else strike(part, seed)
    except pytest.skip.Exception as why:
        show_line(f"skipped live {part}: {why}")
        return Judged([], counts=Counter({f"skipped {part}": 1}))
    except (pytest.fail.Exception, AssertionError) as why:
        return Judged([Violation("live", str(why)[:500])], story=f"{part} seed {seed}")


LIVE = Campaign(
    "live", "processes that are killed, paused and resumed, with all frames traced; with a database; in containers",
    lambda: [*WAYS, *MACHINES], case,
)  # fmt: skip
