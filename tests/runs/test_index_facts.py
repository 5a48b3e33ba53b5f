from __future__ import annotations

from pathlib import Path

import pytest

import p2pdp
from p2pdp.core.errors import P2pdpError, UsageError
from p2pdp.runs.index_facts import facts_of
from tests.support.across_specs import TEXT, spec_of


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("facts") / "run"
    p2pdp.simulate(spec_of(), found)
    return found


def test_a_folder_tells_all_that_the_index_holds(place: Path) -> None:
    facts = facts_of(place)
    result, audited = p2pdp.audit(place), facts.claims
    assert (facts.run_id, facts.protocol, facts.nodes, facts.n, facts.state) == (
        result.run_id, "walk.sum", 4, 4, "done",
    )  # fmt: skip
    assert [claim.document["method"] for claim in audited] == [claim.method for claim in result.claims]
    assert [one.state for one in facts.participants] == ["finished"] * 4
    assert sorted(one.user for one in facts.participants if one.user is not None) == [0, 1, 2, 3]
    assert all(len(one.identity) == 64 for one in facts.participants)
    names = [event.event for event in facts.events]
    assert (names.count("enrolled"), names[4], names.count("ready"), names[-1]) == (4, "roster", 4, "closed")
    assert names.index("begun") < names.index("published") < names.index("closed")
    times = [event.at_s for event in facts.events]
    assert times == sorted(times)
    assert facts_of(place) == facts


def test_the_number_of_events_does_not_tell_the_number_of_messages(place: Path, tmp_path: Path) -> None:
    p2pdp.simulate(spec_of(TEXT.replace("hops = 30", "hops = 300")), tmp_path / "long")
    assert len(facts_of(tmp_path / "long").events) == len(facts_of(place).events)


def test_a_run_that_has_begun_is_told_as_far_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="folder"):
        facts_of(tmp_path)
    (tmp_path / "spec.toml").write_text(TEXT)
    with pytest.raises(UsageError, match="begun"):
        facts_of(tmp_path)
    (tmp_path / "run.json").write_text('{"run_id": "ab", "started": "2030-01-01T00:00:00+00:00"}')
    facts = facts_of(tmp_path)
    assert (facts.run_id, facts.state, facts.n, facts.participants) == ("ab", "enrolling", None, [])


def test_a_damaged_ledger_is_no_half_of_a_truth(place: Path, tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(TEXT)
    (tmp_path / "run.json").write_text('{"run_id": "ab", "started": "x"}')
    ledger = tmp_path / "curator" / "bootstrap" / "view.ledger"
    ledger.parent.mkdir(parents=True)
    whole = (place / "curator" / "bootstrap" / "view.ledger").read_bytes()
    ledger.write_bytes(whole[:-5])
    assert facts_of(tmp_path).n == 4, "a record that is being written is not there yet"
    ledger.write_bytes(b"nonsense" * 10)
    with pytest.raises(P2pdpError):
        facts_of(tmp_path)
    ledger.write_bytes(b"")
    assert facts_of(tmp_path).events == []
