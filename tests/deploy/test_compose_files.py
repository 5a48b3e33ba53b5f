"""The compose files: every service confined, every secret where it belongs, and both variants alike."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from p2pdp.transports.mqtt.broker import mosquitto_settings
from tests.support.sources import TOP

FILES = ("docker-compose.yml", "deploy/compose.tcp.yml")


def services(file: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((TOP / file).read_text())["services"]
    return found


@pytest.mark.parametrize("file", FILES)
def test_every_service_is_confined(file: str) -> None:
    for name, service in services(file).items():
        assert service["user"] == "10001:10001", name
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["pids_limit"] <= (1024 if name == "bootstrap" else 64), name
        assert "mem_limit" in service, name
        assert service["restart"] == "on-failure:5", name
        assert service["logging"]["options"]["max-size"], name
        assert "privileged" not in service, name
        assert name == "setup" or "healthcheck" in service, name


@pytest.mark.parametrize("file", FILES)
def test_only_the_loopback_has_the_report_and_nodes_have_no_way_out(file: str) -> None:
    networks = yaml.safe_load((TOP / file).read_text())["networks"]
    assert networks["run"] == {"internal": True}
    for name, service in services(file).items():
        if name == "bootstrap":
            assert service["ports"] == ["${P2PDP_PORT:-127.0.0.1:8080}:8080"]
        else:
            assert "ports" not in service
            assert service.get("networks", []) in ([], ["run"])


@pytest.mark.parametrize("file", FILES)
def test_a_volume_is_mounted_where_it_belongs_and_nowhere_else(file: str) -> None:
    mounts = {name: str(service["volumes"]) for name, service in services(file).items()}
    assert mounts["node"] == "['/data']", "one without a name: each container has its own"
    for volume, owners in {
        "curator": {"bootstrap"},
        "logins": {"setup", "bootstrap"},
        "broker": {"setup", "broker"},
    }.items():
        assert {name for name, said in mounts.items() if volume in said} <= owners


def test_both_variants_have_the_same_nodes_and_bootstrap() -> None:
    with_broker, without = map(services, FILES)
    for name in without:
        differ = {key for key in with_broker[name] if with_broker[name][key] != without[name].get(key)}
        assert differ <= {"build", "depends_on", "environment", "volumes"}
    assert set(with_broker) - set(without) == {"setup", "broker"}


def test_the_broker_reads_what_setup_writes() -> None:
    shown = (TOP / "deploy" / "mosquitto" / "mosquitto.conf").read_text()
    place = "/mosquitto/config"
    made = mosquitto_settings(
        "listener 8883", password_file=f"{place}/passwords", access_file=f"{place}/acl", persistence="/mosquitto/data"
    )
    assert set(made.splitlines()) <= set(shown.splitlines())
