"""Writes and lists runs in a database: SQLite in a file, or PostgreSQL.

Guarantee: a run's rows are replaced in one transaction, so that readers see it as it was or as it is; the same folder
gives the same rows, however often and in which order it is read. Every failure is an `IndexBroken` with a short reason
that names no password. Nothing reads the truth from here.

The caller owes: one thread at a time uses an `Index`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Final

from p2pdp.core.errors import UsageError
from p2pdp.index.facts import RunFacts

CONNECT_S: Final = 5
STATEMENT_MS: Final = 10_000
_SCHEMES: Final = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgresql+psycopg": "postgresql+psycopg"}
_LACKING: Final = 'lacks SQLAlchemy (for PostgreSQL psycopg too): pip install "p2pdp[index]"'


class IndexBroken(Exception):
    """The database cannot be used at the moment; the text says why in a few words."""


class Index:
    def __init__(self, url: str) -> None:
        """Does not connect yet. A text that is no address of a database, or lacks its driver, is a `UsageError`."""
        try:
            from sqlalchemy import create_engine, event
            from sqlalchemy.engine import make_url
            from sqlalchemy.exc import ArgumentError
            from sqlalchemy.pool import NullPool
        except ImportError:
            raise UsageError(f"--index: this installation {_LACKING}") from None
        try:
            parsed = make_url(url)
        except (ArgumentError, ValueError):
            raise UsageError("--index: must be sqlite, sqlite:///FILE or postgresql://USER@HOST/DATABASE") from None
        driver = _SCHEMES.get(parsed.drivername)
        if driver is None:
            raise UsageError(f"--index: {parsed.drivername} is not supported; there are sqlite and postgresql")
        lite = driver == "sqlite"
        if lite and not parsed.database:
            raise UsageError("--index: name the file of the database, as in sqlite:///runs.sqlite")
        options = {"timeout": CONNECT_S} if lite else {"connect_timeout": CONNECT_S}
        try:
            # Without a pool: a database that was deleted or started again meanwhile is found as it is now.
            self._engine = create_engine(parsed.set(drivername=driver), poolclass=NullPool, connect_args=options)
        except ImportError:
            raise UsageError(f"--index: this installation {_LACKING}") from None
        preparing = "PRAGMA foreign_keys = ON" if lite else f"SET statement_timeout = {STATEMENT_MS}"

        def connected(connection: Any, _record: Any) -> None:
            cursor = connection.cursor()
            cursor.execute(preparing)
            cursor.close()
            connection.commit()

        event.listen(self._engine, "connect", connected)

    def rebuild(self) -> None:
        """Drops all of it and makes the tables anew, whatever version they were."""
        from p2pdp.index import schema

        with self._connected() as connection:
            schema.metadata.drop_all(connection)
            self._make(connection)

    def write(self, facts: RunFacts) -> None:
        """Replaces what there is of this run."""
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
        with self._connected() as connection:
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
        """The newest first, and how many there are in all."""
        from sqlalchemy import func, select

        from p2pdp.index import schema

        table = schema.runs
        newest = select(table).order_by(table.c.started.desc().nulls_last(), table.c.run_id).limit(limit).offset(offset)
        with self._connected() as connection:
            self._make(connection)
            total = connection.execute(select(func.count()).select_from(table)).scalar_one()
            found = [dict(row) for row in connection.execute(newest).mappings()]
        for row in found:
            row["epsilon_max"] = "inf" if row["epsilon_max"] == math.inf else row["epsilon_max"]
        return {"runs": found, "total": int(total)}

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """A connection within a transaction."""
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with self._engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise IndexBroken(_reason(error)) from None

    @staticmethod
    def _make(connection: Any) -> None:
        from sqlalchemy import select

        from p2pdp.index import schema

        schema.metadata.create_all(connection)
        versions: Sequence[int] = connection.execute(select(schema.schema.c.version)).scalars().all()
        if not versions:
            connection.execute(schema.schema.insert(), {"version": schema.VERSION})
        elif list(versions) != [schema.VERSION]:
            raise IndexBroken(
                f"it has version {max(versions)} of the tables and this program version {schema.VERSION}; "
                "p2pdp index --rebuild makes it anew"
            )


def _reason(error: Exception) -> str:
    """The kind of an error and, of the driver's, its first line: later ones may quote statements."""
    cause = getattr(error, "orig", None)
    said = str(cause).strip().splitlines()[:1] if cause is not None else []
    return ": ".join([type(cause or error).__name__, *said])
