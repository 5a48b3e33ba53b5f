"""How bootstrap and nodes on machines of their own are reached: each at an address, or all through a broker.

Over TCP everybody listens. Over MQTT nobody does: all call the broker, which the spec's `[transport]` names for
bootstrap, the join token for nodes, and a node's own `[transport]` says as whom it comes there. Names of users are
names of stations: bootstrap's goes into the tokens, and a node signs its own as it would sign an address.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from p2pdp.cluster.bootstrap_folder import BootstrapFolder
from p2pdp.cluster.layout import MQTT
from p2pdp.cluster.sockets import connections_of_roles
from p2pdp.core.errors import UsageError
from p2pdp.core.spec import Spec, TransportPart
from p2pdp.core.stations import ROLES_STATION, user_station
from p2pdp.crypto.addresses import AddressError, is_wildcard, join_address, split_address
from p2pdp.crypto.broker_address import BrokerAddress, read_broker_address
from p2pdp.crypto.entropy import random_bytes
from p2pdp.files.node_config import NodeConfig
from p2pdp.node.brokers import announced, broker_of, passwords_of, station_name
from p2pdp.node.listening import announcer, listen_at
from p2pdp.transports.mqtt_places import Broker, Login, Place
from p2pdp.transports.networks import Network, TcpNetwork
from p2pdp.transports.tcp import STRANGERS_MAX, Address
from p2pdp.transports.ways import WAYS_MAX

Say = Callable[[str], None]


@dataclass(frozen=True)
class Places:
    """Where bootstrap listens, and what its tokens say, where that is something else.

    Through a broker it listens nowhere, and `address` is where nodes find the broker, if not where bootstrap does.
    """

    listen: str | None
    address: str | None = None


@dataclass(frozen=True)
class RolesDoor:
    """What tokens name, what a second start is to be told, and what to say of it."""

    network: Network
    address: str
    listen: str
    said: str


@dataclass(frozen=True)
class NodeDoor:
    """`bootstrap` is its address where it has one; `own_address` tells the one of this node."""

    network: Network
    bootstrap: Address | None
    own_address: Callable[[], Awaitable[str | None]]


def check_places(spec: Spec, places: Places) -> None:
    """Refuses what nobody could be reached by, before anything is written."""
    address = places.address
    if address is not None and is_wildcard(_split("--address", address)[0]):
        raise UsageError(
            f"--address {address}: is not reachable from other machines; name the host where they reach this one"
        )
    if spec.run.transport == MQTT:
        if places.listen is not None:
            raise UsageError("--listen: through a broker nobody listens; leave it out")
        _roles_place(spec, b"")
    elif places.listen is None:
        raise UsageError("--listen: missing; say where bootstrap is to listen, as HOST:PORT")
    elif address is None and is_wildcard(_split("--listen", places.listen)[0]):
        raise UsageError(f"--listen {places.listen}: is not reachable from other machines; add --address HOST:PORT")


def places_again(folder: BootstrapFolder) -> Places:
    """As they were when it was started first."""
    if folder.listen is None or folder.address is None:
        raise UsageError(f"{folder.path}: was never started; run p2pdp bootstrap with its options again")
    at_broker = read_broker_address(folder.address)
    if at_broker is None:
        return Places(folder.listen, folder.address)
    return Places(None, join_address(at_broker.host, at_broker.port))


@contextmanager
def door_of_roles(spec: Spec, folder: BootstrapFolder, places: Places, say: Say) -> Iterator[RolesDoor]:
    if spec.run.transport == MQTT:
        yield _roles_at_broker(spec, folder, places, say)
        return
    host, port = _split("--listen", places.listen or "")
    if port == 0 and folder.listen is not None:
        port = _split("--listen", folder.listen)[1]
    with closing(listen_at((host, port), "--listen")) as bound:
        network = TcpNetwork(bound, *connections_of_roles(spec.run.nodes))
        listen = join_address(host, network.address[1])
        told_host, told_port = (host, 0) if places.address is None else _split("--address", places.address)
        address = join_address(told_host, told_port or network.address[1])
        yield RolesDoor(network, address, listen, f"listening on {listen}")


@contextmanager
def door_of_node(config: NodeConfig, say: Say) -> Iterator[NodeDoor]:
    at_broker = config.at_broker
    if at_broker is not None:
        yield _node_at_broker(config, at_broker, say)
        return
    assert config.listen is not None
    with closing(listen_at(config.listen, f"{config.path} [node] listen")) as bound:
        yield NodeDoor(TcpNetwork(bound), config.bootstrap, announcer(config.address, bound, config.bootstrap))


def _roles_place(spec: Spec, run_id: bytes) -> Place:
    part = spec.transport
    if part.host is None:
        raise UsageError("[transport] host: missing; name the broker that all nodes can reach")
    name = ROLES_STATION if part.user is None else station_name(part.user)
    return _place(part, broker_of(part, part.host, part.port), run_id.hex() or "run", name)


def _roles_at_broker(spec: Spec, folder: BootstrapFolder, places: Places, say: Say) -> RolesDoor:
    from p2pdp.transports.mqtt import MqttNetwork

    place = _roles_place(spec, folder.run_id)
    broker = place.broker
    host, port = (broker.host, 0) if places.address is None else _split("--address", places.address)
    address = BrokerAddress(host, port or broker.port, broker.tls is not None, place.run, place.name).to_text()
    most = max(WAYS_MAX, spec.run.nodes)
    network = MqttNetwork(place, random_bytes, place.name, say, most, spec.run.nodes + STRANGERS_MAX)
    return RolesDoor(network, address, str(broker), f"listening on the broker at {broker}")


def _node_at_broker(config: NodeConfig, there: BrokerAddress, say: Say) -> NodeDoor:
    from p2pdp.transports.mqtt import MqttNetwork

    part = config.transport
    name = user_station(config.token.number) if part.user is None else station_name(part.user)
    try:
        broker = broker_of(part, part.host or there.host, part.port or there.port, tls=there.tls)
        place = _place(part, broker, there.run, name)
    except UsageError as error:
        raise UsageError(f"{config.path}: {error}") from None
    return NodeDoor(MqttNetwork(place, random_bytes, there.station, say), None, announced(name, broker))


def _place(part: TransportPart, broker: Broker, run: str, name: str) -> Place:
    passwords = passwords_of(part)
    if passwords and name not in passwords:
        raise UsageError(f"[transport] password_file: has no line for {name}; name the user whose password it holds")
    if part.user is None and not passwords:
        return Place(broker, Login(f"{run}-{name}"), run, name)
    return Place(broker, Login(name, name, passwords.get(name)), run, name)


def _split(option: str, text: str) -> tuple[str, int]:
    try:
        return split_address(text)
    except AddressError as error:
        raise UsageError(f"{option} {text}: {error}") from None
