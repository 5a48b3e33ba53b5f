"""Key files: an identity's secret half (mode 0600) and its public half."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from p2pdp.core.errors import NotReady, UsageError
from p2pdp.crypto.identity import KEY_BYTES, Identity

SECRET_FILE: Final = "identity.key"
PUBLIC_FILE: Final = "identity.pub"


def write_identity(folder: Path, seed: bytes) -> str:
    """Makes both files; an identity that is there already is never overwritten."""
    identity = Identity(seed)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / SECRET_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(identity.to_bytes().hex() + "\n")
        (folder / PUBLIC_FILE).write_text(identity.public.hex() + "\n")
    except FileExistsError:
        raise UsageError(f"--out {folder}: holds an identity already, or is not a folder") from None
    except OSError as error:
        raise NotReady(f"--out {folder}: {error.strerror}") from None
    return identity.public.hex()


def read_identity(path: Path) -> Identity:
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
        raise UsageError(f"{path}: is not an identity key made by p2pdp keygen")
    return Identity(seed)
