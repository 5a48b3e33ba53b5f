"""Databases for tests: a file, and a PostgreSQL server of their own in a temporary folder on the loopback."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.ports import free_port

WHY_NOT = "install postgresql, of which tests start a server of their own"
_PLACES = "/usr/lib/postgresql"


def programs() -> Path | None:
    """Where initdb and pg_ctl are; the newest where there are several, for distributions keep them off the path."""
    found = shutil.which("pg_ctl")
    if found is not None:
        return Path(found).resolve().parent
    places = sorted(Path(_PLACES).glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[-3]))
    return places[-1].parent if places else None


class Postgres:
    def __init__(self, place: Path, programs: Path) -> None:
        self._place = place
        self._programs = programs
        self._port = free_port()
        self.url = f"postgresql://tester:a-password@127.0.0.1:{self._port}/postgres"

    def _do(self, name: str, *arguments: str) -> None:
        command = [str(self._programs / name), *arguments]
        if os.getuid() == 0:  # it refuses to be run by root
            command = ["runuser", "-u", "postgres", "--", *command]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=self._place, timeout=240)
        assert done.returncode == 0, (name, done.stdout, done.stderr)

    def make(self) -> None:
        secret = self._place / "password"
        secret.write_text("a-password\n")
        if os.getuid() == 0:
            owner = pwd.getpwnam("postgres")
            for path in (self._place, secret):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        options = ("--username=tester", "--auth=scram-sha-256", f"--pwfile={secret}", "--no-sync", "--encoding=UTF8")
        self._do("initdb", f"--pgdata={self._place / 'data'}", *options)

    def start(self) -> None:
        options = f"-p {self._port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self._place} -c fsync=off"
        log = self._place / "log"
        self._do("pg_ctl", "start", "-w", f"--pgdata={self._place / 'data'}", f"--log={log}", f"--options={options}")

    def stop(self) -> None:
        self._do("pg_ctl", "stop", "-m", "immediate", f"--pgdata={self._place / 'data'}")


@contextmanager
def postgres(programs: Path) -> Iterator[Postgres]:
    place = Path(tempfile.mkdtemp(prefix="p2pdp-pg-"))
    server = Postgres(place, programs)
    try:
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(place, ignore_errors=True)
