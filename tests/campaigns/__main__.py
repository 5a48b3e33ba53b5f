"""The command of the campaigns: see `tests/campaigns/__init__.py`."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from tests.campaigns.campaigns import CAMPAIGNS
from tests.campaigns.running import Report, run, show_line, write


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns", description="Campaigns against p2pdp.")
    parser.add_argument("name", choices=[*CAMPAIGNS, "all"])
    parser.add_argument("--part", help="only this part: a protocol, a decoder, ...")
    parser.add_argument("--seed", type=int, help="the first seed; alone it runs exactly that one")
    parser.add_argument("--count", type=int, help="so many seeds in each part")
    parser.add_argument("--hours", type=float, help="for so long, of all campaigns together")
    parser.add_argument("--report", type=Path, help="a JSON file with all numbers and failing seeds")
    given = parser.parse_args(arguments)
    count = given.count
    if count is None and given.hours is None:
        count = 1
    chosen = list(CAMPAIGNS.values()) if given.name == "all" else [CAMPAIGNS[given.name]]
    seconds = None if given.hours is None else given.hours * 3600.0 / len(chosen)
    each = partial(run, seed=given.seed or 0, count=count, seconds=seconds, part=given.part, say=show_line)
    reports: list[Report] = []
    for campaign in chosen:
        report = each(campaign, save=given.report if len(chosen) == 1 else None)
        reports.append(report)
        _show(report)
        if given.report is not None:
            write(given.report, reports)
    return 0 if all(report.clean for report in reports) else 1


def _show(report: Report) -> None:
    told = report.to_json()
    show_line(f"{report.campaign}: {told['cases']} cases, {told['cases_per_cpu_s']} a second of CPU; {told['counts']}")
    for kind, count in sorted(report.failed.items()):
        show_line(f"  failed: {kind} {count} times")
    for finding, count in sorted(report.known.items()):
        show_line(f"  known: {count} times {finding}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
