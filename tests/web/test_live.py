from __future__ import annotations

import json
import re

from p2pdp.report.page.style import POLICY
from p2pdp.web.live import LINK, LIVE_POLICY, LIVE_STYLE, SCRIPT, SCRIPT_PATH, event, head
from tests.support.sources import TOP


def test_the_policy_adds_its_own_script_events_and_style_to_that_of_the_report() -> None:
    parts = dict(part.strip().partition(" ")[::2] for part in LIVE_POLICY.split(";"))
    assert LIVE_POLICY.startswith(POLICY)
    assert (parts["default-src"], parts["script-src"], parts["connect-src"]) == ("'none'", "'self'", "'self'")
    assert "unsafe" not in LIVE_POLICY
    assert len(re.findall(r"'sha256-[A-Za-z0-9+/=]{44}'", parts["style-src"])) == 2


def test_the_head_reloads_without_a_script_until_the_run_is_over() -> None:
    found = head("/events", over=False)
    assert f'<script src="{SCRIPT_PATH}" defer="" data-events="/events"></script>' in found
    assert '<noscript><meta http-equiv="refresh"' in found
    assert "refresh" not in head("/events", over=True)
    assert LIVE_STYLE in found


def test_the_script_has_no_address_but_its_page_and_the_events() -> None:
    assert not re.search(r"https?:|//[a-z]|eval|Function\(|document\.write|cookie|localStorage", SCRIPT)
    assert SCRIPT.count("fetch(") == SCRIPT.count("fetch(location.pathname)") == 1
    assert f'getElementById("{LINK}")' in SCRIPT
    assert "RELOAD" not in SCRIPT


def test_an_event_is_one_line_of_json_whatever_the_parts_hold() -> None:
    parts = {"now": "two\nlines\r\n\ndata: x"}
    lines = event(parts).decode().split("\n")
    assert [line.partition(":")[0] for line in lines] == ["retry", "data", "", ""]
    assert json.loads(lines[1].removeprefix("data: ")) == parts


def test_no_page_has_a_script_of_its_own() -> None:
    for path in (TOP / "p2pdp" / "report").rglob("*.py"):
        assert "<script" not in path.read_text()
