"""Several machines on this one: network namespaces, each with a cable to a switch in one more of them.

    with Network(4) as network:
        process = network.hosts[1].start(["ping", ...])
        network.lose(0.2)                  # of the packets on every cable, in each direction
        network.cut(network.hosts[2])      # nothing gets through, and nobody is told; `heal` mends it

Guarantee: nothing of it has a name or an address outside, so tests do not meet. A namespace lives as long
as the process that holds it, which ends when the test's process does, however that ends; with it go the
cables. Processes started in a host are killed when the network is left, or their starter is.

It needs root, iproute2 and util-linux. Packets are lost by a filter of the old packet language
(`ld random`), which kernels have that have no `netem`.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Final, Self

from tests.support.forked import Forked

CLONE_NEWNET: Final = 0x40000000
SUBNET: Final = "10.66.0"  # nobody outside ever sees it
TOOLS: Final = ("ip", "tc", "unshare", "setpriv")

# Classic BPF, as `tc` reads it: load a random number; at or above the threshold pass (0), below it drop (2).
LOSS: Final = "4,32 0 0 {random},53 0 1 {threshold},6 0 0 0,6 0 0 2"
RANDOM: Final = 0xFFFFF000 + 56  # SKF_AD_OFF + SKF_AD_RANDOM
THRESHOLD_MAX: Final = (1 << 32) - 1


class Host:
    """A machine of its own: a loopback interface, `eth0`, processes."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.address = f"{SUBNET}.{number + 1}"
        self.processes: list[subprocess.Popen[Any] | Forked] = []
        self._holder = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._holder.stdin is not None
        assert self._holder.stdout is not None
        self._holder.stdin.write(b"\n")
        self._holder.stdin.flush()
        self._holder.stdout.readline()  # it answers from its namespace, which is there then
        self.run("ip link set lo up")

    @property
    def holder(self) -> int:
        return self._holder.pid

    @contextmanager
    def inside(self) -> Iterator[None]:
        """This thread is in the host meanwhile: sockets it opens and processes it starts are, and stay, there."""
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(f"/proc/{self.holder}/ns/net", os.O_RDONLY)
        try:
            _enter(there)
            yield
        finally:
            _enter(home)
            os.close(home)
            os.close(there)

    def run(self, *commands: str) -> None:
        """Commands of an instant, as a shell would read them; one that fails raises with what it said."""
        with self.inside():
            for command in commands:
                done = subprocess.run(shlex.split(command), capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    raise OSError(f"{command}: {done.stderr.strip()}")

    def start(self, command: Sequence[str], **settings: Any) -> subprocess.Popen[Any]:
        with self.inside():
            mortal = ["setpriv", "--pdeathsig", "KILL", *command]
            process = subprocess.Popen(mortal, start_new_session=True, **settings)
        self.processes.append(process)
        return process

    def start_command(self, *arguments: str, **settings: Any) -> Forked:
        """The command line, as `start` would start it."""
        with self.inside():
            process = Forked(arguments, session=True, mortal=True, **settings)
        self.processes.append(process)
        return process

    def end(self) -> None:
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        self._holder.communicate()


class Network:
    """Hosts on one switch."""

    def __init__(self, hosts: int) -> None:
        self._made: list[Host] = []
        try:
            self._switch = self._host(0)
            self._switch.run("ip link add switch type bridge", "ip link set switch up")
            self.hosts = [self._host(number) for number in range(hosts)]
            for host in self.hosts:
                self._connect(host)
        except BaseException:
            self.__exit__()
            raise

    def _host(self, number: int) -> Host:
        host = Host(number)
        self._made.append(host)
        return host

    def _connect(self, host: Host) -> None:
        port = f"port{host.number}"
        self._switch.run(
            f"ip link add {port} type veth peer name eth0 netns {host.holder}",
            f"ip link set {port} master switch up",
            f"tc qdisc add dev {port} clsact",
        )
        host.run(
            f"ip address add {host.address}/24 dev eth0",
            "ip link set eth0 up",
            # On a cable this short a lost packet is sent again after 10 ms in place of 200: tests end sooner.
            f"ip route replace {SUBNET}.0/24 dev eth0 proto kernel scope link src {host.address} rto_min 10ms",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for host in reversed(self._made):
            host.end()

    def lose(self, share: float, *hosts: Host) -> None:
        """Drops so many of the packets from and to each of these hosts, by chance; without a name, of all."""
        program = LOSS.format(random=RANDOM, threshold=round(share * THRESHOLD_MAX))
        for host in hosts or self.hosts:
            for way in ("ingress", "egress"):
                place = f"dev port{host.number} {way} prio 1 handle 1"
                self._switch.run(f"tc filter replace {place} bpf direct-action bytecode '{program}'")

    def cut(self, host: Host) -> None:
        """As if a cable between two switches broke: nothing gets through, and nobody is told."""
        self.lose(1.0, host)

    def heal(self, host: Host) -> None:
        self.lose(0.0, host)


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


_libc: Final = ctypes.CDLL(None, use_errno=True)


@cache
def why_not() -> str | None:
    """What is missing here for all of this, if anything is."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        return f"network namespaces need {', '.join(missing)}: install iproute2 and util-linux"
    try:
        with Network(1) as network:
            network.lose(0.5)
    except OSError as error:
        return f"this kernel has no network namespaces as they are needed: {error}"
    return None
