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
from pathlib import Path
from typing import Any, Final

from p2pdp.core.errors import NotReady, UsageError
from p2pdp.core.ids import Peer
from p2pdp.crypto.roster import Roster
from p2pdp.files.folder import (
    ROSTER_FILE,
    SPEC_FILE,
    WIRE_FILE,
    disk_error,
    make_folder,
    peer_folder,
    read_json,
    write_json,
)
from p2pdp.files.reading import read_text
from p2pdp.ledger.journal import PRIVATE, VIEW
from p2pdp.ledger.records import to_skeleton, whole_length
from p2pdp.node.disk import write_durably
from p2pdp.node.shell import TOTALS_FILE
from p2pdp.node.user import SEAT_FILE

NODE_FILE: Final = "node.json"
TOLD_FILE: Final = "own.json"
COSTS_FILE: Final = "costs.json"
_WORK: Final = "node"


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

    @contextmanager
    def locked(self) -> Iterator[None]:
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
        return read_text(self.path / SPEC_FILE)

    def keep_spec(self, text: str) -> None:
        write_durably(self.path / SPEC_FILE, text.encode())

    def take_seat(self, roster: Roster, me: Peer) -> None:
        write_json(self.path / ROSTER_FILE, roster.to_json())
        place = peer_folder(self.path, me)
        try:
            place.parent.mkdir(exist_ok=True)
            if not place.is_symlink():
                place.symlink_to(Path("..", _WORK))
        except OSError as error:
            raise disk_error(place, error) from None

    @property
    def roster(self) -> Roster:
        return Roster.from_json(read_json(self.path / ROSTER_FILE))

    @property
    def traced(self) -> bool:
        return (self.work / WIRE_FILE).is_file()

    def keep_costs(self, terms: str, costs: Sequence[Mapping[str, Any]]) -> None:
        """Keep costs, which take seconds to compute, with the digest of the facts that they follow from."""
        write_durably(self.path / COSTS_FILE, json.dumps({"terms": terms, "costs": list(costs)}).encode())

    def kept_costs(self, terms: str) -> list[dict[str, Any]] | None:
        """Return the costs that follow from these facts; None where the folder has none."""
        if not (self.path / COSTS_FILE).is_file():
            return None
        kept = read_json(self.path / COSTS_FILE)
        return list(kept["costs"]) if kept.get("terms") == terms else None

    def keep_told(self, document: Mapping[str, Any]) -> None:
        """Keep the report to the node's owner; it follows from the node's own view, which holds routes."""
        write_json(self.path / TOLD_FILE, document, secret=True)

    @property
    def view_file(self) -> Path:
        return self.work / f"{VIEW}.ledger"

    def view(self) -> bytes:
        return self.view_file.read_bytes() if self.view_file.is_file() else b""

    def faults(self) -> dict[str, int]:
        said = read_json(self.work / TOTALS_FILE) if (self.work / TOTALS_FILE).is_file() else {"faults": {}}
        return dict(said["faults"])

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
