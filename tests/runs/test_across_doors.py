from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from p2pdp.cluster.bootstrap_folder import BootstrapFolder
from p2pdp.core.errors import UsageError
from p2pdp.core.spec import Spec
from p2pdp.crypto.tokens import JoinToken
from p2pdp.files.keys import write_identity
from p2pdp.files.node_config import NodeConfig, load_node_config
from p2pdp.files.spec import parse_spec, spec_to_toml
from p2pdp.runs.across_doors import Places, check_places, door_of_node, door_of_roles, places_again
from p2pdp.transports.mqtt import MqttNetwork
from p2pdp.transports.networks import TcpNetwork
from tests.support.local import SPEC

AT_BROKER = '[transport]\nhost = "localhost"\n'


def spec(more: str = "", transport: str = "mqtt") -> Spec:
    return parse_spec(SPEC.replace("[run]\n", f'[run]\ntransport = "{transport}"\n') + more, None)


def silently(_text: str) -> None:
    pass


def folder_of(place: Path, text: Spec) -> BootstrapFolder:
    return BootstrapFolder.open(place / "boot", spec_to_toml(text), 4)


@pytest.mark.parametrize(
    ("text", "places", "says"),
    [
        (spec(AT_BROKER), Places("127.0.0.1:0"), "--listen: through a broker"),
        (spec(), Places(None), r"\[transport\] host: missing"),
        (spec(AT_BROKER), Places(None, "0.0.0.0:1"), "--address 0.0.0.0:1"),
        (spec(AT_BROKER), Places(None, "here"), "--address here: must read"),
        (spec(transport="tcp"), Places(None), "--listen: missing"),
        (spec(transport="tcp"), Places("0.0.0.0:1"), "add --address"),
        (spec(f'{AT_BROKER}user = "a/b"\n'), Places(None), "user"),
    ],
)
def test_what_nobody_could_reach_is_refused(text: Spec, places: Places, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check_places(text, places)


def test_bootstrap_listens_or_is_found_through_a_broker_and_is_there_again(tmp_path: Path) -> None:
    text = spec(AT_BROKER)
    check_places(text, Places(None))
    folder = folder_of(tmp_path, text)
    with door_of_roles(text, folder, Places(None, "broker.example:99"), silently) as door:
        assert isinstance(door.network, MqttNetwork)
        assert door.address == f"mqtt://broker.example:99/{folder.run_id.hex()}/bootstrap"
        assert door.said == "listening on the broker at localhost:1883"
        with pytest.raises(UsageError, match="was never started"):
            places_again(folder)
        folder.write_tokens(door.listen, door.address, bytes(32))
    assert places_again(folder) == Places(None, "broker.example:99")
    with door_of_roles(text, folder, places_again(folder), silently) as again:
        assert again.address == door.address


def test_bootstrap_over_tcp_is_where_it_was(tmp_path: Path) -> None:
    text = spec(transport="tcp")
    folder = folder_of(tmp_path, text)
    with door_of_roles(text, folder, Places("127.0.0.1:0"), silently) as door:
        assert isinstance(door.network, TcpNetwork)
        folder.write_tokens(door.listen, door.address, bytes(32))
    with door_of_roles(text, folder, Places("127.0.0.1:0"), silently) as again:
        assert (again.listen, again.address) == (door.listen, door.address)


def config(place: Path, address: str, node: str = "", more: str = "") -> NodeConfig:
    if not (place / "id").exists():
        write_identity(place / "id", bytes(32))
    token = JoinToken(address, bytes(32), bytes(16), 3).to_text()
    file = place / "node.toml"
    file.write_text(f'[node]\nidentity = "id/identity.key"\ntoken = "{token}"\n{node}[data]\nkind = "uniform"\n{more}')
    return load_node_config(file)


def test_a_node_comes_to_the_broker_that_its_token_names(tmp_path: Path) -> None:
    there = "mqtt://localhost:1883/abc/boot"
    places: list[Any] = []
    for more in ("", '[transport]\nuser = "alice"\n'):
        with door_of_node(config(tmp_path, there, more=more), silently) as door:
            assert isinstance(door.network, MqttNetwork)
            assert door.bootstrap is None
            place = door.network._station.place
            places.append((place.name, place.login.user, place.run, asyncio.run(door.own_address())))  # type: ignore[arg-type]
    assert places == [("node-0003", None, "abc", "node-0003:1883"), ("alice", "alice", "abc", "alice:1883")]
    elsewhere = '[transport]\nhost = "127.0.0.1"\nport = 7\n'
    with door_of_node(config(tmp_path, there, more=elsewhere), silently) as door:
        assert isinstance(door.network, MqttNetwork)
        assert str(door.network._station.place.broker) == "127.0.0.1:7"


def test_a_token_that_asks_for_tls_gets_nothing_else(tmp_path: Path) -> None:
    with door_of_node(config(tmp_path, "mqtts://localhost:8883/abc/boot"), silently) as door:
        assert isinstance(door.network, MqttNetwork)
        assert door.network._station.place.broker.tls is not None


@pytest.mark.parametrize(
    ("address", "node", "more", "says"),
    [
        ("boot:7000", "", "", r"\[node\] listen: missing"),
        ("boot:7000", 'listen = "127.0.0.1:0"\n', AT_BROKER, r"\[transport\]: .* leave it out"),
        ("mqtt://b:1/r/s", 'listen = "127.0.0.1:0"\n', "", r"\[node\] listen: .* leave it out"),
        ("mqtt://b:1/r/s", 'address = "a:1"\n', "", r"\[node\] address: .* leave it out"),
        ("mqtt://b:1/r", "", "", r"\[node\] token: must read mqtts://"),
        ("mqtt://b:1/r/s", "", "[transport]\nusr = 1\n", 'did you mean "user"'),
    ],
)
def test_a_configuration_fits_its_token(tmp_path: Path, address: str, node: str, more: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        config(tmp_path, address, node, more)


def test_errors_of_a_nodes_section_name_its_file(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("other:secret\n")
    secret.chmod(0o600)
    mine = config(tmp_path, "mqtt://localhost:1/r/s", more='[transport]\npassword_file = "password"\n')
    with pytest.raises(UsageError, match=r"node\.toml: .* no line for node-0003"), door_of_node(mine, silently):
        pass
