"""Writes and lists runs in a database: SQLite in a file, or PostgreSQL.

Guarantee: a run's rows are replaced in one transaction, so that readers see it as it was or as it is; the same folder
gives the same rows, however often and in which order it is read. Reading makes neither tables nor a file. Every failure
is an `IndexBroken` with a short reason that names no password. Nothing reads the truth from here.

The caller owes: one thread at a time writes; any number may read meanwhile, for each has a connection of its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from p2pdp.core.errors import UsageError
from p2pdp.index.facts import RunFacts

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

CONNECT_S: Final = 5
STATEMENT_MS: Final = 10_000
# A server that is cut off is given up after about as long as a statement may take, and not when the kernel does.
_ALIVE: Final = {"tcp_user_timeout": 10_000, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
_SCHEMES: Final = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgresql+psycopg": "postgresql+psycopg"}
_BOUNDS: Final = ("headline", "worst")
_LACKING: Final = "lacks SQLAlchemy (for PostgreSQL psycopg too): pip install '.[index]'"


class IndexBroken(Exception):
    """The database cannot be used at the moment; the text says why in a few words."""


class _NotOpened(IndexBroken):
    """SQLite has no file there; it says the same of one that may not be opened, which is told when it is written."""


class Index:
    def __init__(self, where: str | Path) -> None:
        """Take the address of a database, or the file of an SQLite one; do not connect yet.

        A text that is no address of a database, or one whose driver is not installed, is a `UsageError`.
        """
        try:
            from sqlalchemy import create_engine, event
            from sqlalchemy.engine import URL
            from sqlalchemy.pool import NullPool
        except ImportError:
            raise UsageError(f"--index: this installation {_LACKING}") from None
        url = URL.create("sqlite", database=str(where)) if isinstance(where, Path) else _parsed(where)
        lite = url.drivername == "sqlite"
        options = {"timeout": CONNECT_S} if lite else {"connect_timeout": CONNECT_S, **_ALIVE}
        try:
            # Without a pool: a database that was deleted or started again meanwhile is found as it is now.
            self._engine = create_engine(url, poolclass=NullPool, connect_args=options)
            self._reading = self._engine
            if lite:  # "rw" makes no file, and yet may undo what a killed writer left half done
                named = "file:" + quote(bytes(Path(url.database or "").absolute()))
                existing = URL.create("sqlite", database=named, query={"uri": "true", "mode": "rw"})
                self._reading = create_engine(existing, poolclass=NullPool, connect_args=options)
        except ImportError:
            raise UsageError(f"--index: this installation {_LACKING}") from None
        preparing = "PRAGMA foreign_keys = ON" if lite else f"SET statement_timeout = {STATEMENT_MS}"

        def connected(connection: Any, _record: Any) -> None:
            cursor = connection.cursor()
            cursor.execute(preparing)
            cursor.close()
            connection.commit()

        for engine in {self._engine, self._reading}:
            event.listen(engine, "connect", connected)

    def rebuild(self) -> None:
        """Drop all tables and make them anew, whatever version they were."""
        from p2pdp.index import schema

        with _connected(self._engine) as connection:
            schema.metadata.drop_all(connection)
            self._make(connection)

    def write(self, facts: RunFacts) -> None:
        """Replace what there is of this run."""
        from p2pdp.index import schema

        key = {"run_id": facts.run_id}
        people = [
            {**key, "identity": one.identity, "token": one.token, "user_number": one.user, "state": one.state}
            for one in facts.participants
        ]
        events = [
            {**key, "number": number, "at_s": one.at_s, "event": one.event, "user_number": one.user}
            for number, one in enumerate(facts.events)
        ]
        claims = [
            {**key, "number": number, **asdict(row), "document": json.dumps(row.document)}
            for number, row in enumerate(facts.claims)
        ]
        results = [] if facts.result is None else [{**key, "document": json.dumps(facts.result)}]
        names = ("run_id", "folder", "protocol", "transport", "nodes", "n", "state", "started", "seconds")
        row = {name: getattr(facts, name) for name in (*names, "excluded", "epsilon_max")}
        row |= {name: json.dumps(getattr(facts, name)) for name in _BOUNDS}
        with _connected(self._engine) as connection:
            self._make(connection)
            connection.execute(schema.runs.delete().where(schema.runs.c.run_id == facts.run_id))
            connection.execute(schema.runs.insert(), row)
            for table, rows in (
                (schema.participants, people),
                (schema.events, events),
                (schema.results, results),
                (schema.claims, claims),
            ):
                if rows:
                    connection.execute(table.insert(), rows)

    def runs(self, limit: int, offset: int) -> dict[str, Any]:
        """Return the newest runs first, and how many there are in all: none where nothing was written yet."""
        from sqlalchemy import func, select

        from p2pdp.index import schema

        table = schema.runs
        newest = select(table).order_by(table.c.started.desc().nulls_last(), table.c.run_id).limit(limit).offset(offset)
        nothing: dict[str, Any] = {"runs": [], "total": 0}
        try:
            with _connected(self._reading) as connection:
                if not _has_tables(connection):
                    return nothing
                total = connection.execute(select(func.count()).select_from(table)).scalar_one()
                found = [dict(row) for row in connection.execute(newest).mappings()]
        except _NotOpened:
            return nothing
        for row in found:
            row["epsilon_max"] = "inf" if row["epsilon_max"] == math.inf else row["epsilon_max"]
            row |= {name: json.loads(row[name]) for name in _BOUNDS}
        return {"runs": found, "total": int(total)}

    @staticmethod
    def _make(connection: Any) -> None:
        """Make the tables where there are none; the version comes last and shows that all of them are there."""
        from p2pdp.index import schema

        schema.metadata.create_all(connection)
        if not _has_tables(connection):
            connection.execute(schema.schema.insert(), {"version": schema.VERSION})


def _parsed(text: str) -> URL:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise UsageError("--index: must be sqlite, sqlite:///FILE or postgresql://USER@HOST/DATABASE") from None
    driver = _SCHEMES.get(url.drivername)
    if driver is None:
        raise UsageError(f"--index: {url.drivername} is not supported; there are sqlite and postgresql")
    if driver == "sqlite" and not url.database:
        raise UsageError("--index: name the file of the database, as in sqlite:///runs.sqlite")
    if driver == "sqlite" and "?" in text:
        raise UsageError("--index: sqlite:///FILE takes no options after a ?; leave them out")
    return url.set(drivername=driver)


def _has_tables(connection: Any) -> bool:
    """Return whether the tables are there; those of another version are refused."""
    from sqlalchemy import inspect, select

    from p2pdp.index import schema

    if not inspect(connection).has_table(schema.schema.name):
        return False
    versions = list(connection.execute(select(schema.schema.c.version)).scalars())
    if versions not in ([], [schema.VERSION]):
        raise IndexBroken(
            f"it has version {max(versions)} of the tables and this program version {schema.VERSION}; "
            "p2pdp index --rebuild makes it anew"
        )
    return bool(versions)


@contextmanager
def _connected(engine: Any) -> Iterator[Any]:
    """Yield a connection within a transaction."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        with engine.begin() as connection:
            yield connection
    except SQLAlchemyError as error:
        opened = getattr(getattr(error, "orig", None), "sqlite_errorname", None) != "SQLITE_CANTOPEN"
        raise (IndexBroken if opened else _NotOpened)(_reason(error)) from None


def _reason(error: Exception) -> str:
    """Return the kind of an error and, for the driver's, its first line: later ones may quote statements."""
    cause = getattr(error, "orig", None)
    said = str(cause).strip().splitlines()[:1] if cause is not None else []
    return ": ".join([type(cause or error).__name__, *said])
