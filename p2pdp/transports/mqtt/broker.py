"""A local run's own broker, where its spec names none, and settings of a Mosquitto that is safe to use.

A local run's broker lives as long as the run, on the loopback, at a free port. It is Mosquitto where that is installed.
Else it is amqtt, which comes with `pip install '.[broker]'`, speaks MQTT 3.1.1 only and is slower. Each start of a
run makes new passwords, one for each station, which no file holds once the broker listens. The broker ends with the
launcher, however that comes about (on Linux; elsewhere a launcher that is killed leaves it behind).

Guarantee of the settings: nobody comes in without a password or a certificate, or into another's session. The access
list lets each user read its own topic and write to those of all runs, and nothing else; who wrote a frame shows when
its box is opened. A station that is away for long is sent what came meanwhile, and one that never comes back costs the
broker no more than `QUEUE_BYTES_MAX`. Nothing is retained: the access list does not forbid it, our stations do not do
it, and nobody reads it.

Passwords are kept as Mosquitto's own tool keeps them: `$7$` rounds `$` salt `$` PBKDF2-HMAC-SHA512, in base64.
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
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import pbkdf2_hmac
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import IO, Any, Final

from p2pdp.core.errors import NotReady
from p2pdp.crypto.entropy import random_bytes

LOOPBACK: Final = "127.0.0.1"
START_S: Final = 20.0
STOP_S: Final = 5.0
PORTS_TRIED: Final = 5
LOOK_S: Final = 0.01
SETTLE_S: Final = 0.1  # one that finds its port taken has ended by then
_SBIN: Final = "/usr/sbin:/usr/local/sbin:/opt/homebrew/sbin"
_DIE_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG

ROUNDS: Final = 1000  # of what protects passwords that have 192 bits of entropy anyway
SALT_BYTES: Final = 12
HASH_BYTES: Final = 64
IN_FLIGHT_MAX: Final = 200
QUEUE_MESSAGES_MAX: Final = 100_000  # for one station that is away
QUEUE_BYTES_MAX: Final = 256 * 1024 * 1024
PACKET_BYTES_MAX: Final = 16 * 1024 * 1024 + 4096  # the largest frame, and what is around it
AUTOSAVE_S: Final = 10

ACCESS_LIST: Final = """# Each user reads its own topic of every run, and writes to those of others.
pattern read p2pdp/+/%u
pattern write p2pdp/+/+
"""


@dataclass(frozen=True)
class OwnBroker:
    """The facts about its broker that the processes of a run need."""

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
    """Run a broker that these stations may use."""
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
            "or pip install '.[broker]', or name one by [transport] host"
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
    """Wait until the broker listens; return whether it does, which it does not if it has ended."""
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


def mosquitto_settings(
    listeners: str,
    *,
    password_file: str | None,
    access_file: str,
    persistence: str | None = None,
    user: str | None = None,
) -> str:
    """Return settings with `listeners`, Mosquitto's own lines for where it listens, and with which certificate."""
    lines = [
        "# A session is its user's: nobody takes over another's by coming under its name.",
        "use_username_as_clientid true",
        "per_listener_settings false",
        "allow_anonymous false",
        None if password_file is None else f"password_file {password_file}",
        f"acl_file {access_file}",
        "# A frame leaves at once, and many may be under way.",
        "set_tcp_nodelay true",
        f"max_inflight_messages {IN_FLIGHT_MAX}",
        "# What waits for a station that is away: frames and bytes.",
        f"max_queued_messages {QUEUE_MESSAGES_MAX}",
        f"max_queued_bytes {QUEUE_BYTES_MAX}",
        f"max_packet_size {PACKET_BYTES_MAX}",
        "retain_available false",
        "# No line for a connection, a subscription or a message: such lines together are the token's route.",
        "log_type error",
        "log_type warning",
        "connection_messages false",
        *_persistence(persistence),
        None if user is None else f"user {user}",
    ]
    return "\n".join([listeners.rstrip("\n"), *filter(None, lines)]) + "\n"


def _persistence(folder: str | None) -> list[str]:
    if folder is None:
        return ["persistence false"]
    return [
        "# Sessions and what waits in them outlast a restart.",
        "persistence true",
        f"persistence_location {folder.rstrip('/')}/",
        f"autosave_interval {AUTOSAVE_S}",
        "persistent_client_expiration 14d",
    ]


def password_lines(passwords: Mapping[str, str]) -> str:
    return "".join(f"{user}:{password_hash(password)}\n" for user, password in passwords.items())


def password_hash(password: str) -> str:
    salt = random_bytes(SALT_BYTES)
    hashed = pbkdf2_hmac("sha512", password.encode(), salt, ROUNDS, HASH_BYTES)
    return f"$7${ROUNDS}${b64encode(salt).decode()}${b64encode(hashed).decode()}"


def fresh_password() -> str:
    return random_bytes(24).hex()
