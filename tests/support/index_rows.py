"""Facts of runs, and what an index holds of them."""

from __future__ import annotations

import math

from p2pdp.index import schema
from p2pdp.index.facts import ClaimRow, LifeEvent, Participant, RunFacts
from p2pdp.index.store import Index

CLAIM = ClaimRow("node", "exact", "public", 1e-6, math.inf, None, True, {"method": "exact"})
FACTS = RunFacts(
    "ab" * 16, "/srv/run", "walk.sum", "tcp", 3, 3, "done", "2030-01-01T00:00:00.000+00:00", 0.5,
    [Participant(0, 0, "aa" * 32, "finished"), Participant(1, None, "bb" * 32, "stayed_away")],
    [LifeEvent(1.0, "enrolled", 0), LifeEvent(2.0, "roster")], {"estimate": 1.5}, [CLAIM],
    {"observer": "node", "epsilon": "inf", "reading": "none"}, {"observer": "network", "epsilon": "inf"},
)  # fmt: skip


def dump(index: Index) -> dict[str, list[tuple[object, ...]]]:
    with index._engine.connect() as connection:
        return {
            name: sorted((tuple(row) for row in connection.execute(table.select())), key=repr)
            for name, table in schema.metadata.tables.items()
        }
