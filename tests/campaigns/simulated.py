"""The campaigns over simulated schedules: `schedules` throws everything, `liars` one kind of lie on a calm network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.campaigns.behaviours import KINDS, kinds_for
from tests.campaigns.judging import run_schedule
from tests.campaigns.known import finding
from tests.campaigns.oracle import Violation
from tests.campaigns.running import Campaign, Judged
from tests.campaigns.schedules import Schedule, schedule
from tests.campaigns.specs import covered
from tests.campaigns.worlds import LyingWorld


def judged(case: Schedule) -> Judged:
    world, found = run_schedule(case)
    return Judged(found, explained(case.kinds, found), case.said() if found else "", counted(case, world))


def explained(kinds: Sequence[str], found: Sequence[Violation]) -> str | None:
    """Return the finding that explains the first violation; what follows from it is not judged by itself."""
    return finding(kinds, found[0].kind) if found else None


def counted(case: Schedule, world: LyingWorld) -> Counter[str]:
    traffic = world.oracle.traffic
    counts = Counter(frames=traffic.frames, messages=traffic.messages, again=traffic.again, out=len(world.out))
    counts["runs with liars"] = bool(case.lies)
    counts["crashes"] = len(case.faults.crashes)
    counts["broken liars"] = len(world.broken)
    return counts


def _liar_parts() -> list[str]:
    return [f"{kind}:{protocol}" for kind in KINDS for protocol in covered() if kind in kinds_for(protocol)]


def _liar(part: str, seed: int) -> Judged:
    kind, _, protocol = part.partition(":")
    return judged(schedule(protocol, seed, kinds=(kind,), calm_network=True))


SCHEDULES = Campaign(
    "schedules",
    "faults of all kinds and liars, over every protocol",
    covered,
    lambda protocol, seed: judged(schedule(protocol, seed)),
)
LIARS = Campaign("liars", "one kind of lie on a calm network, over every protocol", _liar_parts, _liar)
