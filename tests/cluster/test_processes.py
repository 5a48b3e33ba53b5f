"""Each test forks from a fresh interpreter: the test runner has threads of its own."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from p2pdp.cluster.processes import TRACE_LETTERS_MAX, Events, send_event, trace_of

HEAD = """
import asyncio, os, signal
from p2pdp.cluster.processes import fork, wait_for
def say(kind, text):
    os.write(1, f"{kind}: {text}\\n".encode())
def ends(*bodies, lifeline=None):
    return [wait_for(fork(body, lambda: None, say, lifeline)) for body in bodies]
"""


def script(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", HEAD + text], capture_output=True, text=True, timeout=240, check=False)


def test_two_children_never_draw_alike() -> None:
    done = script(
        """
from p2pdp.core.draws import Mechanism
from p2pdp.crypto.entropy import SystemEntropy
from p2pdp.mechanisms.sampler import ExactSampler, FastSampler, warm
noise = Mechanism("gaussian", 1e6)
warm(noise)
entropy, sampler = SystemEntropy(), ExactSampler()
entropy.salt()  # even if something was drawn before the fork
sampler.batch(noise, (), 3)
async def draw():
    said = [entropy.salt().hex(), entropy.nonce().hex(), entropy.seed().hex(), *sampler.batch(noise, (), 3)]
    said += [sampler.choice(2**60), *FastSampler().batch(noise, (), 3), FastSampler().choice(2**60)]
    os.write(1, (" ".join(map(str, said)) + "\\n").encode())
assert ends(draw, draw, draw, draw) == [0, 0, 0, 0]
"""
    )
    assert done.stderr == ""
    drawn = [word for line in done.stdout.splitlines() for word in line.split()]
    assert len(drawn) == len(set(drawn)) == 4 * 11


def test_two_children_make_different_keys() -> None:
    done = script(
        """
import sys, tempfile
from pathlib import Path
from p2pdp.node.disk import durable_secret
with tempfile.TemporaryDirectory() as place:
    def maker(name):
        async def make():
            durable_secret(Path(place) / name / "run.key")
            durable_secret(Path(place) / name / "identity.key")
        return make
    assert ends(maker("a"), maker("b"), maker("c")) == [0, 0, 0]
    print(len({path.read_bytes() for path in Path(place).rglob("*.key")}))
"""
    )
    assert (done.stdout, done.stderr) == ("6\n", "")


def test_a_child_ends_with_its_reason_and_writes_to_no_stream() -> None:
    done = script(
        """
from p2pdp.core.errors import Refused
async def refuses():
    raise Refused("no")
async def waits():
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.Event().wait()
async def killed():
    os.kill(os.getpid(), signal.SIGKILL)
async def leaves():
    raise SystemExit(0)
print(ends(refuses, waits, killed, leaves))
"""
    )
    assert done.stdout.startswith("failed: no\ntrace: ")
    assert done.stdout.endswith("\n[5, 130, -9, 1]\n")
    assert done.stderr == ""


def test_of_a_defect_the_place_is_told_and_not_what_it_says() -> None:
    done = script(
        """
async def crashes():
    value = 31 * 1.0
    raise ZeroDivisionError(f"divided {value}")
print(ends(crashes))
"""
    )
    assert "in crashes: " in done.stdout
    assert done.stdout.endswith("ZeroDivisionError\n[1]\n")
    assert "31.0" not in done.stdout
    assert done.stderr == ""


def test_an_error_in_a_callback_ends_the_child() -> None:
    done = script(
        """
from p2pdp.core.errors import NotReady
def crashes():
    raise ZeroDivisionError
def is_full():
    raise NotReady("disk full")
def cable_cut():
    raise ConnectionResetError
def after(callback):
    async def body():
        asyncio.get_running_loop().call_soon(callback)
        await asyncio.sleep(0.01)
    return body
print(ends(after(crashes), after(is_full), after(cable_cut)))
"""
    )
    assert "ZeroDivisionError\nfailed: disk full\n[1, 6, 0]\n" in done.stdout
    assert done.stderr == ""


def test_a_signal_right_after_the_fork_is_not_lost() -> None:
    """It waits until the child can take it; one to the parent's handlers never reaches the child's copy of them."""
    done = script(
        """
taken = []
signal.signal(signal.SIGTERM, lambda *_: taken.append("parent"))
async def waits():
    await asyncio.Event().wait()
codes = []
for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
    child = fork(waits, lambda: None, say)
    os.kill(child, number)
    os.kill(child, signal.SIGTERM)
    codes.append(wait_for(child) in (130, -signal.SIGTERM))
print(codes, taken)
os.kill(os.getpid(), signal.SIGTERM)
print(taken)
"""
    )
    assert (done.stdout, done.stderr) == ("[True, True, True] []\n['parent']\n", "")


def test_a_child_ends_in_good_order_when_its_parent_is_gone() -> None:
    done = script(
        """
reading, writing = os.pipe()
told, tell = os.pipe()
async def waits():
    os.close(writing)
    os.write(tell, b"up ")
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        os.write(tell, b"tidy")
child = fork(waits, lambda: None, say, reading)
assert os.read(told, 3) == b"up "
os.close(writing)
print(wait_for(child), os.read(told, 4).decode())
"""
    )
    assert (done.stdout, done.stderr) == ("130 tidy\n", "")


def test_an_interrupted_wait_leaves_no_child() -> None:
    done = script(
        """
def interrupted(*_):
    raise SystemExit(130)
signal.signal(signal.SIGTERM, interrupted)
async def waits():
    await asyncio.Event().wait()
child = fork(waits, lambda: None, say)
wait = os.waitid
def told(*whom):
    os.kill(os.getpid(), signal.SIGTERM)
    return wait(*whom)
os.waitid = told
try:
    wait_for(child)
except SystemExit:
    try:
        os.kill(child, 0)
    except ProcessLookupError:
        print("gone")
"""
    )
    assert (done.stdout, done.stderr) == ("gone\n", "")


def test_no_process_more_is_not_ready() -> None:
    done = script(
        """
from p2pdp.core.errors import NotReady
def full():
    raise BlockingIOError(11, "Resource temporarily unavailable")
os.fork = full
try:
    ends(None)
except NotReady as error:
    print(error)
"""
    )
    assert done.stdout == "no further process can be started: Resource temporarily unavailable\n"


def test_a_long_trace_keeps_its_end() -> None:
    def deep(level: int) -> None:
        if level == 0:
            raise KeyError(level)
        deep(level - 1)

    with pytest.raises(KeyError) as caught:
        deep(100)
    trace = trace_of(caught.value)
    assert len(trace) == TRACE_LETTERS_MAX
    assert trace.endswith("in deep: raise KeyError(level)\nKeyError")


def test_what_is_told_arrives_in_order_and_once() -> None:
    events = Events()
    assert events.read() == []
    send_event(events.writing, "roster", n=3)
    send_event(events.writing, "trace", text="first line\nsecond line, é")
    assert events.read() == [
        {"event": "roster", "n": 3},
        {"event": "trace", "text": "first line\nsecond line, é"},
    ]
    assert events.read() == []
    events.close()


def test_a_line_may_come_in_pieces() -> None:
    events = Events()
    line = b'{"event": "published"}\n'
    for position in range(len(line)):
        assert events.read() == []
        os.write(events.writing, line[position : position + 1])
    assert events.read() == [{"event": "published"}]
    events.close()


def test_more_than_one_reading_is_taken_at_once() -> None:
    events = Events()
    os.set_blocking(events.writing, False)
    count = 0
    try:
        while True:
            send_event(events.writing, "excluded", user=count)
            count += 1
    except BlockingIOError:  # the pipe is full
        pass
    found = events.read()
    assert [event["user"] for event in found] == list(range(count))
    events.close()


HEAPS = """
import ctypes, sys, threading
from p2pdp.cluster.processes import keep_one_heap
if sys.argv[1] == "one":
    keep_one_heap()
for _ in range(2):
    thread = threading.Thread(target=lambda: [bytes(1000) for _ in range(1000)])
    thread.start()
    thread.join()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(sys.argv[2].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="asks glibc")
def test_threads_take_memory_from_one_heap(tmp_path: Path) -> None:
    heaps = {}
    for how in ("one", "each"):
        subprocess.run([sys.executable, "-c", HEAPS, how, tmp_path / how], check=True)
        heaps[how] = (tmp_path / how).read_text().count("<heap nr=")
    assert heaps["one"] == 1 < heaps["each"]
