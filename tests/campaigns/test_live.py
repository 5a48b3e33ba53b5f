"""Two short live crash campaigns, and the rule about traces; the long ones are run by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from p2pdp.files.folder import peer_folder
from tests.campaigns import live
from tests.campaigns.live import strike, trace_problems
from tests.support.missing import missing


@pytest.mark.parametrize("part", ["tcp", "packed"])
def test_kills_change_nothing_that_crosses_the_wires(part: str) -> None:
    judged = strike(part, 3, hops=1500, strikes=2)
    assert judged.violations == [], judged.story


@pytest.mark.parametrize(("required", "violations"), [("", []), ("all", ["live"])])
def test_a_part_whose_programs_are_missing_is_skipped_or_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], required: str, violations: list[str]
) -> None:
    monkeypatch.setenv("P2PDP_REQUIRE", required)
    monkeypatch.setitem(live.MACHINES, "postgres", lambda _seed: missing("install it"))
    judged = live.LIVE.run("postgres", 1)
    assert [violation.kind for violation in judged.violations] == violations
    assert ("install it" in capsys.readouterr().out) == (required == "")


def test_a_number_with_two_contents_is_seen(tmp_path: Path) -> None:
    place = peer_folder(tmp_path, 0)
    place.mkdir(parents=True)
    line = {"from": 1, "number": 1, "type": "token", "fields": [0, 1], "control": {"value_bytes": 25}}
    lines = [line, line, {**line, "number": None}, {**line, "number": 2}]
    trace = place / "wire.jsonl"
    trace.write_text("".join(json.dumps(one) + "\n" for one in lines))
    assert trace_problems(tmp_path, 0) == []
    trace.write_text("".join(json.dumps(one) + "\n" for one in [*lines, {**line, "fields": [0, 2]}]))
    assert [violation.kind for violation in trace_problems(tmp_path, 0)] == ["conflict"]
