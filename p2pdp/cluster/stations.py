"""At which broker the processes of a local run over MQTT meet, and as whom.

Without `[transport] host` it is a broker of the run's own (`broker.py`). Else everybody comes as the spec says: each
station under its own name where `password_file` has a line for each (`bootstrap`, `node-0000`, …), all of them as
`user` where that is given, and without a password otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from p2pdp.cluster.broker import LOOPBACK, BrokerProcess, OwnBroker, own_broker
from p2pdp.cluster.layout import MQTT
from p2pdp.core.errors import UsageError
from p2pdp.core.spec import Spec
from p2pdp.core.stations import ROLES_STATION, user_station
from p2pdp.crypto.entropy import random_bytes
from p2pdp.node.brokers import broker_of, passwords_of
from p2pdp.transports.mqtt_places import Broker, Login, Place
from p2pdp.transports.networks import Network

Networks = Callable[[str, int, int], Network]  # for a station: how many calls, and how many of strangers


@contextmanager
def broker_for(spec: Spec) -> Iterator[BrokerProcess | None]:
    """Starts a broker where the run needs one of its own."""
    if spec.run.transport != MQTT or spec.transport.host is not None:
        yield None
        return
    with own_broker([ROLES_STATION, *map(user_station, range(spec.run.nodes))]) as process:
        yield process


def check_stations(spec: Spec) -> None:
    """What the spec says of a broker makes sense, and its files can be read."""
    part = spec.transport
    if spec.run.transport != MQTT:
        return
    if part.host is None:
        for name in ("port", "user", "password_file", "ca", "certificate", "key"):
            if getattr(part, name) is not None:
                raise UsageError(f"[transport] {name}: says something of a broker; name its host as well")
        return
    places_of(spec, b"", None)(ROLES_STATION)
    places_of(spec, b"", None)(user_station(spec.run.nodes - 1))


def places_of(spec: Spec, run_id: bytes, own: OwnBroker | None) -> Callable[[str], Place]:
    run = run_id.hex() or "run"
    if own is not None:
        mine = Broker(LOOPBACK, own.port, version_5=own.version_5)
        return lambda name: Place(mine, Login(name, name, own.passwords[name]), run, name)
    part = spec.transport
    assert part.host is not None
    broker, passwords, user = broker_of(part, part.host, part.port), passwords_of(part), part.user

    def place(name: str) -> Place:
        if user is not None:
            return Place(broker, Login(f"{run}-{name}", user, passwords.get(user)), run, name)
        if not passwords:
            return Place(broker, Login(f"{run}-{name}"), run, name)
        if name not in passwords:
            raise UsageError(f"[transport] password_file: has no line for {name}; or name one user for all")
        return Place(broker, Login(name, name, passwords[name]), run, name)

    return place


def networks_of(spec: Spec, run_id: bytes, own: OwnBroker | None) -> Networks:
    from p2pdp.transports.mqtt import MqttNetwork

    place = places_of(spec, run_id, own)
    return lambda name, calls, strangers: MqttNetwork(
        place(name), random_bytes, ROLES_STATION, calls_max=calls, strangers_max=strangers
    )
