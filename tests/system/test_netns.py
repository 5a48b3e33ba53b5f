"""Several machines, as network namespaces: first that they are what they say."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.launched import wait_for
from tests.support.netns import Host, Network
from tests.support.sources import TOP

GUARD_S = 240.0
PACKETS = 2000
LATE_S = 0.2
HOLDERS = """
import subprocess, sys
from tests.support.netns import Network
network = Network(2)
process = network.hosts[1].start(["cat"], stdin=subprocess.PIPE)
print(process.pid, *(host.holder for host in network.hosts), flush=True)
sys.stdin.read()
"""


def alive(process: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def connected(source: Host, target: Host) -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection from one host to another."""
    with target.inside():
        listening = socket.create_server((target.address, 0))
    with listening:
        with source.inside():
            calling = socket.create_connection(listening.getsockname()[:2], timeout=GUARD_S)
        called = listening.accept()[0]
    called.settimeout(GUARD_S)
    return calling, called


def received(source: Host, target: Host) -> int:
    """How many of many packets reach the target: each is there, or lost, when it was sent.

    But on a busy machine the kernel may leave some to a thread of its own.
    """
    with target.inside():
        to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with source.inside():
        at = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with to, at:
        to.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        to.bind((target.address, 0))
        to.setblocking(False)
        at.setblocking(False)
        count = 0
        for _ in range(PACKETS):
            with suppress(BlockingIOError):
                at.sendto(b"", to.getsockname())  # would wait where nobody says whose address that is
                to.recv(1)
                count += 1
        to.settimeout(LATE_S)
        with suppress(TimeoutError):
            while count < PACKETS:
                to.recv(1)
                count += 1
        return count


def test_each_host_reaches_each_other_and_nothing_else(networks: type[Network]) -> None:
    with networks(4) as network, socket.create_server(("127.0.0.1", 0)) as outside:
        for source in network.hosts:
            for target in network.hosts:
                calling, called = connected(source, target)
                with calling, called:
                    assert called.getpeername()[0] == source.address
            with source.inside(), pytest.raises(ConnectionRefusedError):
                socket.create_connection(outside.getsockname())
            with source.inside(), pytest.raises(OSError, match="unreachable"):
                socket.create_connection(("192.0.2.1", 9))
        with socket.create_connection(outside.getsockname()):
            assert True, "this thread is at home again"


def test_networks_of_the_same_addresses_do_not_meet(networks: type[Network]) -> None:
    with networks(2) as one, networks(2) as other:
        ones, others = connected(*one.hosts), connected(*other.hosts)
        ones[0].sendall(b"one")
        others[0].sendall(b"other")
        assert (ones[1].recv(9), others[1].recv(9)) == (b"one", b"other")
        for end in (*ones, *others):
            end.close()


def test_as_many_packets_are_lost_as_was_asked_for(networks: type[Network]) -> None:
    with networks(3) as network:
        one, other, third = network.hosts
        assert received(one, other) == PACKETS
        network.lose(0.2, one)
        # Binomial, 1 - share to the number of cables; ten standard deviations are allowed.
        assert abs(received(one, other) - 0.8 * PACKETS) < 180
        assert received(third, other) == PACKETS
        network.lose(0.2)
        assert abs(received(one, other) - 0.64 * PACKETS) < 220
        network.lose(0.0)
        assert received(one, other) == PACKETS


def test_a_cut_host_is_reached_by_nothing_and_what_was_under_way_arrives_when_it_heals(networks: type[Network]) -> None:
    with networks(3) as network:
        one, other, third = network.hosts
        calling, called = connected(one, other)
        with calling, called:
            network.cut(other)
            calling.sendall(b"hello")
            assert received(one, other) == received(other, third) == 0
            assert received(one, third) == PACKETS
            called.setblocking(False)
            with pytest.raises(BlockingIOError):
                called.recv(9)
            network.heal(other)
            called.settimeout(GUARD_S)
            assert called.recv(9) == b"hello"


def test_a_command_that_fails_says_why(networks: type[Network]) -> None:
    with networks(1) as network, pytest.raises(OSError, match=r"ip link show nothing: .*nothing"):
        network.hosts[0].run("ip link show nothing")


def test_nothing_stays_behind_whatever_happens(networks: type[Network]) -> None:
    made = []

    def failing() -> None:
        with networks(2) as network:
            process = network.hosts[0].start(["sh", "-c", "sleep 600 & sleep 600"], stdout=subprocess.DEVNULL)
            made.extend([process.pid, *(host.holder for host in network.hosts)])
            assert all(map(alive, made))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert not any(map(alive, made))


def test_nothing_stays_behind_when_the_test_is_killed(networks: type[Network]) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDERS], cwd=TOP, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as test:
        assert test.stdout is not None
        made = [int(number) for number in test.stdout.readline().split()]
        assert len(made) == 3
        assert all(map(alive, made))
        os.kill(test.pid, signal.SIGKILL)
        wait_for(lambda: not any(map(alive, made)), "what it made is gone")
