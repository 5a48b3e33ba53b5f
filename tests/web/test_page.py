from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from p2pdp.core.happenings import happening
from p2pdp.web.live import LIVE_POLICY
from p2pdp.web.page import AUDITOR, OWNER, PARTICIPANTS, Known, Subject, View, live_page, parts_of, pushed
from p2pdp.web.status import Status
from tests.support.shown import BEGAN_S, COSTS, NOW_S, SUBJECT, first, over

RESULT: dict[str, Any] = {
    "estimate": 1.5, "standard_error": "inf", "headline": COSTS[0], "worst": COSTS[1],
}  # fmt: skip
READERS = (PARTICIPANTS, AUDITOR, OWNER)


def told(status: Status, *events: str, **facts: Any) -> Status:
    for event in events:
        status = status.after(happening(event, **facts), NOW_S)
    return status


def view(status: Status | None = None, reader: str = PARTICIPANTS, **more: Any) -> View:
    status = first("node" if reader == OWNER else "bootstrap") if status is None else status
    return View(reader, status, more.pop("subject", SUBJECT), **more)


@pytest.mark.parametrize("reader", READERS)
def test_a_page_has_the_same_parts_from_the_first_second_to_the_end(reader: str) -> None:
    role = "node" if reader == OWNER else "bootstrap"
    early = live_page(view(first(role), reader, subject=Subject()))
    late = live_page(view(replace(over(), role=role) if role == "bootstrap" else first(role), reader, result=RESULT))
    places = [re.findall(r'<div [^>]*id="([^"]+)"[^>]*data-part', page) for page in (early, late)]
    assert places[0] == places[1]
    assert set(places[0]) == pushed(view(first(role), reader)).keys() - {"title", "heading"}
    for page in (early, late):
        assert page.startswith("<!DOCTYPE html>")
        assert LIVE_POLICY in unescape(page)
        assert reader in unescape(page)


def test_each_state_says_where_the_run_is() -> None:
    status = first()
    assert 'aria-current="step">start<' in parts_of(view(status))["state"]
    status = told(status, "listening", how="h", tokens=3, address="a", folder="f", identity="k").after(
        happening("enrolling", count=2, of=3), NOW_S
    )
    assert "2 of 3 nodes have enrolled" in parts_of(view(status))["now"]
    assert pushed(view(status))["title"].startswith("enrolling 2/3")
    status = told(status, "roster", n=3).counted(1, {}, (0, 2))
    assert "1 of 3 users are ready" in parts_of(view(status))["now"]
    assert "users 0, 2" in parts_of(view(status))["now"]
    status = told(status, "begun")
    assert 'aria-current="step">running<' in parts_of(view(status))["state"]
    assert "user 1" in parts_of(view(told(status, "silent", user=1)))["now"]
    cut_off = status
    for user in range(3):
        cut_off = told(cut_off, "silent", user=user)
    assert "cut off" in parts_of(view(cut_off))["now"]
    assert "Blocked" in parts_of(view(told(status, "blocked", user=1)))["now"]


def test_costs_are_those_that_hold_and_at_the_end_those_of_the_result() -> None:
    before = parts_of(view())["costs"]
    assert "strong protection" in before
    assert "infinite" in before
    out = parts_of(view(told(told(first(), "roster", n=3), "excluded", user=1)))["costs"]
    assert "strong protection" not in out
    assert "Somebody was put out" in out
    none = parts_of(view(subject=Subject(costs_note="No bound is known in advance: too large.")))["costs"]
    assert "too large" in none
    late = parts_of(view(over(), result={**RESULT, "headline": COSTS[1]}))["costs"]
    assert "strong protection" not in late
    assert late.count("<tr>") == 2, "the same bound is shown once"
    assert 'href="/report.html"' in late


def test_the_result_is_on_the_page_when_it_is_there() -> None:
    assert "Nothing is published yet" in parts_of(view())["result"]
    found = parts_of(view(over(), result=RESULT))["result"]
    assert "1.5" in found
    assert "infinite" in found
    assert "/auditor/report.html" not in found
    assert "/auditor/report.html" in parts_of(view(over(), AUDITOR, result=RESULT))["result"]
    each = parts_of(view(over(), result={"estimate": None, "standard_error": None}))["result"]
    assert "each user has its own" in each
    assert "left no result" in parts_of(view(over()))["result"]


def test_only_the_auditor_reads_durations_restarts_and_faults() -> None:
    """Whatever of these changes, participants' pages stay as they are."""
    status = over()
    other = replace(
        told(status.counted(2, {"malformed": 3, "new_kind": 1}), "restarted", user=1),
        entered_s={state: at_s + 7.0 * place for place, (state, at_s) in enumerate(status.entered_s.items())},
        began_s=BEGAN_S - 5.0,
    )
    assert live_page(view(status)) == live_page(view(other))
    assert pushed(view(status)) == pushed(view(other))
    mine, its = (parts_of(view(one, AUDITOR))["auditor"] for one in (status, other))
    assert mine != its
    for word in ("malformed", "new_kind", "1 processes were started again"):
        assert word in its
        assert word not in live_page(view(other))


def test_an_owner_reads_limits_data_and_what_was_spent() -> None:
    node = told(first("node"), "reachable")
    subject = replace(
        SUBJECT, own=(("Your data", [("rows", 40)]), ("[budget]", [])), spent=COSTS, outcome=[("estimate", "7")]
    )
    parts = parts_of(view(told(node, "seat", user=2, n=3), OWNER, subject=subject))
    assert "user 2 of 3" in parts["now"]
    assert "40" in parts["own"]
    assert "None is set." in parts["own"]
    assert "After the run" in parts["costs"]
    assert "7" in parts["result"]
    assert "Nothing yet." in parts_of(view(node, OWNER))["result"]


def test_texts_of_others_are_never_obeyed() -> None:
    bad = "<script>alert(1)</script>"
    subject = replace(SUBJECT, title=bad, terms=[(bad, bad)], words=bad, own=((bad, [(bad, bad)]),), costs_note=bad)
    for reader in READERS:
        page = live_page(view(None, reader, subject=subject))
        assert bad not in page
        parts = pushed(view(None, reader, subject=subject))
        assert not [name for name, part in parts.items() if bad in part and name not in ("title", "heading")]


def test_what_becomes_known_is_added_to_what_is_known() -> None:
    known = Known()
    known.take(title="one", words="two")
    known.take(words="three")
    assert (known.subject.title, known.subject.words) == ("one", "three")
