"""Run a campaign: case after case, by seeds, for a number of cases or of hours; a report of what failed.

A case is a part of a campaign (a protocol, a decoder, ...) and a seed, and nothing else: the same two give the same
case. Whatever fails is printed at once with the command that runs exactly that case again.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.campaigns.oracle import Violation

EXAMPLES_MAX: Final = 20  # of one kind of failure that a report holds


class Judged(NamedTuple):
    """What one case came to: `known` is a finding that explains all of it; `counts` adds to those of the report."""

    violations: Sequence[Violation]
    known: str | None = None
    story: str = ""
    counts: Counter[str] = Counter()  # noqa: RUF012 - never changed


@dataclass(frozen=True)
class Campaign:
    """`parts` are looked up when it starts; `run` judges one case. `seconds` bounds a small run of it."""

    name: str
    about: str
    parts: Callable[[], Sequence[str]]
    run: Callable[[str, int], Judged]


@dataclass
class Report:
    campaign: str
    seed: int
    cases: Counter[str] = field(default_factory=Counter)
    cpu_s: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    examples: list[dict[str, Any]] = field(default_factory=list)
    slowest_s: float = 0.0

    @property
    def clean(self) -> bool:
        return not self.failed

    def add(self, part: str, seed: int, judged: Judged, cpu_s: float) -> bool:
        """Count a case; return whether it is an example of something new."""
        self.cases[part] += 1
        self.cpu_s[part] += cpu_s
        self.slowest_s = max(self.slowest_s, cpu_s)
        self.counts.update(judged.counts)
        if not judged.violations:
            return False
        if judged.known is not None:
            self.known[judged.known] += 1
            return False
        kind = judged.violations[0].kind
        self.failed[kind] += 1
        if self.failed[kind] <= EXAMPLES_MAX:
            self.examples.append({
                "part": part, "seed": seed, "violations": [list(one) for one in judged.violations[:3]],
                "story": judged.story, "again": again(self.campaign, part, seed),
            })  # fmt: skip
        return True

    def to_json(self) -> dict[str, Any]:
        cases, cpu_s = sum(self.cases.values()), sum(self.cpu_s.values())
        return {
            "campaign": self.campaign, "first_seed": self.seed, "cases": cases, "cpu_s": round(cpu_s, 1),
            "cases_per_cpu_s": round(cases / cpu_s, 2) if cpu_s else None, "slowest_case_s": round(self.slowest_s, 2),
            "by_part": {one: {"cases": count, "cpu_s": round(self.cpu_s[one], 1)} for one, count in self.cases.items()},
            "counts": dict(self.counts), "failed": dict(self.failed), "known": dict(self.known),
            "examples": self.examples,
        }  # fmt: skip


def again(campaign: str, part: str, seed: int) -> str:
    """Return the command that runs one case again."""
    return f"python -m tests.campaigns {campaign} --part {part} --seed {seed}"


def cases(parts: Sequence[str], seed: int) -> Iterator[tuple[str, int]]:
    """Yield the cases from this seed on: each seed in all parts."""
    while True:
        for part in parts:
            yield part, seed
        seed += 1


def run(
    campaign: Campaign,
    *,
    seed: int = 0,
    count: int | None = None,
    seconds: float | None = None,
    part: str | None = None,
    say: Callable[[str], None] = lambda _line: None,
    save: Path | None = None,
) -> Report:
    """Run cases until there were so many in each part, or the time is over; `save` is written from time to time."""
    parts = campaign.parts() if part is None else [part]
    report = Report(campaign.name, seed)
    until_s = None if seconds is None else time.monotonic() + seconds
    saved_s = time.monotonic()
    for one, number in cases(parts, seed):
        if count is not None and number >= seed + count:
            break
        if until_s is not None and time.monotonic() >= until_s:
            break
        began_s = time.process_time()
        judged = campaign.run(one, number)
        if report.add(one, number, judged, time.process_time() - began_s):
            kind, what = judged.violations[0]
            say(f"FAILED {kind}: {what}\n  {judged.story}\n  {again(campaign.name, one, number)}")
        if save is not None and time.monotonic() - saved_s > 30.0:
            write(save, [report])
            saved_s = time.monotonic()
    return report


def write(place: Path, reports: Sequence[Report]) -> None:
    place.write_text(json.dumps([report.to_json() for report in reports], indent=1) + "\n", encoding="utf-8")


def show_line(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)
    sys.stdout.flush()
