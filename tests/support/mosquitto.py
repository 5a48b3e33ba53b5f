"""A real Mosquitto for tests: started on the loopback with settings of the test, and ended with it."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from tempfile import mkdtemp
from time import monotonic, sleep
from typing import Final, Self

from p2pdp.transports.mqtt.access import Broker
from tests.support.missing import missing
from tests.support.ports import free_port

START_S: Final = 60.0
PLAIN: Final = "allow_anonymous true\nset_tcp_nodelay true\nmax_queued_messages 100000\nmax_inflight_messages 1000\n"


def mosquitto() -> str:
    """The program, or the test is skipped."""
    found = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        missing("install mosquitto (apt-get install mosquitto): the broker of these tests")
    return found


class Mosquitto:
    """One broker at one port, which can be ended, killed and started again."""

    def __init__(
        self, folder: Path, config: Path | None = None, port: int | None = None, settings: str = PLAIN
    ) -> None:
        """With a configuration that is there, for that port; else one is written."""
        self.program = mosquitto()
        self.folder = folder
        self.port = port or free_port()
        self.config = config or folder / "mosquitto.conf"
        if config is None:
            user = "user root\n" if os.geteuid() == 0 else ""
            self.config.write_text(f"listener {self.port} 127.0.0.1\n{settings}{user}")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def broker(self) -> Broker:
        return Broker("127.0.0.1", self.port)

    def start(self) -> Mosquitto:
        with (self.folder / "mosquitto.log").open("ab") as log:
            self._process = subprocess.Popen([self.program, "-c", str(self.config)], stdout=log, stderr=log)
        until_s = monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1.0).close()
            except OSError:
                assert self._process.poll() is None, (self.folder / "mosquitto.log").read_text()
                assert monotonic() < until_s, "mosquitto does not listen"
                sleep(0.02)
            else:
                return self

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


@functools.cache
def shared_broker() -> Broker:
    """One for all tests of this process that need no settings of their own."""
    folder = Path(mkdtemp(prefix="p2pdp-mosquitto-"))
    running = Mosquitto(folder).start()

    def end() -> None:
        running.stop()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return running.broker
