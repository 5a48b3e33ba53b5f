"""Key files of identities and auditors: the secret half (mode 0600) and the public half."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from p2pdp.core.errors import UsageError
from p2pdp.crypto.identity import KEY_BYTES, Identity, RunKey
from p2pdp.files.folder import disk_error

SECRET_FILE: Final = "identity.key"
PUBLIC_FILE: Final = "identity.pub"
AUDITOR_SECRET_FILE: Final = "auditor.key"
AUDITOR_PUBLIC_FILE: Final = "auditor.pub"


def write_identity(folder: Path, seed: bytes) -> str:
    """Makes both files of an identity and returns its public half in hexadecimal."""
    identity = Identity(seed)
    halves = ((SECRET_FILE, 0o600, identity.to_bytes()), (PUBLIC_FILE, 0o644, identity.public))
    _write_halves(folder, halves, "an identity")
    return identity.public.hex()


def write_auditor_key(folder: Path, secret: bytes) -> str:
    """Makes both files of an auditor's key and returns its public half in hexadecimal."""
    key = RunKey(secret)
    halves = ((AUDITOR_SECRET_FILE, 0o600, key.to_bytes()), (AUDITOR_PUBLIC_FILE, 0o644, key.public))
    _write_halves(folder, halves, "an auditor's key")
    return key.public.hex()


def _write_halves(folder: Path, halves: Sequence[tuple[str, int, bytes]], what: str) -> None:
    """Writes the files of a key; one that exists already, or half of one, is never overwritten."""
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
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
    if mode & 0o077:
        raise UsageError(f"{path}: others may read this key; run chmod 600 on it")
    try:
        seed = bytes.fromhex(text)
    except ValueError:
        seed = b""
    if len(seed) != KEY_BYTES:
        raise UsageError(f"{path}: is not {what}")
    return seed
