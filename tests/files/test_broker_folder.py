from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509

from p2pdp.core.errors import UsageError
from p2pdp.files.broker_folder import BrokerWishes, write_broker_folder
from tests.support.mosquitto import Mosquitto, free_port

NOW = datetime(2026, 1, 2, tzinfo=UTC)
WISHES = BrokerWishes(["broker.example", "127.0.0.1"], ["bootstrap", "node-0000"], 8883)


def modes(place: Path) -> dict[str, int]:
    return {str(path.relative_to(place)): path.stat().st_mode & 0o777 for path in place.rglob("*") if path.is_file()}


def test_secrets_are_their_owners_and_each_user_has_a_folder(tmp_path: Path) -> None:
    out = tmp_path / "tls"
    write_broker_folder(out, WISHES, NOW)
    found = modes(out)
    secret = {name for name, mode in found.items() if mode == 0o600}
    assert secret == {
        "ca.key", "passwords", "broker/server.key", "broker/passwords", "broker/acl",
        "users/bootstrap/password", "users/node-0000/password",
    }  # fmt: skip
    assert set(found) - secret == {
        "ca.pem", "broker/ca.pem", "broker/server.pem", "broker/mosquitto.conf",
        "users/bootstrap/ca.pem", "users/node-0000/ca.pem",
    }  # fmt: skip
    own = dict(line.split(":") for line in (out / "passwords").read_text().splitlines())
    assert {user: (out / "users" / user / "password").read_text().strip() for user in own} == own
    assert not any(password in (out / "broker" / "passwords").read_text() for password in own.values())
    settings = (out / "broker" / "mosquitto.conf").read_text()
    assert f"keyfile {out}/broker/server.key\n" in settings
    assert (out / "broker" / "data").is_dir()


def test_users_with_certificates_have_no_passwords(tmp_path: Path) -> None:
    write_broker_folder(tmp_path / "tls", replace(WISHES, certificates=True), NOW)
    found = modes(tmp_path / "tls")
    assert not any("password" in name for name in found)
    assert found["users/node-0000/client.key"] == 0o600
    mine = x509.load_pem_x509_certificate((tmp_path / "tls/users/node-0000/client.pem").read_bytes())
    assert mine.subject.rfc4514_string() == "CN=node-0000"
    settings = (tmp_path / "tls" / "broker" / "mosquitto.conf").read_text()
    assert "require_certificate true\nuse_identity_as_username true\n" in settings


def test_a_broker_starts_with_nobody_to_come_and_with_a_name_longer_than_a_common_name(tmp_path: Path) -> None:
    wishes = BrokerWishes([f"{'a' * 63}.example"], [], free_port())
    write_broker_folder(tmp_path / "tls", wishes, NOW)
    config = tmp_path / "tls" / "broker" / "mosquitto.conf"
    assert (tmp_path / "tls" / "broker" / "passwords").read_bytes() == b""
    if os.geteuid() == 0:
        config.write_text(f"{config.read_text()}user root\n")
    with Mosquitto(config.parent, config, wishes.port):
        assert not (tmp_path / "tls" / "passwords").exists()


def test_a_broker_elsewhere_finds_its_files_there(tmp_path: Path) -> None:
    write_broker_folder(tmp_path / "tls", replace(WISHES, place="/mosquitto/config"), NOW)
    settings = (tmp_path / "tls" / "broker" / "mosquitto.conf").read_text()
    assert "certfile /mosquitto/config/server.pem\n" in settings
    assert "persistence_location /mosquitto/data/\n" in settings
    assert str(tmp_path) not in settings


@pytest.mark.parametrize(
    ("wishes", "says"),
    [
        (replace(WISHES, users=["a/b"]), "--user a/b"),
        (replace(WISHES, users=[".."]), r"--user \.\."),
        (replace(WISHES, users=["a", "a"]), "twice"),
        (replace(WISHES, names=["broker:8883"]), "--name broker:8883"),
        (replace(WISHES, names=["*"]), "--name"),
        (replace(WISHES, names=[""]), "--name"),
        (replace(WISHES, names=["a" * 64]), "up to 63 letters"),
        (replace(WISHES, names=["a" * 60 + ".b" * 100]), "--name"),
    ],
)
def test_names_that_cannot_be_are_refused_before_anything_is_written(
    tmp_path: Path, wishes: BrokerWishes, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        write_broker_folder(tmp_path / "tls", wishes, NOW)
    assert not (tmp_path / "tls").exists()


def test_what_is_there_is_never_overwritten(tmp_path: Path) -> None:
    write_broker_folder(tmp_path / "tls", WISHES, NOW)
    before = (tmp_path / "tls" / "ca.key").read_bytes()
    with pytest.raises(UsageError, match="not empty"):
        write_broker_folder(tmp_path / "tls", WISHES, NOW)
    assert (tmp_path / "tls" / "ca.key").read_bytes() == before
