"""A real container engine, and compose projects on it, as a user would start them.

P2PDP_DOCKER_UP names a script that starts an engine, or finds the one that it started, and prints how to reach it.
Nothing here waits for a time: it waits for a state, a sentence or a file, within a generous guard.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import tempfile
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, Self

from tests.support.launched import GUARD_S, wait_for
from tests.support.missing import missing
from tests.support.sources import TOP

IMAGE: Final = "p2pdp-test"
MQTT: Final = "docker-compose.yml"
TCP: Final = "deploy/compose.tcp.yml"
BASE: Final = "python:3.11-slim-bookworm"
EXPORTED: Final = re.compile(r"(DOCKER_\w+)=(\S+)")
DONE: Final = ("exited", "dead")


@cache
def engine() -> dict[str, str]:
    """The environment in which `docker` finds the engine, which has the image of this checkout."""
    script = os.environ.get("P2PDP_DOCKER_UP")
    if not script:
        missing("set P2PDP_DOCKER_UP to the script that starts a Docker engine and prints its DOCKER_HOST")
    with Path(tempfile.gettempdir(), "p2pdp-engine.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        told = subprocess.run([script], capture_output=True, text=True, check=True).stdout
        environment = {**os.environ, **dict(EXPORTED.findall(told))}
        build = ["docker", "build", "--quiet", "--file", str(TOP / "deploy" / "Dockerfile"), "--tag", IMAGE, str(TOP)]
        done = subprocess.run(build, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return environment


def docker(*arguments: str) -> str:
    done = subprocess.run(
        ["docker", *arguments], env=engine(), cwd=TOP, capture_output=True, text=True, check=False, timeout=GUARD_S
    )
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout.strip()


class Container:
    def __init__(self, name: str) -> None:
        self.name = name

    def facts(self) -> Any:
        return json.loads(docker("inspect", self.name))[0]

    @property
    def state(self) -> str:
        return str(self.facts()["State"]["Status"])

    @property
    def code(self) -> int:
        return int(self.facts()["State"]["ExitCode"])

    @property
    def said(self) -> str:
        done = subprocess.run(["docker", "logs", self.name], env=engine(), capture_output=True, text=True, check=True)
        return done.stdout + done.stderr

    @property
    def address(self) -> str:
        """In the network of the nodes."""
        networks = self.facts()["NetworkSettings"]["Networks"]
        return str(next(each["IPAddress"] for name, each in networks.items() if name.endswith("_run")))

    @property
    def data(self) -> Path:
        """Where the engine keeps what is in /data."""
        return Path(next(mount["Source"] for mount in self.facts()["Mounts"] if mount["Destination"] == "/data"))

    @property
    def ledger_bytes(self) -> int:
        ledger = self.data / "run" / "node" / "view.ledger"
        return ledger.stat().st_size if ledger.is_file() else 0

    def hear(self, sentence: str) -> None:
        wait_for(lambda: sentence in self.said or self.state in DONE, f"{self.name}: {sentence}")
        assert sentence in self.said, self.said

    def end(self) -> int:
        wait_for(lambda: self.state in DONE, f"{self.name} ends")
        return self.code

    def wait_for_growth(self, grown_bytes: int = 5_000) -> None:
        before = self.ledger_bytes
        wait_for(lambda: self.ledger_bytes >= before + grown_bytes or self.state in DONE, f"{self.name} goes on")
        assert self.ledger_bytes >= before + grown_bytes, self.said


class Project:
    """One compose project of its own, with a name of its own and a free port for the report.

    Of all tests on this machine one at a time has its containers up: they would take each other's time.
    """

    def __init__(self, place: Path, file: str, spec: str | None = None, **settings: str) -> None:
        self.name = f"p2pdp-test-{token_hex(4)}"
        self._turn = ExitStack()
        self._command = ["compose", "--file", str(TOP / file), "--project-name", self.name]
        self._settings = {"P2PDP_IMAGE": IMAGE, "P2PDP_PORT": "127.0.0.1:0", **settings}
        if spec is not None:
            (place / "spec.toml").write_text(spec)
            self._settings["P2PDP_SPEC"] = str(place / "spec.toml")
            (place / "node.toml").write_text(NODE if file == TCP else AT_BROKER)
            self._settings["P2PDP_NODE"] = str(place / "node.toml")

    def __enter__(self) -> Self:
        engine()
        fcntl.flock(
            self._turn.enter_context(Path(tempfile.gettempdir(), "p2pdp-containers.lock").open("w")), fcntl.LOCK_EX
        )
        return self

    def __exit__(self, *_: object) -> None:
        with self._turn:
            self.compose("down", "--volumes", "--timeout", "0")

    def compose(self, *arguments: str) -> str:
        done = subprocess.run(
            ["docker", *self._command, *arguments],
            env={**engine(), **self._settings}, cwd=TOP, capture_output=True, text=True, check=False, timeout=GUARD_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def up(self, *arguments: str) -> None:
        self.compose("up", "--detach", "--no-build", *arguments)

    def container(self, service: str, number: int = 1) -> Container:
        return Container(f"{self.name}-{service}-{number}")

    def nodes(self, count: int) -> list[Container]:
        return [self.container("node", number) for number in range(1, count + 1)]

    def fetch(self, path: str) -> bytes:
        """From the published port, as a browser on this machine would."""
        place = self.compose("port", "bootstrap", "8080")
        assert place.startswith("127.0.0.1:")
        with urllib.request.urlopen(f"http://{place}{path}", timeout=GUARD_S) as answer:
            body: bytes = answer.read()
            return body

    def result(self) -> dict[str, Any]:
        """Once there is one."""
        bootstrap = self.container("bootstrap")
        file = bootstrap.data / "run" / "result.json"
        wait_for(lambda: file.is_file() or bootstrap.state in DONE, "a result")
        assert file.is_file(), bootstrap.said
        document: dict[str, Any] = json.loads(file.read_text())
        return document


def ended(containers: Sequence[Container]) -> list[int]:
    return [each.end() for each in containers]


NODE: Final = """[node]
identity = "/data/identity.key"
token = "/data/own.token"
listen = "0.0.0.0:7001"
[data]
kind = "uniform"
"""
AT_BROKER: Final = NODE.replace(
    'listen = "0.0.0.0:7001"', '[transport]\nca = "/data/ca.pem"\npassword_file = "/data/password"'
)
