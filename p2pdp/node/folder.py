"""The folder of one user's node, whose run has other machines in it.

    node.json                            whose it is: identity, bootstrap's key, number of the join token
    node/{view,private}.ledger, run.key, seat, totals.json, wire.jsonl if it was asked for
    spec.toml                            as bootstrap offered it
    costs.json                           what the run costs its owner, and from which facts that follows (0600)
    own.json                             at the end: what was published, and what only this node's owner may read (0600)
    roster.json, nodes/0003 -> ../node   once there is a seat: the layout of a run, for views, verify and export

One process at a time works in a folder (`locked`).
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from p2pdp.core.errors import NotReady, UsageError, VerificationFailed
from p2pdp.core.ids import Peer
from p2pdp.crypto.roster import Roster, RosterError
from p2pdp.files.folder import (
    ROSTER_FILE,
    SPEC_FILE,
    WIRE_FILE,
    disk_error,
    make_folder,
    make_private,
    peer_folder,
    read_json,
    write_json,
)
from p2pdp.files.reading import read_text
from p2pdp.files.spec import parse_spec, spec_digest
from p2pdp.ledger.journal import PRIVATE, VIEW
from p2pdp.ledger.records import to_skeleton, whole_length
from p2pdp.node.disk import write_durably
from p2pdp.node.shell import TOTALS_FILE
from p2pdp.node.user import SEAT_FILE

NODE_FILE: Final = "node.json"
TOLD_FILE: Final = "own.json"
COSTS_FILE: Final = "costs.json"
_WORK: Final = "node"


def _damaged(path: Path, why: str) -> VerificationFailed:
    return VerificationFailed(
        f"{path}: was changed since this node wrote it: {why}; put it back as it was, or leave the run without it"
    )


def _check_of(costs: Sequence[Mapping[str, Any]]) -> str:
    return blake2b(json.dumps(list(costs)).encode(), digest_size=16).hexdigest()


def is_node_folder(place: Path) -> bool:
    return (place / NODE_FILE).is_file()


class NodeFolder:
    def __init__(self, path: Path, facts: dict[str, Any]) -> None:
        """Make a folder, or open that of the same node; `facts` identify the node."""
        if not is_node_folder(path):
            make_folder(path)
            write_json(path / NODE_FILE, facts)
        known = read_json(path / NODE_FILE)
        for name, value in facts.items():
            if known.get(name) != value:
                raise UsageError(f"--out {path}: holds a node with another {name}; name another folder")
        self.path = path
        self.work = path / _WORK

    @classmethod
    def known(cls, path: Path) -> NodeFolder:
        """Open the folder of whatever node it is."""
        return cls(path, read_json(path / NODE_FILE))

    @contextmanager
    def locked(self) -> Iterator[None]:
        for place in peer_folder(self.path, 0).parent.glob("*"):
            if place.is_dir() and not place.is_symlink():  # what the node writes would not be what is verified
                raise UsageError(
                    f"{place}: was copied in place of a link to ../{_WORK}; remove it and put the link back "
                    f"(ln -s ../{_WORK} {place}), or copy the folder of the node with its links"
                )
        with (self.path / NODE_FILE).open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise NotReady(f"{self.path}: another process runs this node; wait for its end") from None
            yield

    @property
    def has_seat(self) -> bool:
        return (self.work / SEAT_FILE).is_file()

    @property
    def has_begun(self) -> bool:
        """Return whether the node took its seat and has recorded anything."""
        return (self.path / ROSTER_FILE).is_file() and whole_length(self.view()) > 0

    @property
    def spec_text(self) -> str:
        """Return the spec as it was offered; with a roster, it is the one whose digest the roster holds."""
        path = self.path / SPEC_FILE
        text = read_text(path)
        if (self.path / ROSTER_FILE).is_file():
            try:
                digest = spec_digest(parse_spec(text, None))
            except UsageError as error:
                raise _damaged(path, str(error)) from None
            if digest != self.roster.spec_digest:
                raise _damaged(path, "it is not the spec whose digest the roster holds")
        return text

    def keep_spec(self, text: str) -> None:
        write_durably(self.path / SPEC_FILE, text.encode())

    def take_seat(self, roster: Roster, me: Peer) -> None:
        write_json(self.path / ROSTER_FILE, roster.to_json())
        place = peer_folder(self.path, me)
        try:
            make_private(place.parent)
            if not place.is_symlink():
                place.symlink_to(Path("..", _WORK))
        except OSError as error:
            raise disk_error(place, error) from None

    @property
    def roster(self) -> Roster:
        path = self.path / ROSTER_FILE
        try:
            return Roster.from_json(read_json(path))
        except RosterError as error:
            raise _damaged(path, str(error)) from None

    @property
    def traced(self) -> bool:
        return (self.work / WIRE_FILE).is_file()

    def keep_costs(self, terms: str, costs: Sequence[Mapping[str, Any]]) -> None:
        """Keep costs, which take seconds to compute, with the digest of the facts that they follow from."""
        kept = {"terms": terms, "costs": list(costs), "check": _check_of(costs)}
        write_durably(self.path / COSTS_FILE, json.dumps(kept).encode())

    def kept_costs(self, terms: str) -> list[dict[str, Any]] | None:
        """Return the costs that follow from these facts; None where the folder has none, or has them no more."""
        if not (self.path / COSTS_FILE).is_file():
            return None
        try:
            kept = read_json(self.path / COSTS_FILE)
        except VerificationFailed:
            return None  # they are computed again
        costs = kept.get("costs")
        whole = isinstance(costs, list) and kept.get("check") == _check_of(costs)
        return costs if whole and kept.get("terms") == terms else None

    def keep_told(self, document: Mapping[str, Any]) -> None:
        """Keep the report to the node's owner; it follows from the node's own view, which holds routes."""
        write_json(self.path / TOLD_FILE, document, secret=True)

    def told(self) -> dict[str, Any]:
        """Return the report that was kept; nothing before the end."""
        return read_json(self.path / TOLD_FILE) if (self.path / TOLD_FILE).is_file() else {}

    @property
    def view_file(self) -> Path:
        return self.work / f"{VIEW}.ledger"

    def view(self) -> bytes:
        return self.view_file.read_bytes() if self.view_file.is_file() else b""

    def faults(self) -> dict[str, int]:
        path = self.work / TOTALS_FILE
        faults = read_json(path).get("faults") if path.is_file() else {}
        if not isinstance(faults, dict):
            raise _damaged(path, "it holds no counts of faults")
        return faults

    def forget_draws(self) -> None:
        """Reduce the private ledger to its skeleton: the chain, and no draw, input or note.

        For a node whose run key is unlinked: nothing is ever run again from it. The inputs stay with their owner
        in the data that they came from.
        """
        path = self.work / f"{PRIVATE}.ledger"
        data = path.read_bytes()
        skeleton = to_skeleton(data) if whole_length(data) else data  # one that was never begun is empty
        if skeleton != data:
            write_durably(path, skeleton)
