from __future__ import annotations

import errno
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from p2pdp.core.errors import NotReady, UsageError
from p2pdp.crypto.identity import Identity, RunKey
from p2pdp.files.keys import (
    AUDITOR_PUBLIC_FILE,
    AUDITOR_SECRET_FILE,
    PUBLIC_FILE,
    SECRET_FILE,
    BrokerWishes,
    make_secret_file,
    read_auditor_key,
    read_identity,
    write_auditor_key,
    write_broker_folder,
    write_identity,
)
from tests.support.mosquitto import Mosquitto
from tests.support.ports import free_port

SEED = bytes(range(32))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    public = write_identity(tmp_path / "a" / "b", SEED)
    assert public == Identity(SEED).public.hex()
    assert (tmp_path / "a" / "b" / PUBLIC_FILE).read_text() == public + "\n"
    assert read_identity(tmp_path / "a" / "b" / SECRET_FILE).public.hex() == public
    assert (tmp_path / "a" / "b" / SECRET_FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("half", [SECRET_FILE, PUBLIC_FILE])
def test_nothing_is_overwritten_and_no_half_is_left(half: str, tmp_path: Path) -> None:
    (tmp_path / half).write_text("precious")
    with pytest.raises(UsageError, match="holds an identity already"):
        write_identity(tmp_path, SEED)
    assert [path.name for path in tmp_path.iterdir()] == [half]
    assert (tmp_path / half).read_text() == "precious"


def test_a_full_disk_leaves_no_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("p2pdp.files.keys.os.fdopen", full)
    with pytest.raises(NotReady, match="No space left"):
        write_identity(tmp_path, SEED)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match="--out"):
            write_identity(place, SEED)


@pytest.mark.parametrize("content", [b"", b"00", b"g" * 64, b"0" * 63, b"0" * 66, b"\xff" * 64])
def test_what_is_no_key_is_refused_without_being_quoted(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "some.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(UsageError, match="is not an identity key") as caught:
        read_identity(path)
    assert "gggg" not in str(caught.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660])
def test_a_key_that_others_can_read_is_refused(mode: int, tmp_path: Path) -> None:
    write_identity(tmp_path, SEED)
    (tmp_path / SECRET_FILE).chmod(mode)
    with pytest.raises(UsageError, match="chmod 600"):
        read_identity(tmp_path / SECRET_FILE)


def test_a_key_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none"):
        read_identity(tmp_path / "none.key")


def test_an_auditors_key_is_no_identity_and_is_kept_as_one(tmp_path: Path) -> None:
    public = write_auditor_key(tmp_path, SEED)
    assert public == RunKey(SEED).public.hex()
    assert read_auditor_key(tmp_path / AUDITOR_SECRET_FILE).public.hex() == public
    assert (tmp_path / AUDITOR_PUBLIC_FILE).read_text() == public + "\n"
    assert (tmp_path / AUDITOR_SECRET_FILE).stat().st_mode & 0o777 == 0o600
    with pytest.raises(UsageError, match="already"):
        write_auditor_key(tmp_path, SEED)
    with pytest.raises(UsageError, match="--auditor"):
        read_auditor_key(_text(tmp_path / "short", "00"))
    (tmp_path / AUDITOR_SECRET_FILE).chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        read_auditor_key(tmp_path / AUDITOR_SECRET_FILE)


def _text(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


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


def test_a_file_is_made_for_its_owner_and_one_that_is_there_stays(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_text("kept")
    old.chmod(0o640)
    for file in (new, old, tmp_path / "no" / "folder"):
        make_secret_file(file)
    assert (new.read_text(), new.stat().st_mode & 0o777) == ("", 0o600)
    assert (old.read_text(), old.stat().st_mode & 0o777) == ("kept", 0o640)
    assert not (tmp_path / "no").exists()
