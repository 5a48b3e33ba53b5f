"""Runs of few users, worked out as if they were many."""

from __future__ import annotations

from typing import Any

import pytest

from p2pdp.assembly.outcome import estimate_of, truth_of
from p2pdp.protocols.gossip.analysis import fast, large
from p2pdp.protocols.gossip.analysis import outcome as tables
from tests.support.fault_worlds import prepared, world_of
from tests.support.gossip_specs import gossip
from tests.support.outcomes import outcome


def evidence(text: str) -> tuple[Any, Any]:
    world = world_of(text, 1)
    world.run_to_end()
    return world.run, {peer: bytes(process.disk.view) for peer, process in world.processes.items()}


TEXTS = [
    gossip(6, "ring", f'rounds = 4\naccelerated = {accelerated}\npublish = "{publish}"')
    for publish in ("none", "one", "all")
    for accelerated in ("false", "true")
] + [
    gossip(6, "erdos_renyi", "rounds = 4").replace("[gossip]", "changing = true\nprobability = 0.4\n[gossip]"),
    gossip(6, "ring", "rounds = 3").replace("[noise]", "[noise]\npair_sigma = 2.0"),
]


@pytest.mark.parametrize("text", TEXTS)
def test_they_are_what_a_table_says(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run, views = evidence(text)
    table = outcome(run, views, [])
    for module, name in ((tables, "TABLE_MAX"), (fast, "SPECTRUM_MAX")):
        monkeypatch.setattr(module, name, run.n - 1)
    found = outcome(run, views, [])
    assert (found.rows, found.variances) == (None, None)
    assert found.deviation == pytest.approx(table.deviation, rel=1e-12)
    assert (found.shares is None) == (table.shares is None)
    if table.shares is not None:
        assert found.shares == pytest.approx(table.shares, rel=1e-12)
    rows = prepared(text)[1].user
    assert truth_of(run, found, rows) == pytest.approx(truth_of(run, table, rows), rel=1e-12)
    assert estimate_of(run, found).value == estimate_of(run, table).value


def test_what_would_take_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for publish, known in (("none", False), ("all", True)):
        run, views = evidence(gossip(6, "ring", f'rounds = 3\npublish = "{publish}"'))
        monkeypatch.setattr(tables, "TABLE_MAX", 5)
        monkeypatch.setattr(fast, "SPECTRUM_MAX", 5)
        monkeypatch.setattr(large, "_WORK_MAX", 6 * 18 * 3 - 1)
        assert (outcome(run, views, []).deviation is not None) == known
        monkeypatch.setattr(large, "_WORK_MAX", 6 * 18 * 3)
        assert outcome(run, views, []).deviation is not None
