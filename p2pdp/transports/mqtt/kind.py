"""The kind of transport that a spec calls `mqtt`: all peers meet at a broker, each under the name of its station.

In a local run without `[transport] host` it is a broker of the run's own (`broker.py`). Else everybody comes as
the spec says: each station under its own name where `password_file` has a line for each (`bootstrap`, `node-0000`, …),
all of them as `user` where that is given, and without a password otherwise.

Across machines the spec's `[transport]` names the broker for bootstrap, the join token names it for nodes, and a
node's own `[transport]` says as whom the node comes there. A node signs the name of its station as it would sign an
address.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

from p2pdp.core.addresses import ROLES_STATION, is_wildcard, join_address, split_option, user_station
from p2pdp.core.errors import UsageError
from p2pdp.core.spec import Spec, TransportPart
from p2pdp.crypto.entropy import random_bytes
from p2pdp.transports.contract import (
    ROLES,
    Listening,
    LocalNetworks,
    LocalProcess,
    NodeEndpoint,
    NodeSettings,
    Provision,
    RolesEndpoint,
    Say,
    TransportKind,
)
from p2pdp.transports.mqtt.access import (
    SCHEMES,
    Broker,
    BrokerAddress,
    Login,
    StationSettings,
    announced,
    broker_of,
    own_station,
    passwords_of,
    read_broker_address,
)
from p2pdp.transports.mqtt.broker import LOOPBACK, OwnBroker, own_broker
from p2pdp.transports.pool import CONNECTIONS_MAX, STRANGERS_MAX


class Mqtt(TransportKind):
    name = "mqtt"
    keys = frozenset({"host", "port", "user", "password_file", "ca", "certificate", "key"})
    has_broker = True
    schemes = tuple(SCHEMES)

    def check(self, spec: Spec) -> None:
        part = spec.transport
        if part.host is None:
            for name in sorted(self.keys):
                if getattr(part, name) is not None:
                    raise UsageError(f"[transport] {name}: configures a broker without an address; add host")
            return
        settings = settings_of(spec, b"", None)
        for slot in (ROLES, spec.run.nodes - 1):
            settings(_name(slot))

    def provide(self, spec: Spec) -> AbstractContextManager[Provision | None]:
        """Start a broker where the run needs one of its own."""
        if spec.transport.host is not None:
            return nullcontext()
        return own_broker([_name(slot) for slot in (ROLES, *range(spec.run.nodes))])

    def local(self, process: LocalProcess) -> LocalNetworks:
        from p2pdp.transports.mqtt.transport import MqttNetwork

        nodes = process.spec.run.nodes
        own = None if process.provided is None else OwnBroker(**process.provided)
        settings = settings_of(process.spec, process.run_id, own)

        def network(slot: int) -> MqttNetwork:
            calls, strangers = _limits(nodes) if slot == ROLES else (CONNECTIONS_MAX, STRANGERS_MAX)
            return MqttNetwork(settings(_name(slot)), random_bytes, calls_max=calls, strangers_max=strangers)

        return LocalNetworks(network, lambda slot: ROLES_STATION if slot == ROLES else user_station(slot))

    def check_listening(self, spec: Spec, listening: Listening) -> None:
        if listening.address is not None and is_wildcard(split_option("--address", listening.address).host):
            raise UsageError(
                f"--address {listening.address}: is not reachable from other machines; name the host where they reach "
                "this one"
            )
        if listening.listen is not None:
            raise UsageError("--listen: through a broker nobody listens; leave it out")
        _roles_settings(spec, b"")

    def listening_again(self, listen: str, address: str) -> Listening:
        there = read_broker_address(address)
        return Listening(None, join_address(there.host, there.port))

    @contextmanager
    def roles_endpoint(
        self, spec: Spec, run_id: bytes, listening: Listening, before: str | None, say: Say
    ) -> Iterator[RolesEndpoint]:
        from p2pdp.transports.mqtt.transport import MqttNetwork

        settings = _roles_settings(spec, run_id)
        broker, station = settings.broker, own_station(settings.name)
        host, port = (broker.host, 0) if listening.address is None else split_option("--address", listening.address)
        address = BrokerAddress(host, port or broker.port, broker.tls is not None, settings.run, station).to_text()
        network = MqttNetwork(settings, random_bytes, say, *_limits(spec.run.nodes))
        yield RolesEndpoint(network, address, str(broker), f"listening on the broker at {broker}")

    def check_bootstrap(self, address: str) -> None:
        read_broker_address(address)

    def check_node(self, given: Collection[str]) -> None:
        for key in ("listen", "address"):
            if key in given:
                raise UsageError(
                    f"[node] {key}: the token names a broker, and through one nobody listens; leave it out."
                )

    @contextmanager
    def node_endpoint(self, settings: NodeSettings, say: Say) -> Iterator[NodeEndpoint]:
        from p2pdp.transports.mqtt.transport import MqttNetwork

        part, there = settings.part, read_broker_address(settings.bootstrap)
        station = user_station(settings.token) if part.user is None else own_station(part.user)
        try:
            broker = broker_of(part, part.host or there.host, part.port or there.port, tls=there.tls)
            own = _machine_settings(part, broker, there.run, station.name)
        except UsageError as error:
            raise UsageError(f"{settings.source}: {error}") from None
        yield NodeEndpoint(MqttNetwork(own, random_bytes, say), there.station, announced(station, broker))


KIND: Final = Mqtt()


def settings_of(spec: Spec, run_id: bytes, own: OwnBroker | None) -> Callable[[str], StationSettings]:
    """Return how the station of each name comes to the broker of a local run."""
    run = run_id.hex() or "run"
    if own is not None:
        mine = Broker(LOOPBACK, own.port, version_5=own.version_5)
        return lambda name: StationSettings(mine, Login(name, name, own.passwords[name]), run, name)
    part = spec.transport
    assert part.host is not None
    broker, passwords, user = broker_of(part, part.host, part.port), passwords_of(part), part.user

    def settings(name: str) -> StationSettings:
        if user is not None:
            return StationSettings(broker, Login(f"{run}-{name}", user, passwords.get(user)), run, name)
        if not passwords:
            return StationSettings(broker, Login(f"{run}-{name}"), run, name)
        if name not in passwords:
            raise UsageError(f"[transport] password_file: has no line for {name}; or name one user for all")
        return StationSettings(broker, Login(name, name, passwords[name]), run, name)

    return settings


def _name(slot: int) -> str:
    return (ROLES_STATION if slot == ROLES else user_station(slot)).name


def _limits(users: int) -> tuple[int, int]:
    """Return how many calls bootstrap and curator each may have, and how many more with strangers."""
    return max(CONNECTIONS_MAX, users), users + STRANGERS_MAX


def _roles_settings(spec: Spec, run_id: bytes) -> StationSettings:
    part = spec.transport
    if part.host is None:
        raise UsageError("[transport] host: missing; name the broker that all nodes can reach")
    station = ROLES_STATION if part.user is None else own_station(part.user)
    return _machine_settings(part, broker_of(part, part.host, part.port), run_id.hex() or "run", station.name)


def _machine_settings(part: TransportPart, broker: Broker, run: str, name: str) -> StationSettings:
    """Return how a peer on a machine of its own comes to a broker."""
    passwords = passwords_of(part)
    if passwords and name not in passwords:
        raise UsageError(f"[transport] password_file: has no line for {name}; name the user whose password it holds")
    if part.user is None and not passwords:
        return StationSettings(broker, Login(f"{run}-{name}"), run, name)
    return StationSettings(broker, Login(name, name, passwords.get(name)), run, name)
