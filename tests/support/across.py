"""Bootstrap and nodes as their owners start them: each the command line in a process of its own, on the loopback."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from p2pdp.files.keys import write_identity
from tests.support.forked import Forked, wished
from tests.support.launched import GUARD_S, wait_for
from tests.support.ports import free_port
from tests.support.standing import standing, stopped

SHARED = ("--share-skeleton", "--keep-private")


class Started:
    """One command; what it says goes to files, so that it never waits for a reader."""

    def __init__(self, place: Path, name: str, *arguments: str, **wishes: Any) -> None:
        """`wishes` are those of `tests/support/launch.py`."""
        self.out, self.err = place / f"{name}.out", place / f"{name}.err"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = Forked(arguments, cwd=place, stdout=out, stderr=err, **wished(wishes))

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def said(self) -> str:
        return self.err.read_text()

    def wait_until_said(self, what: str) -> None:
        wait_for(lambda: what in self.said or not self.running, f"{what} in {self.said}")
        assert what in self.said, self.said

    def end(self) -> int:
        return self.process.wait(GUARD_S)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.end()

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.go_on()
        assert self.end() == 130, self.said

    def go_on(self) -> None:
        """If it stands still."""
        self.process.send_signal(signal.SIGCONT)

    def document(self) -> dict[str, Any]:
        code = self.end()
        assert code == 0, (code, self.said)
        document: dict[str, Any] = json.loads(self.out.read_text())
        return document

    def fails(self, code: int, *words: str) -> None:
        """With this code, and one sentence in the last line that says these words."""
        assert (self.end(), self.out.read_text()) == (code, ""), self.said
        last = self.said.splitlines()[-1]
        assert last.startswith("p2pdp: ")
        assert "Traceback" not in self.said
        for word in words:
            assert word in last


class Across:
    """A run's machines, all in one folder: `boot` and `n0`, `n1` … are what their owners keep."""

    def __init__(self, place: Path, spec: str, nodes: int, tokens: int | None = None) -> None:
        self.place = place
        self.nodes = nodes
        self.tokens = tokens or nodes
        self.started: list[Started] = []
        self.wishes: dict[str, Any] = {}
        self._port = free_port()
        (place / "spec.toml").write_text(spec)
        for number in range(self.tokens):
            write_identity(place / f"id{number}", bytes([number + 1] * 32))
            self.configure(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.started:
            if process.running:
                process.kill()

    def configure(self, number: int, *, node: str = "", more: str = "", **changed: str) -> None:
        keys = {
            "identity": f"id{number}/identity.key",
            "token": f"boot/tokens/{number:04d}.token",
            "listen": "127.0.0.1:0",
        } | changed
        lines = "".join(f'{key} = "{value}"\n' for key, value in keys.items())
        text = f'[node]\n{lines}{node}[data]\nkind = "uniform"\n{more}'
        (self.place / f"n{number}.toml").write_text(text)

    def start(self, name: str, *arguments: str, **wishes: Any) -> Started:
        process = Started(self.place, f"{name}-{len(self.started)}", *arguments, **(self.wishes | wishes))
        self.started.append(process)
        return process

    def bootstrap(self, *more: str) -> Started:
        process = self.bootstrap_again(*more)
        process.wait_until_said("listening on")
        return process

    def bootstrap_again(self, *more: str) -> Started:
        port = 0 if (self.place / "boot").exists() else self._port  # it comes back to where the tokens say it is
        options = ("--listen", f"127.0.0.1:{port}", "--tokens", str(self.tokens), "--out", "boot", "--json")
        return self.start("bootstrap", "bootstrap", "spec.toml", *options, *more)

    def node(self, number: int, *more: str, stands: Sequence[int] = ()) -> Started:
        """With `stands`, numbers of frames, its process stops itself whenever one of these came to it."""
        wishes = {"stands": [str(self.place), number, *stands]} if stands else {}
        return self.start(f"n{number}", "node", f"n{number}.toml", "--out", f"n{number}", "--json", *more, **wishes)

    def all_nodes(self, *more: str, stands: Mapping[int, Sequence[int]] = MappingProxyType({})) -> list[Started]:
        return [self.node(number, *more, stands=stands.get(number, ())) for number in range(self.nodes)]

    def stands(self, number: int, stop: int = 0) -> None:
        """Wait until a node has stopped itself, for the first time or a later one."""
        told = standing(self.place, number, stop)
        wait_for(lambda: stopped(told) or not any(each.running for each in self.started), f"node {number} stands")
        assert stopped(told), [each.said for each in self.started]

    def ledger(self, number: int) -> Path:
        return self.place / f"n{number}" / "node" / "view.ledger"

    def wait_for_growth(self, number: int, grown_bytes: int = 20_000) -> None:
        """Until a node's ledger has grown by so much since now, or nobody is left to wait for."""
        ledger = self.ledger(number)

        def size() -> int:
            return ledger.stat().st_size if ledger.is_file() else 0

        before = size()
        wait_for(lambda: size() >= before + grown_bytes or not any(each.running for each in self.started), "growth")

    def gathered(self) -> Path:
        """The folder of the run as it would be if all had kept their parts of it in one place."""
        whole = self.place / "whole"
        shutil.copytree(self.place / "boot", whole, ignore=shutil.ignore_patterns("skeletons"))
        for number in range(self.tokens):
            for place in (self.place / f"n{number}" / "nodes").glob("*"):
                shutil.copytree(place, whole / "nodes" / place.name)
        return whole
