"""Each kind of lie on a calm network: honest users are left unharmed, and it shows where it must.

What fails today is in `known.py` and expected to: once it is mended, its lines there must go.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any, Final

import pytest

from p2pdp.core.step import Message, Send
from p2pdp.protocols.shuffle.plan import COVER_HOP
from p2pdp.sim.faults import Faults
from tests.campaigns.behaviours import KINDS, kinds_for
from tests.campaigns.judging import judge_world, run_schedule
from tests.campaigns.known import KNOWN, failing
from tests.campaigns.lying import Behaviour, Liar
from tests.campaigns.schedules import Schedule, schedule
from tests.campaigns.specs import PATIENCE_S, covered, specs_of
from tests.campaigns.worlds import LyingWorld

SEEDS: Final = {  # of cases that showed something, besides the first one of a third of the protocols
    "late": [("gossip.average", 2)],
    "reordered": [("gossip.sgd", 2), ("gossip.average", 2)],
    "wrongfields": [("gossip.average", 2)],
    "seenlie": [("shuffle.all", 2)],
    "falseskeleton": [("pairwise.sum", 0)],
    "total": [("walk.histogram", 0), ("walk.sum", 0)],
}


def _kinds() -> list[object]:
    return [
        pytest.param(
            kind, marks=[pytest.mark.xfail(strict=True, reason=why)] if (why := failing(kind)) else [], id=kind
        )
        for kind in KINDS
    ]


@pytest.mark.parametrize("kind", _kinds())
def test_a_lie_harms_nobody_else_and_shows_where_it_must(kind: str) -> None:
    possible = [protocol for protocol in covered() if kind in kinds_for(protocol)]
    cases = [(protocol, 0) for protocol in possible[list(KINDS).index(kind) % 3 :: 3]]
    for protocol, seed in cases + SEEDS.get(kind, []):
        case = schedule(protocol, seed, kinds=(kind,), calm_network=True)
        _, found = run_schedule(case)
        assert found == [], case.said()


class Dripping(Behaviour):
    """Never ends its last round of shuffling, and sends others valid cover in it all the time."""

    def sends(self, liar: Liar, send: Send) -> Iterable[Send]:
        return () if send.message == Message("mark", (liar.run.plan.rounds,)) else (send,)  # type: ignore[attr-defined]

    def acts(self, liar: Liar) -> None:
        plan: Any = liar.run.plan
        cover = Message("cover", (COVER_HOP, COVER_HOP, plan.rounds), bytes(plan.sealed_bytes))
        for user in liar.users:
            liar.send(user, cover, recorded=True)


def test_valid_cover_without_end_does_not_keep_a_run_from_standing_still() -> None:
    text = specs_of("shuffle.all")[0].replace("rounds = 3\n", "rounds = 3\ncover = true\n")
    case = Schedule("shuffle.all", 1, text, Faults(), {2: ()})
    world = LyingWorld(text, 1, Faults(), {2: [Dripping(Random(1))]})  # noqa: S311
    assert judge_world(case, world) == []
    assert world.out == []
    assert world.stopped is not None
    assert world.stopped.concerned == [[2, 0, 1, 3, 4]]
    assert world.now_s < 12 * PATIENCE_S


def test_what_is_known_is_of_kinds_that_there_are() -> None:
    assert {kind for kind, _ in KNOWN} <= KINDS.keys()
