"""Run folders and exported files: their only reader and writer.

    spec.toml  roster.json  result.json  audit.json  report.html  participants.{json,html}
    curator/{view,private}.ledger     curator/bootstrap/{view,private}.ledger
    curator/skeletons/0000.skeleton   (handed in by nodes elsewhere; 0000.sealed where the spec names an auditor's key)
    nodes/0000/{view,private}.ledger
    nodes/0000/wire.jsonl             (with --trace-wire, and beside the other ledgers too)

Ledgers are written with mode 0600: they are as secret as the data. So are result, audit and report, which are for the
launcher or the auditor: they tell results without noise, or routes. Participants' files are for everybody. An exported
file holds spec, roster and skeletons and no value; `read_evidence` takes a folder or such a file alike.
"""

from __future__ import annotations

import errno
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final, TextIO

from p2pdp.core.errors import NotReady, P2pdpError, UsageError, VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer, peer_name
from p2pdp.core.spec import Spec
from p2pdp.crypto.identity import RunKey
from p2pdp.crypto.roster import Roster, RosterError
from p2pdp.files.json_text import json_pieces
from p2pdp.files.ledgers import cut_torn_tail, ledger_at
from p2pdp.files.reading import in_folder, read_text, unpacked
from p2pdp.files.skeletons import check_key, read_skeleton
from p2pdp.files.spec import parse_spec, spec_digest
from p2pdp.ledger import records
from p2pdp.ledger.journal import PRIVATE, VIEW
from p2pdp.ledger.stored import Ledger, skeleton_of
from p2pdp.replay.evidence import Evidence

_MAGIC: Final = b"p2pdp export 01\n"
SPEC_FILE: Final = "spec.toml"
ROSTER_FILE: Final = "roster.json"
RESULT_FILE: Final = "result.json"
AUDIT_FILE: Final = "audit.json"
REPORT_FILE: Final = "report.html"
PARTICIPANTS_FILE: Final = "participants.json"
PARTICIPANTS_PAGE: Final = "participants.html"
WIRE_FILE: Final = "wire.jsonl"
_CURATOR_FOLDER: Final = "curator"

# With these the place is right and the world is not ready; with all others somebody named a wrong place.
_DISK_FAULTS: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
)


def disk_error(place: str | Path, error: OSError) -> P2pdpError:
    """Return what to raise where a file or folder could not be written."""
    kind = NotReady if error.errno in _DISK_FAULTS else UsageError
    return kind(f"{place}: {error.strerror}")


def peer_folder(folder: Path, peer: Peer) -> Path:
    if peer == CURATOR:
        return folder / _CURATOR_FOLDER
    if peer == BOOTSTRAP:
        return folder / _CURATOR_FOLDER / "bootstrap"
    return folder / "nodes" / f"{peer:04d}"


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for its owner only; one that is there stays as it is."""
    if folder.is_dir():
        return
    if not folder.parent.exists():
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)  # raises where a file is in the way


def make_folder(folder: Path) -> Path:
    """Make an empty folder for a run, for its owner only, and leave one that holds something as it is."""
    try:
        make_private(folder)
        empty = not any(folder.iterdir())
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"--out {folder}: is not a folder") from None
    except OSError as error:
        raise disk_error(f"--out {folder}", error) from None
    if not empty:
        raise UsageError(f"--out {folder}: the folder is not empty; name another")
    return folder


def check_new_file(file: Path, option: str) -> None:
    """Refuse before long work what could not be written after it."""
    if file.is_dir():
        raise UsageError(f"{option} {file}: is a folder, and a file is needed")
    if not file.parent.is_dir():
        raise UsageError(f"{option} {file}: there is no folder {file.parent}")


def write_ledgers(folder: Path, peer: Peer, view: bytes, private: bytes, wire: bytes | None = None) -> None:
    place = peer_folder(folder, peer)
    try:
        make_private(place)
    except OSError as error:
        raise disk_error(place, error) from None
    for name, data in ((VIEW, view), (PRIVATE, private)):
        if data:
            _write_secret(place / f"{name}.ledger", data)
    if wire is not None:
        _write_secret(place / WIRE_FILE, wire)


def _write_secret(path: Path, data: bytes) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except OSError as error:
        raise disk_error(path, error) from None


def write_json(path: Path, document: Mapping[str, Any], *, secret: bool = False) -> None:
    write_pieces(path, (piece.encode() for piece in chain(json_pieces(document), "\n")), secret=secret)


def drop_file(path: Path) -> None:
    """Remove a file that no longer holds, if it is there."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise disk_error(path, error) from None


def write_into_folder(place: Path, name: str, document: Mapping[str, Any]) -> bool:
    """Write a secret document if the place is a folder, and return whether it is; leave exported files alone."""
    if not place.is_dir():
        return False
    write_json(place / name, document, secret=True)
    return True


def write_text(path: Path, text: str, *, secret: bool = False) -> None:
    """Replace the file as `write_bytes` does."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{path}: a path in it is not UTF-8") from None
    write_bytes(path, data, secret=secret)


def write_bytes(path: Path, data: bytes, *, secret: bool = False) -> None:
    """Replace the file as `write_pieces` does."""
    write_pieces(path, [data], secret=secret)


def write_pieces(path: Path, pieces: Iterable[bytes], *, secret: bool = False) -> None:
    """Replace the file as a whole: a reader sees the old bytes or the new ones. A `secret` one is its owner's only."""
    part = path.with_name(f"{path.name}.part")
    try:
        if secret:
            part.unlink(missing_ok=True)
            part.touch(0o600)
        with part.open("wb") as file:
            file.writelines(pieces)
        part.replace(path)
    except OSError as error:
        raise disk_error(path, error) from None


def _secret(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write an npz file that loads without pickle; what it holds is for its owner only."""
    import numpy as np

    try:
        with open(path, "wb", opener=_secret) as file:
            np.savez(file, allow_pickle=False, **arrays)
    except OSError as error:
        raise disk_error(path, error) from None


def to_json(document: Mapping[str, Any]) -> str:
    """Encode JSON in the one form that p2pdp writes (`json_text.py`)."""
    return "".join(json_pieces(document))


def read_json(path: Path, load: Callable[[TextIO], Any] = json.load) -> dict[str, Any]:
    try:
        with path.open(encoding="utf-8") as file:
            document = load(file)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise VerificationFailed(f"{path}: is not JSON") from None
    if not isinstance(document, dict):
        raise VerificationFailed(f"{path}: is not a JSON object")
    return document


def holds(folder: Path, name: str) -> bool:
    """Return whether a folder holds a file of this name."""
    return in_folder(folder, name).is_file()


def read_document(folder: Path, name: str) -> dict[str, Any]:
    """Read a JSON document of a folder, and nothing outside of it."""
    return read_json(in_folder(folder, name))


# Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """The options for reading a folder, and what the caller has read of it already."""

    key: RunKey | None
    sealed_too: bool
    cut_torn: bool
    spec: Spec | None
    roster: Roster | None


def read_evidence(
    place: Path,
    key: RunKey | None = None,
    *,
    sealed_too: bool = True,
    cut_torn: bool = False,
    spec: Spec | None = None,
    roster: Roster | None = None,
) -> Evidence:
    """Read the evidence in a run's folder, a node's folder or an exported file.

    `key` opens skeletons that are sealed to the auditor. Without it these are refused, or left out if not `sealed_too`.
    With `cut_torn`, what a process that never came back has torn is cut off its ledgers, in the files too. `spec` and
    `roster` are those of this folder, where the caller has read them.
    """
    if place.is_dir():
        reading = _Reading(key=key, sealed_too=sealed_too, cut_torn=cut_torn, spec=spec, roster=roster)
        return _read_folder(place, reading)
    if place.is_file():
        return _read_export(place, key)
    raise UsageError(f"{place}: does not exist, or is neither a file nor a folder")


def _read_folder(folder: Path, reading: _Reading) -> Evidence:
    for name in (SPEC_FILE, ROSTER_FILE):
        if not in_folder(folder, name).is_file():
            why = "a run of simulate --fast leaves no ledgers" if (folder / RESULT_FILE).is_file() else ""
            raise UsageError(f"{folder}: is not the folder of a run with ledgers; it lacks {name}{why and f' ({why})'}")
    try:
        roster = reading.roster or Roster.from_json(read_json(folder / ROSTER_FILE))
    except RosterError as error:
        raise VerificationFailed(f"{folder / ROSTER_FILE}: {error}") from None
    spec = reading.spec or _parsed(_spec_text(folder))
    check_key(spec, reading.key)
    views: dict[Peer, Ledger] = {}
    private: dict[Peer, Ledger] = {}
    for peer in (BOOTSTRAP, CURATOR, *_users(folder, roster.n)):
        _take(views, peer, folder, VIEW, cut_torn=reading.cut_torn)
        if peer not in views and (skeleton := _skeleton_of(folder, peer, spec, reading)):
            views[peer] = skeleton
        _take(private, peer, folder, PRIVATE, cut_torn=reading.cut_torn)
    return Evidence(spec, spec_digest(spec), roster, views, private, _owner(folder, views, roster))


def _skeleton_of(folder: Path, peer: Peer, spec: Spec, reading: _Reading) -> bytes | None:
    return read_skeleton(folder, peer, spec, reading.key, sealed_too=reading.sealed_too)


def _users(folder: Path, n: int) -> list[Peer]:
    """Return all users of the roster and others with a folder here; `verify` says that the roster lacks these."""
    peers = set(range(n))
    for place in (folder / "nodes").glob("*"):
        if not place.is_dir():
            continue
        if re.fullmatch(r"[0-9]{4,9}", place.name) is None or f"{int(place.name):04d}" != place.name:
            raise VerificationFailed(f"{place}: is not the folder of a node")
        peers.add(int(place.name))
    return sorted(peers)


def _owner(folder: Path, views: Mapping[Peer, Ledger], roster: Roster) -> Peer | None:
    """Return the node whose folder it is, if it is one: no run is written without its curator's folder."""
    alone = len(views) == 1 and roster.n > 1 and not (folder / _CURATOR_FOLDER).exists()
    return max(views) if alone else None


def _spec_text(folder: Path) -> str:
    try:
        return read_text(folder / SPEC_FILE)
    except UsageError as error:
        raise VerificationFailed(str(error)) from None


def _take(ledgers: dict[Peer, Ledger], peer: Peer, folder: Path, name: str, *, cut_torn: bool) -> None:
    place = in_folder(folder, peer_folder(folder, peer).relative_to(folder) / f"{name}.ledger")
    if place.is_file():
        if cut_torn:
            cut_torn_tail(place)
        ledgers[peer] = ledger_at(place)


def _parsed(text: str) -> Spec:
    try:
        return parse_spec(text, None)
    except UsageError as error:
        raise VerificationFailed(f"{SPEC_FILE}: {error}") from None


def export(
    place: Path, file: Path, key: RunKey | None = None, *, check: Callable[[Evidence], None] | None = None
) -> int:
    """Write spec, roster and skeletons to one file, and return the number of skeletons; `check` may refuse them."""
    evidence = read_evidence(place, key)
    check_new_file(file, "--out")
    if check is not None:
        check(evidence)
    text = _spec_text(place) if place.is_dir() else _unpack_export(place)[0]
    packed = packed_export(text, evidence)
    try:
        with open(file, "xb", opener=_secret) as target:
            target.write(packed)
    except FileExistsError:
        raise UsageError(f"--out {file}: exists already; name another") from None
    except OSError as error:
        raise disk_error(f"--out {file}", error) from None
    return len(evidence.views)


def packed_export(text: str, evidence: Evidence) -> bytes:
    """Return what an exported file holds; `text` is that of a spec with the same digest as the evidence's."""
    skeletons = [[peer, _skeleton(peer, ledger)] for peer, ledger in sorted(evidence.views.items())]
    content = records.pack([text, evidence.roster.to_bytes(), skeletons, evidence.own])
    return _MAGIC + zlib.compress(content, 6)


def _skeleton(peer: Peer, ledger: Ledger) -> bytes:
    try:
        return skeleton_of(ledger)
    except records.LedgerError as error:
        raise VerificationFailed(f"the ledger of {peer_name(peer)}: {error}") from None


def _unpack_export(file: Path) -> tuple[str, bytes, dict[Peer, bytes], Peer | None]:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None
    if not data.startswith(_MAGIC):
        raise UsageError(f"{file}: is neither the folder of a run nor an exported file")
    damaged = VerificationFailed(f"{file}: the exported file is damaged")
    try:
        text, roster, pairs, own = records.unpack(unpacked(data[len(_MAGIC) :]))
        skeletons = dict(pairs)
    except (records.LedgerError, zlib.error, ValueError, TypeError):
        raise damaged from None
    if not (isinstance(text, str) and isinstance(roster, bytes) and len(skeletons) == len(pairs)):
        raise damaged
    if own is not None and not (type(own) is int and own in skeletons):
        raise damaged
    if not all(type(peer) is int and isinstance(skeleton, bytes) for peer, skeleton in skeletons.items()):
        raise damaged
    return text, roster, skeletons, own


def _read_export(file: Path, key: RunKey | None) -> Evidence:
    text, packed, skeletons, own = _unpack_export(file)
    try:
        roster = Roster.from_bytes(packed)
    except RosterError as error:
        raise VerificationFailed(f"{file}: {error}") from None
    spec = _parsed(text)
    check_key(spec, key)
    return Evidence(spec, spec_digest(spec), roster, skeletons, own=own)
