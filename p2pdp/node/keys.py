"""Small files of a node: whole or not there at all, for their owner only, and on the disk before they are used."""

from __future__ import annotations

import os
from pathlib import Path

from p2pdp.core.errors import NotReady, UsageError, VerificationFailed
from p2pdp.crypto.entropy import random_bytes
from p2pdp.crypto.identity import KEY_BYTES


def durable_secret(path: Path) -> bytes:
    """A key's 32 secret bytes: those in the file, or fresh ones that are in the file from now on."""
    try:
        if path.exists():
            secret = path.read_bytes()
            if len(secret) != KEY_BYTES:
                raise VerificationFailed(f"{path}: is no key of this node")
            return secret
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotReady(f"{path}: {error.strerror}") from None
    secret = random_bytes(KEY_BYTES)
    write_durably(path, secret)
    return secret


def durable_token(path: Path) -> tuple[str, bool]:
    """A token that people pass on, and whether it is fresh: the text in the file, or one that is in it from now on."""
    try:
        return path.read_text(encoding="utf-8"), False
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise UsageError(f"{path}: there is no folder {path.parent}") from None
        text = random_bytes(KEY_BYTES).hex()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is no text") from None
    write_durably(path, text.encode() + b"\n")
    return text, True


def write_durably(path: Path, data: bytes) -> None:
    """Replaces a small file so that it is there whole, or as it was, even if the power fails."""
    half = path.with_name(path.name + ".half")
    try:
        descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        half.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise NotReady(f"{path}: {error.strerror}") from None


def sync_folder(folder: Path) -> None:
    """Makes the names of new files as durable as what is in them."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
