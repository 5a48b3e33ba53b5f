"""Each test forks from a fresh interpreter: the test runner has threads of its own."""

from __future__ import annotations

import subprocess
import sys


def script(text: str) -> subprocess.CompletedProcess[str]:
    head = "import os\nfrom p2pdp.cluster.children import fork, wait_for\n"
    head += "def report(kind, text): os.write(2, (kind + ' ' + text + chr(10)).encode())\n"
    return subprocess.run([sys.executable, "-c", head + text], capture_output=True, text=True, timeout=60, check=False)


def test_two_children_never_draw_alike() -> None:
    done = script(
        """
import os
from p2pdp.core.draws import Mechanism
from p2pdp.crypto.entropy import SystemEntropy
from p2pdp.mechanisms.sampler import ExactSampler, warm
noise = Mechanism("gaussian", 1e6)
warm(noise)
entropy, sampler = SystemEntropy(), ExactSampler()
entropy.salt()  # even if something was drawn before the fork
async def draw():
    said = [entropy.salt().hex(), entropy.nonce().hex(), entropy.seed().hex(), *sampler.batch(noise, (), 3)]
    os.write(1, (" ".join(map(str, said)) + "\\n").encode())
for _ in range(4):
    assert wait_for(fork(draw, lambda: None, report)) == 0
"""
    )
    assert done.stderr == ""
    drawn = [word for line in done.stdout.splitlines() for word in line.split()]
    assert len(drawn) == len(set(drawn)) == 4 * 6


def test_a_child_ends_with_its_reason() -> None:
    done = script(
        """
import asyncio, os, signal
from p2pdp.core.errors import Refused
async def refuses():
    raise Refused("no")
async def crashes():
    raise ZeroDivisionError
async def waits():
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.Event().wait()
async def killed():
    os.kill(os.getpid(), signal.SIGKILL)
print([wait_for(fork(body, lambda: None, report)) for body in (refuses, crashes, waits, killed)])
"""
    )
    assert done.stdout == "[5, 1, 130, -9]\n"
    assert "failed no\n" in done.stderr
    assert "ZeroDivisionError" in done.stderr
