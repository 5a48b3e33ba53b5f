"""Schedules thrown by seed: a few of each protocol, and the rules that the campaigns rest on."""

from __future__ import annotations

import pytest

from p2pdp.peer import pieces
from p2pdp.sim.faults import Crash, Faults
from tests.campaigns.judging import run_schedule
from tests.campaigns.known import finding
from tests.campaigns.schedules import Schedule, schedule
from tests.campaigns.simulated import judged
from tests.campaigns.specs import covered, specs_of


@pytest.mark.parametrize("protocol", covered())
def test_schedules_without_liars_break_no_rule(protocol: str) -> None:
    for seed in range(5):
        case = schedule(protocol, seed, kinds=())
        _, found = run_schedule(case)
        assert found == [], case.said()


@pytest.mark.parametrize("protocol", covered())
def test_schedules_with_liars_break_no_rule_but_what_is_known(protocol: str) -> None:
    for seed in range(4):
        case = schedule(protocol, seed)
        said = judged(case)
        assert not said.violations or said.known is not None, (said.violations, said.story)


@pytest.mark.parametrize(
    ("protocol", "seed"),
    [
        ("gossip.average", 1038),  # an answer that got lost five times looked as if it was withheld
        ("pairwise.sum", 1011),  # so did what users owe each other
        ("walk.histogram", 5144),  # and the head of who had not got the result
        ("walk.sum", 5104),  # bootstrap, set back to its enrolment, put everybody out
        ("shuffle.all", 10106),  # a standstill was called before the curator said for whom it waited
        ("gossip.average", 20003),  # users told bootstrap, which was gone, ever more often that nothing moved
        ("gossip.sgd", 20040),  # what was held back came after what followed it
        ("walk.sum", 20041),  # verification blamed who complained of an unproven claim
        ("walk.sgd", 50180),  # two of four kept an item, and said nothing of it
        ("walk.sum", 300850),  # a user whose seat got lost three times was out when the run ended early
        ("walk.sgd", 301585),  # so was this one
        ("gossip.randomized", 401523),  # a disk was set back, and the only one who knew crashed before it had stored it
        ("walk.sum", 400540),  # two honest users dispute what a liar made up, and its ledger shows it
    ],
)
def test_cases_that_once_broke_a_rule(protocol: str, seed: int) -> None:
    case = schedule(protocol, seed)
    assert run_schedule(case)[1] == [], case.said()


@pytest.mark.parametrize("protocol", covered())
def test_values_in_pieces_break_no_rule_either(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if each value were a large one."""
    monkeypatch.setattr(pieces, "PIECE_BYTES", 10)
    for seed in (710_001, 710_002):
        case = schedule(protocol, seed)
        said = judged(case)
        assert not said.violations or said.known is not None, (said.violations, said.story)


def test_a_seed_gives_the_same_case_and_the_same_run() -> None:
    worlds = []
    for _ in range(2):
        case = schedule("walk.sum", 11, kinds=("double",))
        world, _ = run_schedule(case)
        worlds.append((case, world.events, world.now_s, {peer: world.ledger(peer) for peer in world.processes}))
    assert worlds[0] == worlds[1]


def test_frames_that_come_twice_bring_no_storm_of_hellos() -> None:
    faults = Faults(duplication=0.35, delay_s=0.002, crashes=tuple(Crash(user, at_record=14) for user in range(4)))
    for seed in range(6):
        case = Schedule("walk.sum", seed, specs_of("walk.sum")[1], faults)
        assert run_schedule(case)[1] == []


def test_each_run_has_a_story_with_its_seed() -> None:
    assert "walk.sum seed 3" in schedule("walk.sum", 3).said()
    assert finding(("falseskeleton",), "redrawn") is None
