"""The folder of a local run, and that of a bootstrap with users on other machines; both can be resumed.

A local run keeps beside its ledgers:

run.json                              run id, when it was started, and how users get into processes
model.json                            size and start of a model that the spec names
curator/bootstrap/identity.{key,pub}  made in a process of its own, so that no user's process is born with it
curator/tokens/secrets                one-use secrets, one a node
nodes/0000/identity.{key,pub}, totals.json
stayed-away-0000/                     of a node that came too late, or not at all

One launcher at a time works in a folder: `locked` is held by it and by its processes, so that a second one
cannot begin while any process of the first is left, and no ledger ever has two writers.

A bootstrap with users on other machines has no ledgers of users, and keeps instead:

    bootstrap.json                   how many join tokens there are, and where bootstrap listens
    tokens/0000.token …              one for each user, mode 0600
    curator/skeletons/0000.skeleton  handed in by users who agreed; 0000.sealed where the spec names an auditor's key

Tokens name the address at which bootstrap is reached, so a second start has to be reached there too.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

from p2pdp.cluster.layout import ONE_EACH, Packing
from p2pdp.cluster.processes import fork, wait_for
from p2pdp.core.errors import NotReady, UsageError, VerificationFailed
from p2pdp.core.ids import BOOTSTRAP, CURATOR, Peer
from p2pdp.core.spec import Spec
from p2pdp.crypto.entropy import random_bytes
from p2pdp.crypto.identity import Identity
from p2pdp.crypto.roster import RUN_ID_BYTES, Roster
from p2pdp.crypto.tokens import JoinToken
from p2pdp.files.folder import (
    RESULT_FILE,
    ROSTER_FILE,
    SPEC_FILE,
    disk_error,
    make_folder,
    make_private,
    peer_folder,
    read_evidence,
    read_json,
    write_json,
    write_text,
)
from p2pdp.files.keys import PUBLIC_FILE, SECRET_FILE
from p2pdp.files.skeletons import skeleton_name, skeletons_folder
from p2pdp.files.spec import parse_spec
from p2pdp.ledger.journal import VIEW
from p2pdp.node import roles
from p2pdp.node.disk import drop_pieces, durable_secret, write_durably
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
        """Return whether the run is over and only its results are left to read."""
        return (self.path / RESULT_FILE).is_file() or roles.have_finished(self.path / "curator")

    def run_keys(self) -> list[Path]:
        """Return the run keys that are still there."""
        return list(self.path.rglob(RUN_KEY_FILE))

    def drop_run_keys(self) -> None:
        """Unlink the keys of a run that is over, which its ended processes could not, and what never came whole."""
        for key in self.run_keys():
            key.unlink(missing_ok=True)
        for ledger in self.path.rglob(f"{VIEW}.ledger"):
            drop_pieces(ledger.parent)

    @cached_property
    def spec(self) -> Spec:
        """Return the spec as every reader of the folder has it."""
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
                make_private(file.parent)
            except OSError as error:
                raise disk_error(file.parent, error) from None
            write_durably(file, random_bytes(SECRET_BYTES * count))
        secrets = file.read_bytes()
        return [secrets[SECRET_BYTES * number : SECRET_BYTES * (number + 1)] for number in range(count)]

    def totals(self, roster: Roster) -> tuple[int, dict[str, int]]:
        """Return bytes sent and fault counts by kind, from what each process wrote at its end."""
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
        """Rename the nodes' folders after their users' numbers, where some nodes stayed away."""
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


BOOTSTRAP_FILE: Final = "bootstrap.json"


def is_bootstrap_folder(place: Path) -> bool:
    return (place / BOOTSTRAP_FILE).is_file()


class BootstrapFolder(RunFolder):
    @staticmethod
    def open(out: Path, spec_text: str, tokens: int, *, trace_wire: bool = False) -> BootstrapFolder:
        """Make a folder, or open that of the same spec and number of tokens to resume it."""
        if not is_bootstrap_folder(out):
            make_folder(out)
            write_text(out / SPEC_FILE, spec_text)
            write_json(out / BOOTSTRAP_FILE, {"tokens": tokens})
        if not (out / RUN_FILE).is_file():
            started = datetime.now(UTC).isoformat(timespec="milliseconds")
            facts = {"run_id": random_bytes(RUN_ID_BYTES).hex(), "started": started, "trace_wire": trace_wire}
            write_json(out / RUN_FILE, facts)
        folder = BootstrapFolder(out)
        if folder.spec_text != spec_text:
            raise UsageError(f"--out {out}: holds a run of another spec; name another folder")
        if folder.token_count != tokens:
            raise UsageError(f"--tokens {tokens}: {out} was begun with {folder.token_count}; a run keeps its tokens")
        return folder

    @property
    def _facts(self) -> dict[str, Any]:
        return read_json(self.path / BOOTSTRAP_FILE)

    @property
    def token_count(self) -> int:
        return int(self._facts["tokens"])

    @property
    def listen(self) -> str | None:
        """Return the address it listened on before; None on a first start."""
        return self._facts.get("listen")

    @property
    def address(self) -> str | None:
        """Return the address in its tokens; None before there are any."""
        return self._facts.get("address")

    def identity(self, name: str = "curator/bootstrap") -> Identity:
        place = self.path / name
        identity = Identity(durable_secret(place / SECRET_FILE))
        if not (place / PUBLIC_FILE).is_file():
            write_durably(place / PUBLIC_FILE, identity.public.hex().encode() + b"\n")
        return identity

    def write_tokens(self, listen: str, address: str, public: bytes) -> list[bytes]:
        """Keep where bootstrap listens and is reached, and write the tokens; return their secrets."""
        if self.address not in (None, address):
            raise UsageError(f"{self.path}: its tokens name {self.address}; bootstrap has to be reached there again")
        write_json(self.path / BOOTSTRAP_FILE, {"tokens": self.token_count, "listen": listen, "address": address})
        secrets = self.tokens(self.token_count)
        place = self.path / "tokens"
        try:
            make_private(place)
        except OSError as error:
            raise disk_error(place, error) from None
        for number, secret in enumerate(secrets):
            path = place / f"{number:04d}.token"
            if not path.is_file():
                write_durably(path, JoinToken(address, public, secret, number).to_text().encode() + b"\n")
        return secrets

    def deposit(self, skeletons: Mapping[Peer, bytes]) -> None:
        place = skeletons_folder(self.path)
        try:
            make_private(place)
        except OSError as error:
            raise disk_error(place, error) from None
        for user, skeleton in skeletons.items():
            write_durably(place / skeleton_name(user, skeleton), skeleton)
