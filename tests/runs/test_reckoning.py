"""What a node asks its helper: the same as is computed here."""

from __future__ import annotations

from pathlib import Path

import pytest

from p2pdp.api import simulate
from p2pdp.core.errors import Refused, UsageError
from p2pdp.files.spec import parse_spec
from p2pdp.ledger.records import read
from p2pdp.protocols.run_plan import plan_run
from p2pdp.runs.budgeting import charge_of
from p2pdp.runs.costing import costs_of, offered_run, spent_of, terms_of
from p2pdp.runs.reckoning import Reckoner, Reckoning, reckoning
from tests.support import runs
from tests.support.shuffle_specs import shuffle


def test_a_process_answers_as_this_one(tmp_path: Path) -> None:
    spec = parse_spec(runs.walk(4, 30), None)
    run = offered_run(spec, 1)
    assert run is not None
    simulate(spec, tmp_path / "run")
    ledger = tmp_path / "run" / "nodes" / "0002" / "view.ledger"
    with reckoning() as process:
        for reckoner in (Reckoner(process.ask), Reckoner(Reckoning().answer)):
            offered = reckoner.offer(spec, 1)
            assert offered is not None
            assert (offered.terms, offered.rounds) == (terms_of(run), 0)
            assert reckoner.costs() == costs_of(run)
            reckoner.sign(spec, run.facts)
            assert reckoner.costs() == costs_of(run)
            assert reckoner.charge("network") == charge_of(run, "network")
            assert reckoner.charge("node", 1e-9) == charge_of(run, "node", 1e-9)
            spent = spent_of(run, 2, read(ledger.read_bytes()))
            assert reckoner.spent(2, ledger) == reckoner.spent(2, ledger, costs_of(run)) == spent


def test_nothing_can_be_asked_before_the_run_is_known() -> None:
    reckoner = Reckoner(Reckoning().answer)
    with pytest.raises(UsageError):
        reckoner.costs()
    assert reckoner.offer(parse_spec(shuffle(6, 'kind = "file"\npath = "edges.csv"'), None), 1) is None
    with pytest.raises(UsageError):
        reckoner.costs()


def test_what_is_signed_is_checked() -> None:
    spec = parse_spec(shuffle(8, 'kind = "regular"\ndegree = 3', "single", "rounds = 2"), None)
    facts = dict(plan_run(spec, 8, 1).facts)
    reckoner = Reckoner(Reckoning().answer)
    reckoner.sign(spec, facts)
    with pytest.raises(Refused, match="fact rounds"):
        reckoner.sign(spec, facts | {"rounds": 9})
