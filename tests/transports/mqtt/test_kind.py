from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from p2pdp.core.addresses import Station
from p2pdp.core.errors import UsageError
from p2pdp.core.spec import Spec, TransportPart
from p2pdp.files.spec import parse_spec
from p2pdp.transports.contract import ROLES, Listening, LocalProcess, NodeSettings
from p2pdp.transports.mqtt.broker import OwnBroker
from p2pdp.transports.mqtt.kind import KIND, settings_of
from p2pdp.transports.mqtt.transport import MqttNetwork
from tests.support.local import SPEC
from tests.support.mosquitto import mosquitto

RUN = bytes(range(16))


def spec(more: str = "", transport: str = "mqtt") -> Spec:
    return parse_spec(SPEC.replace("[run]\n", f'[run]\ntransport = "{transport}"\n') + more, Path("/nowhere"))


def secrets(place: Path, text: str) -> str:
    path = place / "passwords"
    path.write_text(text)
    path.chmod(0o600)
    return f'[transport]\nhost = "localhost"\npassword_file = "{path}"\n'


def test_a_broker_of_the_runs_own_knows_each_station() -> None:
    own = OwnBroker(1234, version_5=False, passwords={"node-0001": "secret"})
    place = settings_of(spec(), RUN, own)("node-0001")
    assert (place.broker.port, place.broker.version_5, place.name, place.run) == (1234, False, "node-0001", RUN.hex())
    assert (place.login.client, place.login.user, place.login.password) == ("node-0001", "node-0001", "secret")
    networks = KIND.local(LocalProcess(spec(), RUN, (1,), provided=asdict(own)))
    assert isinstance(networks.network(1), MqttNetwork)
    assert (networks.where(ROLES), networks.where(1)) == (Station("bootstrap"), Station("node-0001"))


def test_at_a_broker_of_somebody_they_come_as_the_spec_says(tmp_path: Path) -> None:
    nobody = settings_of(spec('[transport]\nhost = "localhost"\n'), RUN, None)("node-0000")
    assert (nobody.login.user, nobody.login.client) == (None, f"{RUN.hex()}-node-0000")
    all_as_one = settings_of(spec(secrets(tmp_path, "secret\n") + 'user = "me"\n'), RUN, None)("node-0000")
    assert (all_as_one.login.user, all_as_one.login.password, all_as_one.name) == ("me", "secret", "node-0000")
    assert all_as_one.login.client != "me", "clients of one name push each other out"
    each = settings_of(spec(secrets(tmp_path, "node-0000:a\nbootstrap:b\n")), RUN, None)
    assert (each("node-0000").login.password, each("bootstrap").login.client) == ("a", "bootstrap")
    with pytest.raises(UsageError, match="no line for node-0001"):
        each("node-0001")


def test_what_makes_no_sense_is_refused_beforehand(tmp_path: Path) -> None:
    KIND.check(spec())
    KIND.check(spec('[transport]\nhost = "broker"\n'))
    with pytest.raises(UsageError, match=r"\[transport\] user: .* add host"):
        KIND.check(spec('[transport]\nuser = "me"\n'))
    with pytest.raises(UsageError, match="no line for"):
        KIND.check(spec(secrets(tmp_path, "bootstrap:b\n")))


def test_a_broker_is_started_only_where_none_is_named() -> None:
    with KIND.provide(spec('[transport]\nhost = "broker"\n')) as process:
        assert process is None
    mosquitto()
    with KIND.provide(spec()) as process:
        assert process is not None
        process.check()
        assert set(process.known["passwords"]) == {"bootstrap", "node-0000", "node-0001", "node-0002"}


AT_BROKER = '[transport]\nhost = "localhost"\n'


@pytest.mark.parametrize(
    ("text", "listening", "says"),
    [
        (spec(AT_BROKER), Listening("127.0.0.1:0"), "--listen: through a broker"),
        (spec(), Listening(None), r"\[transport\] host: missing"),
        (spec(AT_BROKER), Listening(None, "0.0.0.0:1"), "--address 0.0.0.0:1"),
        (spec(AT_BROKER), Listening(None, "here"), "--address here: must read"),
        (spec(f'{AT_BROKER}user = "a/b"\n'), Listening(None), "user"),
    ],
)
def test_what_nobody_could_reach_is_refused(text: Spec, listening: Listening, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        KIND.check_listening(text, listening)


def test_bootstrap_is_found_through_a_broker_and_is_there_again() -> None:
    text, named = spec(AT_BROKER), Listening(None, "broker.example:99")
    KIND.check_listening(text, Listening(None))
    with KIND.roles_endpoint(text, RUN, named, None, print) as endpoint:
        assert isinstance(endpoint.network, MqttNetwork)
        assert endpoint.address == f"mqtt://broker.example:99/{RUN.hex()}/bootstrap"
        assert endpoint.description == "listening on the broker at localhost:1883"
    assert KIND.listening_again(endpoint.listen, endpoint.address) == named


def node(bootstrap: str, **part: Any) -> NodeSettings:
    return NodeSettings("node.toml", 3, bootstrap, None, None, TransportPart(**part))


def test_a_node_comes_to_the_broker_that_its_token_names() -> None:
    there = "mqtt://localhost:1883/abc/boot"
    places: list[Any] = []
    for part in ({}, {"user": "alice"}):
        with KIND.node_endpoint(node(there, **part), print) as endpoint:
            assert isinstance(endpoint.network, MqttNetwork)
            assert endpoint.bootstrap == Station("boot")
            mine = endpoint.network._endpoint.settings
            places.append((mine.name, mine.login.user, mine.run, asyncio.run(endpoint.own_address())))  # type: ignore[arg-type]
    assert places == [("node-0003", None, "abc", "node-0003:1883"), ("alice", "alice", "abc", "alice:1883")]
    with KIND.node_endpoint(node(there, host="127.0.0.1", port=7), print) as endpoint:
        assert isinstance(endpoint.network, MqttNetwork)
        assert str(endpoint.network._endpoint.settings.broker) == "127.0.0.1:7"


def test_a_token_that_asks_for_tls_gets_nothing_else() -> None:
    with KIND.node_endpoint(node("mqtts://localhost:8883/abc/boot"), print) as endpoint:
        assert isinstance(endpoint.network, MqttNetwork)
        assert endpoint.network._endpoint.settings.broker.tls is not None


def test_errors_of_a_nodes_section_name_its_file(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("other:secret\n")
    secret.chmod(0o600)
    mine = node("mqtt://localhost:1/r/s", password_file=str(secret))
    with pytest.raises(UsageError, match=r"node\.toml: .* no line for node-0003"), KIND.node_endpoint(mine, print):
        pass
