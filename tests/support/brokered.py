"""Machines whose nodes meet at a broker: a real Mosquitto with what `p2pdp keygen --tls` made for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from p2pdp.core.spec import TransportPart
from p2pdp.files.keys import BrokerWishes, write_broker_folder
from p2pdp.transports.mqtt.access import Broker, Login, broker_of, read_secret_text
from tests.support.across import Across, Started
from tests.support.mosquitto import Mosquitto
from tests.support.ports import free_port

ADMIN = "admin"
ADMIN_RIGHTS = f"user {ADMIN}\ntopic read #\n"


@dataclass
class Kept:
    """A broker and the folder of those who may come to it; `admin` reads everything."""

    folder: Path
    running: Mosquitto

    @property
    def port(self) -> int:
        return self.running.port

    @property
    def broker(self) -> Broker:
        return broker_of(TransportPart(ca=str(self.folder / "ca.pem")), "localhost", self.port)

    def login(self, user: str, client: str | None = None) -> Login:
        return Login(client or user, user, self.password(user))

    def password(self, user: str) -> str:
        return read_secret_text(self.folder / "users" / user / "password", "password")

    def transport(self, user: str | None, *, certificates: bool = False) -> str:
        """What a node writes into its configuration."""
        lines = [f'ca = "{self.folder}/ca.pem"']
        if user is not None:
            mine = f"{self.folder}/users/{user}"
            lines.append(f'user = "{user}"')
            secret = [f'certificate = "{mine}/client.pem"', f'key = "{mine}/client.key"']
            lines += secret if certificates else [f'password_file = "{mine}/password"']
        return "[transport]\n" + "\n".join(lines) + "\n"

    def everybody(self) -> str:
        """What the spec of a run on one machine says of it."""
        return (
            f'[transport]\nhost = "localhost"\nport = {self.port}\nca = "{self.folder}/ca.pem"\n'
            f'password_file = "{self.folder}/passwords"\n'
        )


@contextmanager
def keeping(
    place: Path, nodes: int, more: Sequence[str] = (), *, certificates: bool = False, start: bool = True
) -> Iterator[Kept]:
    users = ["bootstrap", *(f"node-{number:04d}" for number in range(nodes)), ADMIN, *more]
    folder = place / "tls"
    wishes = BrokerWishes(["localhost", "127.0.0.1"], users, free_port(), certificates=certificates)
    write_broker_folder(folder, wishes, datetime.now(UTC))
    rights = folder / "broker" / "acl"
    rights.write_text(rights.read_text() + ADMIN_RIGHTS)
    config = folder / "broker" / "mosquitto.conf"
    if os.geteuid() == 0:
        config.write_text(f"{config.read_text()}user root\n")
    running = Mosquitto(folder / "broker", config, wishes.port)
    try:
        yield Kept(folder, running.start() if start else running)
    finally:
        running.stop(signal.SIGKILL)


class Brokered(Across):
    """As over TCP, but nobody listens."""

    def __init__(self, place: Path, spec: str, nodes: int, kept: Kept, *, certificates: bool = False) -> None:
        self.kept = kept
        self.certificates = certificates
        roles = kept.transport("bootstrap", certificates=certificates)
        at = f'host = "localhost"\nport = {kept.port}\n'
        super().__init__(place, spec.replace("[run]\n", '[run]\ntransport = "mqtt"\n', 1) + roles + at, nodes)

    def configure(self, number: int, *, node: str = "", more: str = "", **changed: str) -> None:
        user = f"node-{number:04d}"
        transport = self.kept.transport(user, certificates=self.certificates)
        self.write(number, node, more if "[transport]" in more else more + transport, changed)

    def write(self, number: int, node: str, more: str, changed: dict[str, str]) -> None:
        keys = {"identity": f"id{number}/identity.key", "token": f"boot/tokens/{number:04d}.token"} | changed
        lines = "".join(f'{key} = "{value}"\n' for key, value in keys.items())
        (self.place / f"n{number}.toml").write_text(f'[node]\n{lines}{node}[data]\nkind = "uniform"\n{more}')

    def bootstrap_again(self, *more: str) -> Started:
        options = ("--tokens", str(self.tokens), "--out", "boot", "--json")
        return self.start("bootstrap", "bootstrap", "spec.toml", *options, *more)
