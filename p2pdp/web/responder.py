"""Answers to requests: a pure function of the request and of what there is to be shown.

Guarantee: no request changes anything; only GET and HEAD are answered; every path is one of a fixed table, so that none
leads to a file that is not meant to be read. The probes are open. Participants' documents ask for the read token where
there is one, the auditor's for the auditor's token always, a node's page is its owner's (`web/guard.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl

from p2pdp.report.page.style import POLICY
from p2pdp.web.answers import JSON, Answer, document, problem
from p2pdp.web.guard import Guard, Header
from p2pdp.web.guide import PREFIX, guide_list, guide_page
from p2pdp.web.live import EVENTS, LIVE_POLICY, SCRIPT, SCRIPT_PATH
from p2pdp.web.openapi import LIMIT, LIMIT_MAX, OFFSET_MAX, description
from p2pdp.web.page import AUDITOR, OWNER, PARTICIPANTS, Subject, View, live_page, pushed
from p2pdp.web.status import CONTENT_TYPE, Status, metrics_text

TARGET_CHARS_MAX: Final = 2048
_NO_FRAME: Final = "frame-ancestors 'none'"
PAGE_POLICY: Final = f"{POLICY}; {_NO_FRAME}"
JAVASCRIPT: Final = "text/javascript; charset=utf-8"
RESULT: Final = "result.json"
AUDIT: Final = "audit.json"
REPORT: Final = "report.html"
PARTICIPANTS_RESULT: Final = "participants.json"
PARTICIPANTS_REPORT: Final = "participants.html"
HTML: Final = "text/html; charset=utf-8"
_METHODS: Final = ("GET", "HEAD")
_PROBES: Final = frozenset(("/healthz", "/readyz", "/metrics", "/auditor/metrics"))


class NoIndex(Exception):
    """There is no index, or it cannot be asked; the text says why."""


class Content(Protocol):
    """The source of all that is shown; `file` and `runs` may block, and are called from threads of their own."""

    def status(self) -> Status: ...

    def subject(self) -> Subject: ...

    def now_s(self) -> float: ...

    def resident_bytes(self) -> int | None: ...

    def file(self, name: str) -> bytes | None:
        """Return a file of the run's folder; None while it is not there."""

    def runs(self, limit: int, offset: int) -> Mapping[str, Any]:
        """Return a page of the index of runs; may raise `NoIndex`."""

    def guide_titles(self) -> Mapping[str, str]:
        """Return the topics of the guide, each with its title."""

    def guide_text(self, topic: str) -> str:
        """Return the page on one of these topics, as Markdown."""


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    target: str
    header: Header


class _Reader(Enum):
    ANYBODY = auto()
    PARTICIPANT = auto()
    AUDITOR = auto()
    OWNER = auto()


@dataclass(frozen=True)
class _Route:
    answer: Callable[[Mapping[str, int]], Answer]
    reader: _Reader = _Reader.PARTICIPANT
    takes_time: bool = False
    parameters: tuple[str, ...] = ()


class Responder:
    def __init__(self, content: Content, guard: Guard, version: str) -> None:
        self._content = content
        self._guard = guard
        self._version = version
        whole = content.status().role == "bootstrap"
        self._titles = content.guide_titles()
        self._description = description(version, whole=whole, topics=self._titles)
        self._routes = {
            "/healthz": _Route(lambda _: document({"status": "ok"}), _Reader.ANYBODY),
            "/readyz": _Route(lambda _: self._readiness(), _Reader.ANYBODY),
            "/metrics": _Route(lambda _: self._metrics(full=False)),
            "/openapi.json": _Route(lambda _: document(self._description)),
            "/auditor/metrics": _Route(lambda _: self._metrics(full=True), _Reader.AUDITOR),
            SCRIPT_PATH: _Route(lambda _: Answer(HTTPStatus.OK, SCRIPT.encode(), JAVASCRIPT)),
            PREFIX: _Route(lambda _: _html(guide_list(self._titles)), takes_time=True),
        }
        self._routes |= {f"{PREFIX}/{topic}": self._explains(topic) for topic in self._titles}
        if whole:
            self._routes |= {
                **self._page("/", "/events", PARTICIPANTS, _Reader.PARTICIPANT),
                **self._page("/auditor", "/auditor/events", AUDITOR, _Reader.AUDITOR),
                "/report.html": self._shows(PARTICIPANTS_REPORT, HTML),
                "/api/v1/run": _Route(lambda _: document(self._status.for_participants())),
                "/api/v1/result": self._shows(PARTICIPANTS_RESULT, JSON),
                "/auditor/report.html": self._shows(REPORT, HTML, _Reader.AUDITOR),
                "/api/v1/auditor/run": _Route(lambda _: self._whole_status(), _Reader.AUDITOR),
                "/api/v1/auditor/result": self._shows(RESULT, JSON, _Reader.AUDITOR),
                "/api/v1/audit": self._shows(AUDIT, JSON, _Reader.AUDITOR),
                "/api/v1/runs": _Route(self._runs, _Reader.AUDITOR, takes_time=True, parameters=("limit", "offset")),
            }

        else:
            self._routes |= self._page("/", "/events", OWNER, _Reader.OWNER)

    def _page(self, path: str, events: str, whose: str, reader: _Reader) -> dict[str, _Route]:
        """Return the routes of one reader's page and of its events."""

        def view() -> View:
            document = self._content.file(PARTICIPANTS_RESULT) if whose != OWNER else None
            result = None if document is None else json.loads(document)
            return View(whose, self._status, self._content.subject(), result, events)

        def page(_: Mapping[str, int]) -> Answer:
            return Answer(HTTPStatus.OK, live_page(view()).encode(), HTML, f"{LIVE_POLICY}; {_NO_FRAME}")

        def stream(_: Mapping[str, int]) -> Answer:
            return Answer(HTTPStatus.OK, b"", EVENTS, feed=lambda: pushed(view()))

        return {path: _Route(page, reader, takes_time=True), events: _Route(stream, reader)}

    def _shows(self, name: str, content_type: str, reader: _Reader = _Reader.PARTICIPANT) -> _Route:
        return _Route(lambda _: self._file(name, content_type), reader, takes_time=True)

    def _explains(self, topic: str) -> _Route:
        return _Route(lambda _: _html(guide_page(self._content.guide_text(topic), self._titles)), takes_time=True)

    @property
    def _status(self) -> Status:
        return self._content.status()

    def takes_time(self, request: Request) -> bool:
        """Return whether the answer may wait for a disk or a database."""
        route = self._routes.get(request.target.partition("?")[0])
        return route is not None and route.takes_time

    def is_probe(self, request: Request) -> bool:
        """Return whether a machine asks how this process is."""
        return request.target.partition("?")[0] in _PROBES

    def answer(self, request: Request) -> Answer:
        path, _, query = request.target.partition("?")
        if not path.startswith("/") or len(request.target) > TARGET_CHARS_MAX:
            return problem(HTTPStatus.BAD_REQUEST, "the target must be a path, and a short one")
        refused = self._guard.refuses_host(request.header)
        if refused is not None:
            return refused
        route = self._routes.get(path)
        refused = self._refuses(_Reader.PARTICIPANT if route is None else route.reader, request.header)
        if refused is not None:
            return refused
        if route is None:
            return problem(HTTPStatus.NOT_FOUND, "there is nothing here; /openapi.json tells what there is")
        if request.method not in _METHODS:
            return problem(HTTPStatus.METHOD_NOT_ALLOWED, "this is for reading only", ("Allow", ", ".join(_METHODS)))
        lengths = request.header("Content-Length")
        if request.header("Transfer-Encoding") or any(length.strip() != "0" for length in lengths):
            return problem(HTTPStatus.BAD_REQUEST, "a question has no body")
        try:
            numbers = _numbers(query, route.parameters)
        except ValueError as error:
            return problem(HTTPStatus.BAD_REQUEST, str(error))
        return route.answer(numbers)

    def _refuses(self, reader: _Reader, header: Header) -> Answer | None:
        if reader is _Reader.ANYBODY:
            return None
        if reader is _Reader.OWNER:
            return self._guard.refuses_owner(header)
        return self._guard.refuses_auditor(header) if reader is _Reader.AUDITOR else self._guard.refuses_reader(header)

    def _whole_status(self) -> Answer:
        return document(self._status.to_json(self._content.now_s()))

    def _readiness(self) -> Answer:
        status = self._status
        code = HTTPStatus.OK if status.is_ready else HTTPStatus.SERVICE_UNAVAILABLE
        return document({"ready": status.is_ready, "state": status.state}, code)

    def _metrics(self, *, full: bool) -> Answer:
        shown = self._content
        text = metrics_text(self._status, self._version, shown.now_s(), shown.resident_bytes(), full=full)
        return Answer(HTTPStatus.OK, text.encode(), CONTENT_TYPE)

    def _file(self, name: str, content_type: str) -> Answer:
        body = self._content.file(name)
        if body is None:
            over = self._status.state == "done"
            why = f"this run left no {name}" if over else "the run is not over; /api/v1/run tells how far it is"
            return problem(HTTPStatus.NOT_FOUND, why)
        return Answer(HTTPStatus.OK, body, JSON) if content_type == JSON else _page(body)

    def _runs(self, numbers: Mapping[str, int]) -> Answer:
        try:
            return document(self._content.runs(numbers.get("limit", LIMIT), numbers.get("offset", 0)))
        except NoIndex as error:
            return problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error))


def _page(body: bytes) -> Answer:
    return Answer(HTTPStatus.OK, body, HTML, PAGE_POLICY)


def _html(text: str) -> Answer:
    return _page(text.encode())


def _numbers(query: str, known: tuple[str, ...]) -> dict[str, int]:
    """Return the parameters of a query, each a number in its range and given once; raise `ValueError` otherwise."""
    found: dict[str, int] = {}
    for name, text in parse_qsl(query, keep_blank_values=True, max_num_fields=8):
        if name not in known or name in found:
            expected = f"are {' and '.join(known)}, each once" if known else "there are none"
            raise ValueError(f"a parameter is unknown here, or given twice: {expected}")
        least, most = (1, LIMIT_MAX) if name == "limit" else (0, OFFSET_MAX)
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(most)) else -1
        if not least <= number <= most:
            raise ValueError(f"{name} must be a number from {least} to {most}")
        found[name] = number
    return found
