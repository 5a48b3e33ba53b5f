"""The tables. `VERSION` changes with them: a database of another version is refused, and made anew on request."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

VERSION: Final = 2
metadata: Final = MetaData()

_run = ("p2pdp_runs.run_id",)

schema: Final = Table("p2pdp_schema", metadata, Column("version", Integer, primary_key=True, autoincrement=False))
runs: Final = Table(
    "p2pdp_runs",
    metadata,
    Column("run_id", String(64), primary_key=True),
    Column("folder", Text, nullable=False),
    Column("protocol", String(64), nullable=False),
    Column("transport", String(16), nullable=False),
    Column("nodes", Integer, nullable=False),
    Column("n", Integer),
    Column("state", String(16), nullable=False, index=True),
    Column("started", String(40), index=True),
    Column("seconds", Float),
    Column("excluded", Integer, nullable=False),
    Column("epsilon_max", Float),  # of the headline
    Column("headline", Text),
    Column("worst", Text),
)
participants: Final = Table(
    "p2pdp_participants",
    metadata,
    Column("run_id", ForeignKey(*_run, ondelete="CASCADE"), primary_key=True),
    Column("identity", String(64), primary_key=True, index=True),
    Column("token", Integer),
    Column("user_number", Integer),
    Column("state", String(16), nullable=False),
)
events: Final = Table(
    "p2pdp_events",
    metadata,
    Column("run_id", ForeignKey(*_run, ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at_s", Float, nullable=False),
    Column("event", String(32), nullable=False),
    Column("user_number", Integer),
)
results: Final = Table(
    "p2pdp_results",
    metadata,
    Column("run_id", ForeignKey(*_run, ondelete="CASCADE"), primary_key=True),
    Column("document", Text, nullable=False),
)
claims: Final = Table(
    "p2pdp_claims",
    metadata,
    Column("run_id", ForeignKey(*_run, ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("observer", String(32), nullable=False),
    Column("method", String(64), nullable=False),
    Column("conditioning", String(32), nullable=False),
    Column("delta", Float, nullable=False),
    Column("epsilon_max", Float),
    Column("mu_max", Float),
    Column("bound", Boolean, nullable=False),
    Column("document", Text, nullable=False),
)
