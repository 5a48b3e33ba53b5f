"""A command reads, parses and replays what is at hand of a run once, whatever it does with it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import p2pdp
from p2pdp.crypto.roster import Roster
from p2pdp.files import ledgers
from p2pdp.files import spec as specs
from p2pdp.ledger import records, stored
from p2pdp.replay import transcript
from tests.support import small
from tests.support.gossip_specs import gossip
from tests.support.shuffle_specs import shuffle

SPECS = {"ring": small.RING, "average": gossip(5, "ring"), "reports": shuffle(5)}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a spec was parsed, a roster decoded, each ledger file read and parsed, and ledgers replayed."""
    found: Counter[str] = Counter()

    def count(name: str, function: Any, what: Any = None) -> Any:
        def counting(*arguments: Any, **more: Any) -> Any:
            found[name if what is None else f"{name} {what(*arguments)}"] += 1
            return function(*arguments, **more)

        return counting

    parse = count("parse_spec", specs.read_document)
    for place in ("files.spec", "files.making"):
        monkeypatch.setattr(f"p2pdp.{place}.read_document", parse)
    monkeypatch.setattr(Roster, "from_json", count("roster", Roster.from_json))
    monkeypatch.setattr(ledgers, "read_plain", count("file", ledgers.read_plain, lambda path: Path(path).name))
    monkeypatch.setattr(stored, "read", count("ledger", records.read))
    monkeypatch.setattr(records, "read", count("other ledger", records.read))
    monkeypatch.setattr(transcript, "replay", count("replay", transcript.replay))
    return found


@pytest.mark.parametrize("name", SPECS)
def test_a_simulation_and_its_audit(name: str, tmp_path: Path, counted: Counter[str]) -> None:
    spec = p2pdp.load_spec(small.spec_file(tmp_path, SPECS[name]))
    counted.clear()
    p2pdp.simulate(spec, tmp_path / "run")
    nodes = spec.run.nodes
    assert counted["parse_spec"] == 1  # by the check that every spec from Python passes
    assert counted["ledger"] == 2 * (nodes + 2)  # views and private ledgers, of users and roles
    assert counted["replay"] == 1
    assert counted["roster"] == 0  # nothing is read from the folder
    assert not any(key.startswith("file") for key in counted)


@pytest.mark.parametrize("name", SPECS)
def test_an_audit(name: str, tmp_path: Path, counted: Counter[str]) -> None:
    place = small.recorded(tmp_path, SPECS[name])
    counted.clear()
    audited = p2pdp.audit(place)
    audited.save(place)
    both = audited.nodes + 2
    assert counted["parse_spec"] == counted["roster"] == counted["replay"] == 1
    assert counted["file view.ledger"] == counted["file private.ledger"] == both
    assert counted["ledger"] == 2 * both
    assert counted["other ledger"] == 0


def test_a_live_run(tmp_path: Path, counted: Counter[str]) -> None:
    """Only the launcher's process is counted: nodes read their own ledgers when they start."""
    spec = p2pdp.load_spec(small.spec_file(tmp_path, small.RING), ["run.patience_s=10"])
    counted.clear()
    p2pdp.run(spec, tmp_path / "run")
    both = spec.run.nodes + 2
    assert counted["parse_spec"] == 2  # by that check, and as processes read it in the folder
    assert counted["roster"] == counted["replay"] == 1
    assert counted["file view.ledger"] == counted["file private.ledger"] == both
    assert counted["ledger"] == 2 * both
    assert counted["other ledger"] == 0


def test_an_attack(tmp_path: Path, counted: Counter[str]) -> None:
    place = small.recorded(tmp_path, small.RING)
    counted.clear()
    p2pdp.attack(place, 1)
    assert counted["parse_spec"] == counted["roster"] == 1
    assert counted["ledger"] == 2 * (len(list((place / "nodes").iterdir())) + 2)  # it verifies first
    assert counted["replay"] == counted["other ledger"] == 0
