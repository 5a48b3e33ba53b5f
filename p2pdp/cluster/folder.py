"""What a local run keeps in its folder beside ledgers, so that a second start goes on with the first.

run.json                              run id, when it was started, and how users get into processes
curator/bootstrap/identity.{key,pub}  made in a process of its own, so that no user's process is born with it
curator/tokens/secrets                one-use secrets, one a node
nodes/0000/identity.{key,pub}, totals.json
stayed-away-0000/                     of a node that came too late, or not at all

One launcher at a time works in a folder: `locked` is held by it and by its processes, so that a second one
cannot begin while any process of the first is left, and no ledger ever has two writers.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

from p2pdp.cluster.children import fork, wait_for
from p2pdp.cluster.layout import ONE_EACH, Packing
from p2pdp.core.errors import NotReady, UsageError, VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.spec import Spec
from p2pdp.crypto.entropy import random_bytes
from p2pdp.crypto.identity import Identity
from p2pdp.crypto.roster import Roster
from p2pdp.files.folder import (
    RESULT_FILE,
    ROSTER_FILE,
    SPEC_FILE,
    disk_error,
    make_folder,
    peer_folder,
    read_evidence,
    read_json,
    write_json,
    write_text,
)
from p2pdp.files.spec import parse_spec
from p2pdp.node import roles
from p2pdp.node.disk import durable_secret, write_durably
from p2pdp.node.shell import TOTALS_FILE
from p2pdp.node.user import RUN_KEY_FILE
from p2pdp.replay.evidence import Evidence

RUN_FILE: Final = "run.json"
SECRET_BYTES: Final = 16
LOCK_S: Final = 5.0  # processes of a launcher that was killed end within seconds


class RunFolder:
    def __init__(self, path: Path) -> None:
        if not (path / RUN_FILE).is_file() or not (path / SPEC_FILE).is_file():
            raise UsageError(f"{path}: is not the folder of a live run")
        self.path = path
        facts = read_json(path / RUN_FILE)
        try:
            self.run_id = bytes.fromhex(facts["run_id"])
            self.started: str = facts["started"]
            self.started_s = datetime.fromisoformat(self.started).timestamp()
            self.packing = Packing(
                facts.get("nodes_per_process", 1), facts.get("spawn", False), facts.get("trace_wire", False)
            )
        except (KeyError, TypeError, ValueError):
            raise VerificationFailed(f"{path / RUN_FILE}: is damaged") from None

    @staticmethod
    def make(out: Path | None, spec_text: str, packing: Packing = ONE_EACH) -> RunFolder:
        run_id = random_bytes(16)
        path = make_folder(Path(f"p2pdp-{run_id.hex()}") if out is None else out)
        write_text(path / SPEC_FILE, spec_text)
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        write_json(path / RUN_FILE, {"run_id": run_id.hex(), "started": started, **asdict(packing)})
        return RunFolder(path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        with (self.path / RUN_FILE).open("rb") as file:
            until_s = monotonic() + LOCK_S
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if monotonic() >= until_s:
                        raise NotReady(f"{self.path}: another process runs this folder; wait for its end") from None
                    sleep(0.1)
            yield

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to do but to look at what there is."""
        return (self.path / RESULT_FILE).is_file() or roles.have_finished(self.path / "curator")

    def run_keys(self) -> list[Path]:
        """Those that are there yet."""
        return list(self.path.rglob(RUN_KEY_FILE))

    def drop_run_keys(self) -> None:
        """Where a run is over, processes that were ended for it can no more unlink theirs."""
        for key in self.run_keys():
            key.unlink(missing_ok=True)

    @cached_property
    def spec(self) -> Spec:
        """The spec as whoever reads the folder has it."""
        return parse_spec(self.spec_text, None)

    def evidence(self, roster: Roster) -> Evidence:
        """Return what the processes left; what one that never came back has torn is cut off."""
        return read_evidence(self.path, spec=self.spec, roster=roster, sealed_too=False, cut_torn=True)

    @cached_property
    def spec_text(self) -> str:
        return (self.path / SPEC_FILE).read_text(encoding="utf-8")

    def bootstrap_public(self) -> bytes:
        place = self.path / "curator" / "bootstrap"
        public = place / "identity.pub"

        async def make() -> None:
            identity = Identity(durable_secret(place / "identity.key"))
            write_durably(public, identity.public.hex().encode() + b"\n")

        if not public.is_file() and wait_for(fork(make, lambda: None, lambda _kind, _text: None)) != 0:
            raise NotReady(f"{place}: bootstrap's identity could not be made")
        return bytes.fromhex(public.read_text().strip())

    def tokens(self, count: int) -> list[bytes]:
        file = self.path / "curator" / "tokens" / "secrets"
        if not file.is_file():
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise disk_error(file.parent, error) from None
            write_durably(file, random_bytes(SECRET_BYTES * count))
        secrets = file.read_bytes()
        return [secrets[SECRET_BYTES * number : SECRET_BYTES * (number + 1)] for number in range(count)]

    def totals(self, roster: Roster) -> tuple[int, dict[str, int]]:
        """Bytes sent and faults by kind, as each process said at its end."""
        sent_bytes = 0
        faults: dict[str, int] = {}
        for peer in (BOOTSTRAP, CURATOR, *range(roster.n)):
            path = self._place(peer) / TOTALS_FILE
            said: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {"bytes": 0, "faults": {}}
            sent_bytes += said["bytes"]
            for kind, count in said["faults"].items():
                faults[kind] = faults.get(kind, 0) + count
        return sent_bytes, faults

    def roster(self) -> Roster:
        """Return the roster that bootstrap signed."""
        return Roster.from_json(read_json(self.path / ROSTER_FILE))

    def name_after_users(self, roster: Roster, slots: int) -> None:
        """Give the nodes' folders their users' numbers, where some nodes stayed away."""
        if roster.n == slots:
            return
        numbers = {entry.identity.hex(): user for user, entry in enumerate(roster.entries)}
        nodes = self.path / "nodes"
        for place in sorted(nodes.iterdir()):
            public = place / "identity.pub"
            user = numbers.get(public.read_text().strip()) if public.is_file() else None
            if user is None:
                place.rename(self.path / f"stayed-away-{place.name}")
            elif place.name != f"{user:04d}":
                place.rename(nodes / f"{user:04d}")

    def _place(self, peer: Peer) -> Path:
        return peer_folder(self.path, peer)
