from __future__ import annotations

from dataclasses import replace

import pytest

from p2pdp.auditor.rosters import roster_problems
from p2pdp.auditor.verify import verify
from p2pdp.core.ids import BOOTSTRAP, CURATOR
from p2pdp.crypto.roster import Roster, RosterEntry, sign_entry, sign_roster
from tests.support.runs import quiet, ring

RUN = quiet(ring(3, 1))


def signed(entries: list[RosterEntry], curator: RosterEntry | None = None) -> Roster:
    """A roster that bootstrap signs, whoever is in it."""
    roster = RUN.evidence.roster
    return sign_roster(
        RUN.identity(BOOTSTRAP),
        run_id=roster.run_id,
        spec_digest=roster.spec_digest,
        protocol=roster.protocol,
        facts=dict(roster.facts),
        bootstrap=roster.bootstrap,
        curator=curator or roster.curator,
        entries=entries,
    )


def test_an_honest_roster_has_no_problem_and_one_of_another_bootstrap_has() -> None:
    roster = RUN.evidence.roster
    assert list(roster_problems(roster, None)) == list(roster_problems(roster, roster.bootstrap.identity)) == []
    (what,) = roster_problems(roster, bytes(32))
    assert roster.bootstrap.identity.hex() in what


def test_one_identity_twice_is_found_whatever_its_run_keys_are() -> None:
    entries = list(RUN.evidence.roster.entries)
    double = sign_entry(RUN.identity(1), RUN.evidence.roster.run_id, entries[2].box)
    (found,) = roster_problems(signed([*entries[:2], double]), None)
    assert all(word in found for word in ("user 1", "user 2", "identity"))


def test_one_run_key_twice_is_found() -> None:
    entries = list(RUN.evidence.roster.entries)
    borrowed = sign_entry(RUN.identity(2), RUN.evidence.roster.run_id, entries[0].box)
    assert any("run key" in what for what in roster_problems(signed([*entries[:2], borrowed]), None))


@pytest.mark.parametrize("peer", [CURATOR, 1])
def test_an_entry_that_its_identity_did_not_sign_is_found(peer: int) -> None:
    entries = list(RUN.evidence.roster.entries)
    forged = replace(RUN.evidence.roster.entry(peer), signature=bytes(64))
    roster = signed(entries, forged) if peer == CURATOR else signed([entries[0], forged, entries[2]])
    assert any("no valid signature" in what for what in roster_problems(roster, None))


def test_verification_blames_bootstrap_for_its_roster() -> None:
    entries = list(RUN.evidence.roster.entries)
    found = verify(replace(RUN.evidence, roster=signed([entries[0], entries[0], entries[2]])))
    assert any(problem.peer == BOOTSTRAP and "same" in problem.what for problem in found.problems)


def test_the_part_that_a_node_has_is_enough_for_its_own_folder_only() -> None:
    part = Roster.from_bytes(RUN.evidence.roster.part([0, 2]))
    assert list(roster_problems(part, None, alone=True)) == []
    (what,) = roster_problems(part, None)
    assert "2 of 3 users" in what
    found = verify(replace(RUN.evidence, roster=part))
    assert {(problem.peer, problem.what) for problem in found.problems} >= {
        (BOOTSTRAP, what),
        (1, "the roster knows no such peer"),
    }
