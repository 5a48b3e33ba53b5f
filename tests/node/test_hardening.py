from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
from collections.abc import Callable

import pytest

from p2pdp.cluster.processes import fork, wait_for
from p2pdp.node.hardening import harden, stay_open
from tests.support.sources import TOP

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has prctl and /proc")
PR_GET_DUMPABLE = 3
OWNER = """
import ctypes, os, resource, sys
from p2pdp.node.hardening import harden
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # which a change of the user has taken away
if sys.argv[1] == "hardened":
    harden()
if not os.fork():
    try:
        open(f"/proc/{os.getppid()}/mem", "rb").close()
        os._exit(1)
    except PermissionError:
        os._exit(2)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def dumpable() -> int:
    import ctypes

    return int(ctypes.CDLL(None).prctl(PR_GET_DUMPABLE, 0, 0, 0, 0))


def told_by_child(act: Callable[[], None]) -> str:
    """What a forked child says of itself after `act`: whether it is dumpable, and its limit on core dumps."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        act()
        os.write(writing, f"{dumpable()} {resource.getrlimit(resource.RLIMIT_CORE)}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as said:
        return said.read()


def said_by(script: str, *arguments: str) -> str:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True).stdout.strip()


@LINUX
def test_a_hardened_process_cannot_be_dumped_and_leaves_no_core() -> None:
    assert told_by_child(harden) == "0 (0, 0)"
    assert told_by_child(lambda: None).startswith("1 ")

    with stay_open():
        assert told_by_child(harden).startswith("1 ")
    assert told_by_child(harden) == "0 (0, 0)"


@LINUX
def test_forked_peers_are_hardened_before_they_do_anything() -> None:
    reading, writing = os.pipe()

    async def main() -> None:
        await asyncio.sleep(0)
        os.write(writing, f"{dumpable()} {resource.getrlimit(resource.RLIMIT_CORE)}".encode())

    assert wait_for(fork(main, lambda: None, lambda _kind, _text: None)) == 0
    os.close(writing)
    with os.fdopen(reading) as said:
        assert said.read() == "0 (0, 0)"


@LINUX
@pytest.mark.parametrize(("how", "code"), [("hardened", "2"), ("plain", "1")])
def test_another_process_of_the_same_user_cannot_read_its_memory(how: str, code: str) -> None:
    assert said_by(OWNER, how) == code


def test_a_node_and_bootstrap_in_the_foreground_are_hardened() -> None:
    script = """
import asyncio, ctypes, sys
from p2pdp.node.process import run_in_foreground
async def body():
    return ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) if sys.platform == "linux" else 0
print(run_in_foreground(body))
"""
    assert said_by(script) == "0"
