from __future__ import annotations

from pathlib import Path

import pytest

from p2pdp.cluster.broker import OwnBroker
from p2pdp.cluster.stations import broker_for, check_stations, networks_of, places_of
from p2pdp.core.errors import UsageError
from p2pdp.core.spec import Spec
from p2pdp.files.spec import parse_spec
from p2pdp.transports.mqtt import MqttNetwork
from tests.support.local import SPEC

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
    place = places_of(spec(), RUN, own)("node-0001")
    assert (place.broker.port, place.broker.version_5, place.name, place.run) == (1234, False, "node-0001", RUN.hex())
    assert (place.login.client, place.login.user, place.login.password) == ("node-0001", "node-0001", "secret")
    network = networks_of(spec(), RUN, own)("node-0001", 10, 10)
    assert isinstance(network, MqttNetwork)
    assert network.address is None


def test_at_a_broker_of_somebody_they_come_as_the_spec_says(tmp_path: Path) -> None:
    nobody = places_of(spec('[transport]\nhost = "localhost"\n'), RUN, None)("node-0000")
    assert (nobody.login.user, nobody.login.client) == (None, f"{RUN.hex()}-node-0000")
    all_as_one = places_of(spec(secrets(tmp_path, "secret\n") + 'user = "me"\n'), RUN, None)("node-0000")
    assert (all_as_one.login.user, all_as_one.login.password, all_as_one.name) == ("me", "secret", "node-0000")
    assert all_as_one.login.client != "me", "clients of one name push each other out"
    each = places_of(spec(secrets(tmp_path, "node-0000:a\nbootstrap:b\n")), RUN, None)
    assert (each("node-0000").login.password, each("bootstrap").login.client) == ("a", "bootstrap")
    with pytest.raises(UsageError, match="no line for node-0001"):
        each("node-0001")


def test_what_makes_no_sense_is_refused_beforehand(tmp_path: Path) -> None:
    check_stations(spec())
    check_stations(spec('[transport]\nhost = "broker"\n'))
    check_stations(spec('[transport]\nca = "/nowhere"\n', "tcp"))
    with pytest.raises(UsageError, match=r"\[transport\] user: .* name its host"):
        check_stations(spec('[transport]\nuser = "me"\n'))
    with pytest.raises(UsageError, match="no line for"):
        check_stations(spec(secrets(tmp_path, "bootstrap:b\n")))


def test_a_broker_is_started_only_where_none_is_named() -> None:
    for text in (spec(transport="tcp"), spec('[transport]\nhost = "broker"\n')):
        with broker_for(text) as process:
            assert process is None
