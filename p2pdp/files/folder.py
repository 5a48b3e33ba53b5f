"""Run folders and exported files: their only reader and writer.

    spec.toml  roster.json  result.json  audit.json
    curator/{view,private}.ledger     curator/bootstrap/{view,private}.ledger
    curator/skeletons/0000.skeleton   (handed in by nodes elsewhere)
    nodes/0000/{view,private}.ledger

Ledgers are written with mode 0600: they are as secret as the data. An exported file holds spec, roster and
skeletons and no value; `read_evidence` takes a folder or such a file alike.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from p2pdp.core.errors import NotReady, UsageError, VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.messages import SKELETON
from p2pdp.crypto.roster import Roster, RosterError
from p2pdp.files.spec import parse_spec, spec_digest
from p2pdp.ledger import records
from p2pdp.ledger.evidence import Evidence
from p2pdp.ledger.journal import PRIVATE, VIEW
from p2pdp.ledger.messages import public_message, whole_message
from p2pdp.ledger.records import RECEIVED

_MAGIC: Final = b"p2pdp export 01\n"
SPEC_FILE: Final = "spec.toml"
ROSTER_FILE: Final = "roster.json"
RESULT_FILE: Final = "result.json"
AUDIT_FILE: Final = "audit.json"


def peer_folder(folder: Path, peer: Peer) -> Path:
    if peer == CURATOR:
        return folder / "curator"
    if peer == BOOTSTRAP:
        return folder / "curator" / "bootstrap"
    return folder / "nodes" / f"{peer:04d}"


def make_folder(folder: Path) -> Path:
    """Makes an empty folder for a run; one that holds something is not touched."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UsageError(f"--out {folder}: the folder is not empty")
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"--out {folder}: is not a folder") from None
    except OSError as error:
        raise NotReady(f"--out {folder}: {error.strerror}") from None
    return folder


def write_ledgers(folder: Path, peer: Peer, view: bytes, private: bytes) -> None:
    place = peer_folder(folder, peer)
    place.mkdir(parents=True, exist_ok=True)
    for name, data in ((VIEW, view), (PRIVATE, private)):
        if data:
            _write_secret(place / f"{name}.ledger", data)


def _write_secret(path: Path, data: bytes) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except OSError as error:
        raise NotReady(f"{path}: {error.strerror}") from None


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    write_text(path, to_json(document) + "\n")


def write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise NotReady(f"{path}: {error.strerror}") from None


def to_json(document: Mapping[str, Any]) -> str:
    """The one form in which p2pdp writes JSON: strict, so infinities must have become "inf" before."""
    return json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False)


def read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise VerificationFailed(f"{path}: is not JSON") from None
    if not isinstance(document, dict):
        raise VerificationFailed(f"{path}: is not a JSON object")
    return document


# Evidence


def read_evidence(place: Path) -> Evidence:
    """The evidence in a run's folder, a node's folder or an exported file."""
    if place.is_dir():
        return _read_folder(place)
    if place.is_file():
        return _read_export(place)
    raise UsageError(f"{place}: does not exist")


def _read_folder(folder: Path) -> Evidence:
    if not (folder / ROSTER_FILE).is_file() or not (folder / SPEC_FILE).is_file():
        raise UsageError(f"{folder}: is not the folder of a run; it lacks {SPEC_FILE} or {ROSTER_FILE}")
    try:
        roster = Roster.from_json(read_json(folder / ROSTER_FILE))
    except RosterError as error:
        raise VerificationFailed(f"{folder / ROSTER_FILE}: {error}") from None
    text = (folder / SPEC_FILE).read_text(encoding="utf-8")
    views: dict[Peer, bytes] = {}
    private: dict[Peer, bytes] = {}
    for peer in (BOOTSTRAP, CURATOR, *range(roster.n)):
        place = peer_folder(folder, peer)
        _take(views, peer, place / f"{VIEW}.ledger", folder / "curator" / "skeletons" / f"{peer:04d}.skeleton")
        _take(private, peer, place / f"{PRIVATE}.ledger")
    for place in sorted((folder / "nodes").glob("*")):
        if not place.name.isdigit() or int(place.name) >= roster.n:
            raise VerificationFailed(f"{place}: the roster knows no such node")
    return _evidence(text, roster, views, private)


def _take(found: dict[Peer, bytes], peer: Peer, *places: Path) -> None:
    for place in places:
        if place.is_file():
            try:
                found[peer] = place.read_bytes()
            except OSError as error:
                raise UsageError(f"{place}: {error.strerror}") from None
            return


def _evidence(text: str, roster: Roster, views: dict[Peer, bytes], private: dict[Peer, bytes]) -> Evidence:
    try:
        spec = parse_spec(text, None)
    except UsageError as error:
        raise VerificationFailed(f"{SPEC_FILE}: {error}") from None
    users = [peer for peer in views if peer >= 0]
    alone = len(users) == 1 and CURATOR not in views and BOOTSTRAP not in views
    return Evidence(spec, spec_digest(spec), roster, views, private, users[0] if alone and roster.n > 1 else None)


def export(place: Path, file: Path) -> int:
    """Writes spec, roster and skeletons to one file; gives the number of skeletons."""
    evidence = read_evidence(place)
    text = (place / SPEC_FILE).read_text(encoding="utf-8") if place.is_dir() else _unpack_export(place)[0]
    skeletons = [[peer, _skeleton(peer, data)] for peer, data in sorted(evidence.views.items())]
    content = records.pack([text, evidence.roster.to_bytes(), skeletons])
    if file.exists():
        raise UsageError(f"--out {file}: exists already")
    try:
        file.write_bytes(_MAGIC + zlib.compress(content, 6))
    except OSError as error:
        raise NotReady(f"--out {file}: {error.strerror}") from None
    return len(skeletons)


def _skeleton(peer: Peer, data: bytes) -> bytes:
    try:
        return records.to_skeleton(data)
    except records.LedgerError as error:
        raise VerificationFailed(f"the ledger of {peer}: {error}") from None


def _unpack_export(file: Path) -> tuple[str, bytes, list[tuple[int, bytes]]]:
    data = file.read_bytes()
    if not data.startswith(_MAGIC):
        raise UsageError(f"{file}: is neither the folder of a run nor an exported file")
    try:
        text, roster, skeletons = records.unpack(zlib.decompress(data[len(_MAGIC) :]))
        pairs = [(int(peer), bytes(skeleton)) for peer, skeleton in skeletons]
    except (zlib.error, ValueError, TypeError):
        raise VerificationFailed(f"{file}: the exported file is damaged") from None
    return str(text), bytes(roster), pairs


def _read_export(file: Path) -> Evidence:
    text, packed, skeletons = _unpack_export(file)
    try:
        roster = Roster.from_bytes(packed)
    except RosterError as error:
        raise VerificationFailed(f"{file}: {error}") from None
    return _evidence(text, roster, dict(skeletons), {})


def handed_in_skeletons(curator_view: bytes) -> dict[Peer, bytes]:
    """The skeletons that nodes handed in, put together from the curator's ledger."""
    pieces: dict[Peer, bytearray] = {}
    for record in records.read(curator_view).records:
        if record.kind == RECEIVED and public_message(record).type == SKELETON:
            offset = public_message(record).fields[0]
            skeleton = pieces.setdefault(record.body[1], bytearray())
            skeleton[offset:] = whole_message(record).value or b""
    return {peer: bytes(skeleton) for peer, skeleton in pieces.items()}
