"""Files with secrets: key files of identities and auditors, and the folders that `p2pdp keygen --tls` writes.

An identity or an auditor's key has two files, the secret half (mode 0600) and the public half. `keygen --tls` leaves
all that a broker needs, and a folder to be given to each user:

    ca.pem, ca.key                          the private authority; its key signs further certificates, and stays here
    broker/server.pem, server.key, ca.pem   what the broker shows, and what it takes clients by
    broker/mosquitto.conf, acl, passwords   a Mosquitto that is safe to use (passwords, if users have them, are hashed)
    users/NAME/ca.pem                       what a user verifies the broker by
    users/NAME/password                     or client.pem and client.key
    passwords                               of all users, for a run on one machine

Keys and passwords are readable by their owner only, and existing files are never overwritten. `make_secret_file` makes
a file for others to fill that only its owner can read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path, PurePath, PurePosixPath
from typing import Final

from p2pdp.core.addresses import is_station
from p2pdp.core.errors import UsageError
from p2pdp.crypto.certificates import Authority, Pair
from p2pdp.crypto.identity import KEY_BYTES, Identity, RunKey
from p2pdp.files.folder import disk_error, make_folder, make_private
from p2pdp.transports.mqtt.broker import ACCESS_LIST, fresh_password, mosquitto_settings, password_lines

SECRET_FILE: Final = "identity.key"
PUBLIC_FILE: Final = "identity.pub"
AUDITOR_SECRET_FILE: Final = "auditor.key"
AUDITOR_PUBLIC_FILE: Final = "auditor.pub"


def write_identity(folder: Path, seed: bytes) -> str:
    """Make both files of an identity and return its public half in hexadecimal."""
    identity = Identity(seed)
    halves = ((SECRET_FILE, 0o600, identity.to_bytes()), (PUBLIC_FILE, 0o644, identity.public))
    _write_halves(folder, halves, "an identity")
    return identity.public.hex()


def write_auditor_key(folder: Path, secret: bytes) -> str:
    """Make both files of an auditor's key and return its public half in hexadecimal."""
    key = RunKey(secret)
    halves = ((AUDITOR_SECRET_FILE, 0o600, key.to_bytes()), (AUDITOR_PUBLIC_FILE, 0o644, key.public))
    _write_halves(folder, halves, "an auditor's key")
    return key.public.hex()


def _write_halves(folder: Path, halves: Sequence[tuple[str, int, bytes]], what: str) -> None:
    """Write the files of a key; one that exists already, or half of one, is never overwritten."""
    written: list[Path] = []
    try:
        make_private(folder)
        for name, mode, key in halves:
            descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            written.append(folder / name)
            with os.fdopen(descriptor, "w") as file:
                file.write(key.hex() + "\n")
    except OSError as error:
        for path in written:
            path.unlink()
        if isinstance(error, FileExistsError):
            raise UsageError(f"--out {folder}: holds {what} already, or is not a folder") from None
        raise disk_error(f"--out {folder}", error) from None


def read_identity(path: Path) -> Identity:
    return Identity(_read_secret(path, "an identity key made by p2pdp keygen"))


def read_auditor_key(path: Path) -> RunKey:
    return RunKey(_read_secret(path, "an auditor's key made by p2pdp keygen --auditor"))


def _read_secret(path: Path, what: str) -> bytes:
    try:
        text = path.read_text().strip()
        mode = path.stat().st_mode
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        text, mode = "", 0
    try:
        seed = bytes.fromhex(text)
    except ValueError:
        seed = b""
    if len(seed) != KEY_BYTES:
        raise UsageError(f"{path}: is not {what}")
    if mode & 0o077:
        raise UsageError(f"{path}: others may read this key; run chmod 600 on it")
    return seed


OPEN: Final = 0o644
SECRET: Final = 0o600
_HOST: Final = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*")


@dataclass(frozen=True)
class BrokerWishes:
    """The names, place and users of a broker; `names` are those by which it is called.

    `place` is where it will find its files, with a folder `data` beside it; None for where they are written.
    Users come with passwords, or with `certificates`.
    """

    names: Sequence[str]
    users: Sequence[str]
    port: int
    certificates: bool = False
    place: str | None = None


def write_broker_folder(out: Path, wishes: BrokerWishes, now: datetime) -> None:
    _check(wishes)
    make_folder(out)
    authority = Authority(now)
    place = (out / "broker").absolute() if wishes.place is None else PurePosixPath(wishes.place)
    data = place / "data" if wishes.place is None else place.parent / "data"
    server = authority.server(wishes.names, now)
    passwords = {} if wishes.certificates else {user: fresh_password() for user in wishes.users}
    try:
        _write_pair(out, "ca", authority.pair)
        _write_pair(out / "broker", "server", server)
        _write(out / "broker" / "ca.pem", authority.pair.certificate, OPEN)
        _write(out / "broker" / "acl", ACCESS_LIST.encode(), SECRET)  # Mosquitto warns where others may read it
        _write(out / "broker" / "mosquitto.conf", _settings(wishes, place, data).encode(), OPEN)
        if wishes.place is None:
            make_private(out / "broker" / "data")
        if not wishes.certificates:  # the settings name it, also where nobody has one yet
            _write(out / "broker" / "passwords", password_lines(passwords).encode(), SECRET)
        if passwords:
            everybody = "".join(f"{user}:{password}\n" for user, password in passwords.items())
            _write(out / "passwords", everybody.encode(), SECRET)
        for user in wishes.users:
            mine = out / "users" / user
            _write(mine / "ca.pem", authority.pair.certificate, OPEN)
            if wishes.certificates:
                _write_pair(mine, "client", authority.client(user, now))
            else:
                _write(mine / "password", f"{passwords[user]}\n".encode(), SECRET)
    except OSError as error:
        raise disk_error(f"--out {out}", error) from None


def _check(wishes: BrokerWishes) -> None:
    for user in wishes.users:
        if not is_station(user) or user in (".", ".."):
            raise UsageError(f"--user {user}: must be up to 64 letters, digits, or one of . _ @ -")
    if len(set(wishes.users)) != len(wishes.users):
        raise UsageError("--user: must not name anybody twice")
    for name in wishes.names:
        if not (_is_address(name) or _HOST.fullmatch(name)):
            raise UsageError(
                f"--name {name}: must be a host name, with labels of up to 63 letters, or an address, and no port"
            )


def _settings(wishes: BrokerWishes, place: PurePath, data: PurePath) -> str:
    listener = [
        f"listener {wishes.port}",
        f"cafile {place}/ca.pem",
        f"certfile {place}/server.pem",
        f"keyfile {place}/server.key",
        "tls_version tlsv1.2",
    ]
    if wishes.certificates:
        listener += ["require_certificate true", "use_identity_as_username true"]
    return mosquitto_settings(
        "\n".join(listener),
        password_file=None if wishes.certificates else f"{place}/passwords",
        access_file=f"{place}/acl",
        persistence=str(data),
    )


def _write_pair(folder: Path, name: str, pair: Pair) -> None:
    _write(folder / f"{name}.pem", pair.certificate, OPEN)
    _write(folder / f"{name}.key", pair.key, SECRET)


def _write(path: Path, content: bytes, mode: int) -> None:
    make_private(path.parent)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def make_secret_file(path: Path) -> None:
    """Make an empty file with mode 0600, if there is none. If that fails, opening the file gives the reason."""
    with suppress(OSError, ValueError):
        path.touch(0o600)
