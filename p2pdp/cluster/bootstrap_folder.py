"""The folder of bootstrap and curator whose users are on other machines: that of a run, without users' ledgers.

    bootstrap.json                   how many join tokens there are, and where bootstrap listens
    tokens/0000.token …              one for each user, mode 0600
    curator/skeletons/0000.skeleton  handed in by users who agreed; 0000.sealed where the spec names an auditor's key

Tokens name the address at which bootstrap is reached, so a second start has to be reached there too.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from p2pdp.cluster.folder import RUN_FILE, RunFolder
from p2pdp.core.errors import UsageError
from p2pdp.core.ids import Peer
from p2pdp.crypto.entropy import random_bytes
from p2pdp.crypto.identity import Identity
from p2pdp.crypto.roster import RUN_ID_BYTES
from p2pdp.crypto.tokens import JoinToken
from p2pdp.files.folder import (
    SPEC_FILE,
    disk_error,
    make_folder,
    read_json,
    write_json,
    write_text,
)
from p2pdp.files.keys import PUBLIC_FILE, SECRET_FILE
from p2pdp.files.skeletons import skeleton_name, skeletons_folder
from p2pdp.node.disk import durable_secret, write_durably

BOOTSTRAP_FILE: Final = "bootstrap.json"


def is_bootstrap_folder(place: Path) -> bool:
    return (place / BOOTSTRAP_FILE).is_file()


class BootstrapFolder(RunFolder):
    @staticmethod
    def open(out: Path, spec_text: str, tokens: int, *, trace_wire: bool = False) -> BootstrapFolder:
        """A fresh folder, or the one of the same spec and as many tokens, to be gone on with."""
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
        """Where it listened before; None on a first start."""
        return self._facts.get("listen")

    @property
    def address(self) -> str | None:
        """What its tokens name; None before there are any."""
        return self._facts.get("address")

    def identity(self, name: str = "curator/bootstrap") -> Identity:
        place = self.path / name
        identity = Identity(durable_secret(place / SECRET_FILE))
        if not (place / PUBLIC_FILE).is_file():
            write_durably(place / PUBLIC_FILE, identity.public.hex().encode() + b"\n")
        return identity

    def write_tokens(self, listen: str, address: str, public: bytes) -> list[bytes]:
        """Keeps where bootstrap listens and is reached, and writes the tokens; gives their secrets."""
        if self.address not in (None, address):
            raise UsageError(f"{self.path}: its tokens name {self.address}; bootstrap has to be reached there again")
        write_json(self.path / BOOTSTRAP_FILE, {"tokens": self.token_count, "listen": listen, "address": address})
        secrets = self.tokens(self.token_count)
        place = self.path / "tokens"
        try:
            place.mkdir(mode=0o700, exist_ok=True)
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
            place.mkdir(exist_ok=True)
        except OSError as error:
            raise disk_error(place, error) from None
        for user, skeleton in skeletons.items():
            write_durably(place / skeleton_name(user, skeleton), skeleton)
