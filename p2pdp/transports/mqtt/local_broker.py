"""A broker of a local run's own, where its spec names none: on the loopback, at a free port, for as long as the run.

It is Mosquitto where that is installed. Else it is amqtt, which comes with `pip install 'p2pdp[broker]'`, speaks
MQTT 3.1.1 only and is slower. Each start of a run makes new passwords, one for each station, which no file holds
once the broker listens; nobody else comes in. The broker ends with the launcher, however that comes about (on Linux;
elsewhere a launcher that is killed leaves it behind).
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import IO, Any, Final

from p2pdp.core.errors import NotReady
from p2pdp.transports.mqtt.mosquitto import ACCESS_LIST, fresh_password, mosquitto_settings, password_lines

LOOPBACK: Final = "127.0.0.1"
START_S: Final = 20.0
STOP_S: Final = 5.0
PORTS_TRIED: Final = 5
LOOK_S: Final = 0.01
SETTLE_S: Final = 0.1  # one that finds its port taken has ended by then
_SBIN: Final = "/usr/sbin:/usr/local/sbin:/opt/homebrew/sbin"
_DIE_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG


@dataclass(frozen=True)
class OwnBroker:
    """What the processes of a run have to know of it."""

    port: int
    version_5: bool
    passwords: Mapping[str, str] = field(repr=False)


class BrokerProcess:
    def __init__(self, process: subprocess.Popen[bytes], broker: OwnBroker) -> None:
        self._process = process
        self.broker = broker

    @property
    def known(self) -> Mapping[str, Any]:
        return asdict(self.broker)

    def check(self) -> None:
        if self._process.poll() is not None:
            raise NotReady("the broker of this run ended; p2pdp resume starts another one and goes on")

    def end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def own_broker(stations: Sequence[str]) -> Iterator[BrokerProcess]:
    """A broker that these may use."""
    process = _started({station: fresh_password() for station in stations})
    try:
        yield process
    finally:
        process.end()


def _started(passwords: Mapping[str, str]) -> BrokerProcess:
    said, command = "", [""]
    for _ in range(PORTS_TRIED):
        port = _free_port()
        with tempfile.TemporaryDirectory(prefix="p2pdp-broker-") as name, tempfile.TemporaryFile() as log:
            command, version_5 = _command(Path(name), port, passwords)
            process = BrokerProcess(_run(command, log), OwnBroker(port, version_5, passwords))
            try:
                if _listens(process, port):
                    return process
            except BaseException:
                process.end()
                raise
            log.seek(0)
            said = log.read().decode(errors="replace").strip().rpartition("\n")[2]
    raise NotReady(f"{command[0]} does not start: {said or 'it says nothing'}")


def _command(folder: Path, port: int, passwords: Mapping[str, str]) -> tuple[list[str], bool]:
    mosquitto = shutil.which("mosquitto") or shutil.which("mosquitto", path=_SBIN)
    if mosquitto is not None:
        return [mosquitto, "-c", str(_settings(folder, port, passwords))], True
    if find_spec("amqtt") is None:
        raise NotReady(
            '[run] transport: "mqtt" needs a broker: install mosquitto (apt-get install mosquitto), '
            "or pip install 'p2pdp[broker]', or name one by [transport] host"
        )
    access = folder / "passwords"
    access.write_text("".join(f"{user}:{password}\n" for user, password in passwords.items()))
    return [sys.executable, "-m", "p2pdp.transports.mqtt.amqtt_broker", str(port), str(access)], False


def _settings(folder: Path, port: int, passwords: Mapping[str, str]) -> Path:
    files = {
        "passwords": password_lines(passwords),
        "acl": ACCESS_LIST,
        "mosquitto.conf": mosquitto_settings(
            f"listener {port} {LOOPBACK}",
            password_file=str(folder / "passwords"),
            access_file=str(folder / "acl"),
            user="root" if os.geteuid() == 0 else None,  # else it would become somebody who cannot read these
        ),
    }
    for name, text in files.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)
    return folder / "mosquitto.conf"


def _run(command: Sequence[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a program that gets no signal of our terminal, none of our files but its log, and ends with us."""
    libc, parent = ctypes.CDLL(None), os.getpid()

    def end_with_parent() -> None:
        if hasattr(libc, "prctl"):
            libc.prctl(_DIE_WITH_PARENT, signal.SIGTERM)
        if os.getppid() != parent:  # it ended before that
            os._exit(1)

    return subprocess.Popen(  # noqa: S603  (no shell, and a path that was looked up)
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        preexec_fn=end_with_parent,  # noqa: PLW1509  (there is no other thread yet)
    )


def _listens(process: BrokerProcess, port: int) -> bool:
    """Whether it does, after a while; not if it has ended."""
    until_s = monotonic() + START_S
    while monotonic() < until_s:
        try:
            socket.create_connection((LOOPBACK, port), 1.0).close()
        except OSError:
            answered = False
        else:
            answered = True
        sleep(SETTLE_S if answered else LOOK_S)
        try:
            process.check()  # who answers may be somebody else
        except NotReady:
            return False
        if answered:
            return True
    process.end()
    return False


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as bound:
        return int(bound.getsockname()[1])
