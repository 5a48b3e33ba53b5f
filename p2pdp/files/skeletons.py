"""Skeletons that nodes handed in: as the curator's ledger holds them, and in the folder `curator/skeletons`.

    0000.skeleton    readable by whoever has the folder
    0000.sealed      for the auditor whose key the spec names

A folder holds one of the two kinds, the one that the spec asks for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from p2pdp.core.errors import UsageError, VerificationFailed
from p2pdp.core.ids import Peer
from p2pdp.core.messages import SKELETON, SkeletonPiece
from p2pdp.core.spec import Spec
from p2pdp.crypto.identity import RunKey
from p2pdp.crypto.sealed import SealError
from p2pdp.crypto.sealed_skeleton import is_sealed, open_skeleton
from p2pdp.files.reading import in_folder, read_plain
from p2pdp.ledger.records import RECEIVED, Contents, public_message, whole_message

PLAIN: Final = ".skeleton"
SEALED: Final = ".sealed"


def skeletons_folder(run: Path) -> Path:
    return run / "curator" / "skeletons"


def holds_sealed(run: Path) -> bool:
    """Return whether an audit of this folder needs the auditor's key."""
    return any(skeletons_folder(run).glob(f"*{SEALED}"))


def holds_skeletons(run: Path) -> bool:
    """Return whether any user handed in a skeleton, sealed or not."""
    return any(skeletons_folder(run).glob("*"))


def skeleton_name(user: Peer, content: bytes) -> str:
    return f"{user:04d}{SEALED if is_sealed(content) else PLAIN}"


def handed_in_skeletons(curator: Contents) -> dict[Peer, bytes]:
    """Return what nodes handed in, sealed or not, put together from the curator's ledger."""
    pieces: dict[Peer, bytearray] = {}
    for record in curator.records:
        if record.kind == RECEIVED and public_message(record).type == SKELETON:
            offset = SkeletonPiece(*public_message(record).fields).offset
            skeleton = pieces.setdefault(record.body.sender, bytearray())
            skeleton[offset:] = whole_message(record).value or b""
    return {peer: bytes(skeleton) for peer, skeleton in pieces.items()}


def check_key(spec: Spec, key: RunKey | None) -> None:
    """Check that a given key is the one that the spec names."""
    if key is None:
        return
    if spec.audit.key is None:
        raise UsageError("--key: the spec of this run names no auditor's key; leave it out")
    if key.public.hex() != spec.audit.key:
        raise UsageError("--key: is not the key that the spec of this run names in [audit] key")


def read_skeleton(run: Path, user: Peer, spec: Spec, key: RunKey | None, *, sealed_too: bool) -> bytes | None:
    """Read the skeleton of this user in the folder of a run, opened; None where there is none.

    Without a key a sealed one is refused, or left out if not `sealed_too`.
    """
    plain, sealed = (
        in_folder(run, skeletons_folder(run).relative_to(run) / f"{user:04d}{ending}") for ending in (PLAIN, SEALED)
    )
    wrong = sealed if spec.audit.key is None else plain
    if wrong.is_file():
        named = "names no auditor's key" if spec.audit.key is None else "asks for sealed ones ([audit] key)"
        raise VerificationFailed(f"{wrong}: is a skeleton of the wrong kind: the spec of this run {named}")
    if plain.is_file():
        return read_plain(plain)
    if not sealed.is_file() or (key is None and not sealed_too):
        return None
    if key is None:
        raise UsageError(f"{sealed}: is sealed to the auditor; name the key that opens it: --key FILE")
    try:
        return open_skeleton(read_plain(sealed), key)
    except SealError:
        raise VerificationFailed(f"{sealed}: was altered, or never sealed to the auditor's key") from None
