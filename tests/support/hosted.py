"""A run across machines: bootstrap on the first host, nodes on the others, all by the command line.

Nothing here waits for a time: it waits for a sentence on an error stream, a ledger to grow, or a process to
end, within a generous guard.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import p2pdp
from tests.support.forked import wished
from tests.support.launched import GUARD_S, judge_folder, wait_for
from tests.support.netns import Host, Network
from tests.support.run_oracle import Judged
from tests.support.sources import TOP
from tests.support.standing import standing, stopped

PORT = 7000
DATA = re.compile(r"^\[data\]\n.*", re.MULTILINE | re.DOTALL)


class Command:
    """One process of the command line in a host; what it says goes to files."""

    def __init__(self, host: Host, log: Path, *arguments: str, **wishes: Any) -> None:
        """`wishes` are those of `tests/support/launch.py`."""
        self._expected: tuple[int, ...] = ()
        self._out, self._err = log.with_suffix(".out"), log.with_suffix(".err")
        with self._out.open("wb") as out, self._err.open("wb") as err:
            how = wished(wishes)
            self.process = host.start_command(*arguments, "--json", cwd=TOP, stdout=out, stderr=err, **how)

    @property
    def said(self) -> str:
        return self._err.read_text()

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def failed(self) -> bool:
        return self.process.poll() not in (None, 0, *self._expected)

    def hear(self, sentence: str) -> None:
        wait_for(lambda: sentence in self.said or not self.running, sentence)
        assert sentence in self.said, self.said

    def interrupt(self) -> None:
        self._expected = (130,)
        self.process.send_signal(signal.SIGTERM)
        assert self.end() == 130, self.said

    def kill(self) -> None:
        self._expected = (-signal.SIGKILL,)
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        return self.process.wait(GUARD_S)

    def result(self) -> dict[str, Any]:
        assert self.end() == 0, self.said
        document: dict[str, Any] = json.loads(self._out.read_text())
        return document


class Hosted:
    """The commands of one run. Node i is on host 1 + i mod the number of others; users have their tokens' numbers."""

    def __init__(self, place: Path, network: Network, text: str, nodes: int) -> None:
        self.place = place
        self.network = network
        self.nodes = nodes
        self.commands: list[Command] = []
        self._data = DATA.search(text)
        (place / "spec.toml").write_text(text)

    def host_of(self, user: int) -> Host:
        others = self.network.hosts[1:]
        return others[user % len(others)]

    def together(self, user: int) -> list[int]:
        """The users on the host of this one."""
        return [other for other in range(self.nodes) if self.host_of(other) is self.host_of(user)]

    def _command(self, host: Host, *arguments: str, **wishes: Any) -> Command:
        command = Command(host, self.place / f"{len(self.commands):04d}-{arguments[0]}", *arguments, **wishes)
        self.commands.append(command)
        return command

    def bootstrap(self) -> Command:
        host = self.network.hosts[0]
        arguments = [str(self.place / "spec.toml"), "--listen", f"{host.address}:{PORT}", "--tokens", str(self.nodes)]
        return self._command(host, "bootstrap", *arguments, "--out", str(self.folder))

    @property
    def folder(self) -> Path:
        return self.place / "bootstrap"

    def node_folder(self, user: int) -> Path:
        return self.place / f"node{user}"

    def ready_for_nodes(self) -> Command:
        """Bootstrap, once its tokens are written."""
        command = self.bootstrap()
        command.hear("join tokens")
        return command

    def node(self, user: int, accept: str = "", stands: Sequence[int] = ()) -> Command:
        """A node with an identity of its own, made at its first start.

        With `stands`, numbers of frames, its process stops itself whenever one of these came to it.
        """
        config = self.place / f"node{user}.toml"
        if not config.exists():
            p2pdp.keygen(self.place / f"keys{user}")
            assert self._data is not None
            config.write_text(
                f'[node]\nidentity = "keys{user}/identity.key"\ntoken = "bootstrap/tokens/{user:04d}.token"\n'
                f'listen = "{self.host_of(user).address}:{PORT + user}"\n{self._data.group()}{accept}'
            )
        arguments = [str(config), "--out", str(self.node_folder(user)), "--share-skeleton", "--keep-private"]
        wishes = {"stands": [str(self.place), user, *stands]} if stands else {}
        return self._command(self.host_of(user), "node", *arguments, **wishes)

    def all_nodes(self, stands: Mapping[int, Sequence[int]] = MappingProxyType({})) -> list[Command]:
        return [self.node(user, stands=stands.get(user, ())) for user in range(self.nodes)]

    def stands(self, user: int) -> None:
        """Wait until a node has stopped itself; nothing may have failed or ended by then."""
        self.wait_for(lambda: stopped(standing(self.place, user, 0)), f"node {user} stands")

    def sizes(self) -> int:
        """How much all ledgers of the nodes hold, in bytes."""
        return sum(path.stat().st_size for path in self.place.glob("node*/node/view.ledger"))

    def wait_for_progress(self, grown_bytes: int = 10_000) -> None:
        """Until the nodes' ledgers grew by so much since now; nothing may have failed or ended by then."""
        before = self.sizes()
        self.wait_for(lambda: self.sizes() >= before + grown_bytes, "ledgers grow")

    def wait_for(self, condition: Callable[[], Any], what: str) -> None:
        wait_for(lambda: condition() or any(command.failed for command in self.commands), what)
        assert not [command.said for command in self.commands if command.failed]

    def judge(self) -> Judged:
        """The oracle, on all ledgers gathered from the hosts' folders."""
        whole = self.place / "whole"
        shutil.copytree(self.folder, whole)
        shutil.rmtree(whole / "curator" / "skeletons", ignore_errors=True)
        for user in range(self.nodes):
            if (self.node_folder(user) / "nodes").exists():
                shutil.copytree(self.node_folder(user) / "nodes", whole / "nodes", dirs_exist_ok=True)
        return judge_folder(whole)


def connections(host: Host) -> dict[tuple[str, str], int]:
    """The established connections of a host, each with how often the same bytes of it were sent again in a row."""
    with host.inside():
        lines = Path("/proc/thread-self/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    return {(local, remote): int(again, 16) for _, local, remote, state, _, _, again, *_ in fields if state == "01"}
