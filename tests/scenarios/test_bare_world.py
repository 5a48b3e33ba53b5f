from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from p2pdp.core.ids import CURATOR
from p2pdp.files.data import load_data
from p2pdp.files.spec import parse_spec, spec_digest
from p2pdp.ledger.records import (
    CHOSEN,
    DRAWN,
    OWN,
    PUBLISHED,
    RECEIVED,
    SENT,
    chain_problem,
    public_message,
    read,
    whole_message,
)
from p2pdp.protocols.run_plan import RunPlan, plan_run
from p2pdp.sim.world import World
from tests.support.bare import BareWorld
from tests.support.small import ALL, BARE, RING


def prepared(text: str) -> tuple[RunPlan, Any]:
    spec = parse_spec(text, None)
    data = load_data(spec, spec.run.nodes)
    return plan_run(spec, spec.run.nodes, data.dimensions, sampler="seeded"), data.user


def steps(view: bytes) -> list[tuple[int, Any]]:
    """Each token's arrival, draw, choice and departure, without what depends on who else is there or on the clock."""
    found: list[tuple[int, Any]] = []
    for record in read(view).records if view else ():  # a user who was never visited has nothing to record
        if record.kind in (DRAWN, CHOSEN):
            found.append((record.kind, record.body[:5]))
        elif record.kind in (OWN, RECEIVED, SENT) and public_message(record).type in ("token", "total"):
            found.append((record.kind, public_message(record).fields))
    return found


@pytest.mark.parametrize("name", [name for name, text in ALL.items() if "tokens" not in text])
def test_machines_walk_as_they_do_in_the_whole_world(name: str) -> None:
    """Same seed, same draws of each user, one token: the same route and the same published result."""
    run, rows = prepared(ALL[name])
    bare, whole = BareWorld(run, rows, 3), World(run, rows, "", spec_digest(run.spec), 3)
    published = bare.run_to_end()
    whole.run_to_end()
    for user, view in enumerate(bare.views):
        assert steps(bytes(view)) == steps(bytes(whole.processes[user].disk.view))
    curator = read(bytes(whole.processes[CURATOR].disk.view)).records
    (result,) = (whole_message(record).value for record in curator if record.kind == PUBLISHED)
    np.testing.assert_array_equal(published, result)


@pytest.mark.parametrize("name", ALL)
def test_ledgers_are_whole_chains_of_the_usual_format(name: str) -> None:
    run, rows = prepared(ALL[name])
    world = BareWorld(run, rows, 1)
    world.run_to_end()
    assert sorted(world.totals) == [start.item for start in run.plan.starts]
    for view in world.views:
        if view:
            contents = read(bytes(view))
            assert chain_problem(contents) is None
            assert contents.torn_bytes == 0


def test_without_noise_the_sum_is_that_of_all_visits() -> None:
    run, rows = prepared(BARE)
    world = BareWorld(run, rows, 2)
    published = world.run_to_end()
    visits = [sum(kind in (OWN, RECEIVED) for kind, _ in steps(bytes(view))) for view in world.views]
    assert sum(visits) == run.plan.steps
    values = [run.protocol.inputs(run.plan, rows(user))[1][0] for user in range(run.n)]
    assert published == int(np.dot(visits, values))


def test_the_same_seed_gives_the_same_bytes() -> None:
    run, rows = prepared(RING)
    first, again, other = (BareWorld(run, rows, seed) for seed in (4, 4, 5))
    results = [world.run_to_end() for world in (first, again, other)]
    assert results[0] == results[1] != results[2]
    assert first.views == again.views != other.views
