"""The steps of deploy/samples/README.md, followed to the letter by machines that are network namespaces here."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.launched import GUARD_S, wait_for
from tests.support.netns import Host, Network
from tests.support.sources import TOP

SAMPLES = TOP / "deploy" / "samples"
STEP = re.compile(r"^```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)
USERS = 3


def machine(place: Path, name: str) -> Path:
    """The folder in which somebody types, with the samples in it."""
    folder = place / name
    shutil.copytree(SAMPLES / "nodes", folder)
    (folder / "own.csv").write_text(f"hours\n{3 + len(name)}\n")
    return folder


def typed(host: Host, folder: Path, commands: str, boot: str) -> subprocess.Popen[str]:
    commands = commands.replace("boot.example.org", boot)
    path = f"{folder.parent}:{os.environ['PATH']}"
    with (folder / "said").open("a") as said:
        return host.start(
            ["bash", "-euc", commands], cwd=folder, stdout=said, stderr=said, env={**os.environ, "PATH": path}
        )


def test_three_users_and_bootstrap_follow_the_steps(tmp_path: Path, networks: type[Network]) -> None:
    command = tmp_path / "p2pdp"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{TOP}" exec "{sys.executable}" -m p2pdp "$@"\n')
    command.chmod(0o755)
    identity, bootstrap, node, own_look, boot_look = STEP.findall((SAMPLES / "README.md").read_text())
    folders = [machine(tmp_path, f"user{number}") for number in range(USERS)]
    boot = machine(tmp_path, "boot")
    with networks(USERS + 1) as network:
        first, *others = network.hosts

        def everybody(commands: str) -> list[int]:
            places = zip(others, folders, strict=True)
            started = [typed(host, folder, commands, first.address) for host, folder in places]
            return [process.wait(GUARD_S) for process in started]

        assert everybody(identity) == [0] * USERS
        serving = typed(first, boot, bootstrap, first.address)
        tokens = [boot / "boot" / "tokens" / f"{number:04d}.token" for number in range(USERS)]
        wait_for(lambda: all(token.is_file() for token in tokens) or serving.poll() is not None, "tokens")
        for token, folder in zip(tokens, folders, strict=True):
            shutil.copy(token, folder / "own.token")
        assert everybody(node) == [0] * USERS, [(folder / "said").read_text() for folder in folders]
        assert serving.wait(GUARD_S) == 0, (boot / "said").read_text()
        assert everybody(own_look) == [0] * USERS
        assert typed(first, boot, boot_look, first.address).wait(GUARD_S) == 0
    result = json.loads((boot / "boot" / "result.json").read_text())
    assert (result["nodes"], result["missing"]) == (USERS, [])
    assert "consistent" in (folders[0] / "said").read_text()
    assert "ledgers complete" in (boot / "said").read_text()
