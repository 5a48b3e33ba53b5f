"""Something to be shown over HTTP, and requests to ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from p2pdp.core.happenings import happening
from p2pdp.report.html import html_page
from p2pdp.web.page import Subject
from p2pdp.web.responder import NoIndex, Request
from p2pdp.web.status import Status
from tests.support.made import facts

NOW_S = 1_700_000_100.0
BEGAN_S = 1_700_000_000.0
RESULT = (
    b'{"run_id": "ab", "protocol": "walk.sum", "nodes": 3, "started": null, "seconds": 1.0, "startup_seconds": 0.5, '
    b'"messages": 7, "estimate": [1.0], "standard_error": "inf", "truth": null, "error": null, "missing": [], '
    b'"faults": {}}'
)
PARTICIPANTS = (
    b'{"edition": "participants", "run_id": "ab", "protocol": "walk.sum", "nodes": 3, "started": null, '
    b'"estimate": [1.0], "standard_error": "inf", "missing": [], "claims": [], "refusals": []}'
)
PARTICIPANTS_PAGE = b"<!DOCTYPE html>\n<html></html>\n"
PAGES = {"trust": "# Whom to trust\n\nNobody.\n", "walks": "# Walks\n\nSee [trust](trust.md).\n"}
AUDIT = (
    b'{"run_id": "ab", "protocol": "walk.sum", "nodes": 3, "delta": 1e-6, "verified": "complete", '
    b'"claims": [], "refusals": []}'
)
LISTED = {
    "run_id": "ab", "protocol": "walk.sum", "transport": "tcp", "nodes": 3, "n": None, "state": "running",
    "started": None, "seconds": None, "excluded": 0, "epsilon_max": "inf",
    "headline": {"epsilon": "inf"}, "worst": None,
}  # fmt: skip


COSTS = (
    {"observer": "node", "epsilon": 0.5, "delta": 1e-6, "method": "local", "conditioning": "a-priori",
     "reading": "strong"},
    {"observer": "network", "epsilon": "inf", "delta": 1e-6, "method": None, "conditioning": None, "reading": "none"},
)  # fmt: skip
SUBJECT = Subject(
    title="walk.sum among 3 users", terms=[("protocol", "walk.sum"), ("users", "3")], edges=((0, 1), (0, 2), (1, 2)),
    silent_after_s=60.0, costs=COSTS, costs_if_out=COSTS[1:], costs_note="",
)  # fmt: skip


def first(role: str = "bootstrap") -> Status:
    return Status(role=role, began_s=BEGAN_S, run_id="ab", protocol="walk.sum", nodes=3)


def over() -> Status:
    status = first()
    for told in (
        happening("listening", how="listening", tokens=3, address="a:1", folder="f", identity="k"),
        happening("enrolling", count=3, of=3),
        happening("roster", n=3),
        happening("begun"),
        happening("excluded", user=2),
        happening("published"),
        happening("collecting"),
        happening("done", folder="f"),
    ):
        status = status.after(told, NOW_S - 50.0)
    return status


class Shown:
    def __init__(self, status: Status | None = None, *, index: bool = True, report: bytes | None = None) -> None:
        self.now = over() if status is None else status
        self.about = SUBJECT
        self.index = index
        self.report = html_page(facts()).encode() if report is None else report

    def status(self) -> Status:
        return self.now

    def subject(self) -> Subject:
        return self.about

    def now_s(self) -> float:
        return NOW_S

    def resident_bytes(self) -> int | None:
        return 1 << 20

    def file(self, name: str) -> bytes | None:
        if self.now.state != "done":
            return None
        return {
            "result.json": RESULT,
            "audit.json": AUDIT,
            "report.html": self.report,
            "participants.json": PARTICIPANTS,
            "participants.html": PARTICIPANTS_PAGE,
        }[name]

    def runs(self, limit: int, offset: int) -> Mapping[str, Any]:
        if not self.index:
            raise NoIndex("there is no index here")
        return {"runs": [LISTED][offset : offset + limit], "total": 1}

    def guide_titles(self) -> Mapping[str, str]:
        return {"trust": "Whom to trust", "walks": "Walks"}

    def guide_text(self, topic: str) -> str:
        return PAGES[topic]


def asked(target: str, method: str = "GET", host: str | None = "127.0.0.1:8080", **headers: str) -> Request:
    given = {name.lower().replace("_", "-"): [value] for name, value in headers.items()}
    if host is not None:
        given["host"] = [host]
    return Request(method, target, lambda name: given.get(name.lower(), []))
