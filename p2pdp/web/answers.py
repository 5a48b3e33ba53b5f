"""Answers: status, headers and body. Errors are problem documents (RFC 9457), which repeat nothing of the request."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"
NOTHING_LOADED: Final = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
_ALWAYS: Final = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}

Feed = Callable[[], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """`more` headers are pairs, for some stand there more than once.

    A `feed` goes on after `body`: it returns the parts of a page as they are now, of which those that changed are sent.
    """

    status: int
    body: bytes
    content_type: str
    policy: str = NOTHING_LOADED
    more: tuple[tuple[str, str], ...] = ()
    feed: Feed | None = None

    @property
    def headers(self) -> list[tuple[str, str]]:
        found = _ALWAYS | {"Content-Security-Policy": self.policy, "Content-Type": self.content_type}
        return [*found.items(), *self.more]


def document(content: Mapping[str, Any], status: int = HTTPStatus.OK) -> Answer:
    return Answer(int(status), _packed(content), JSON)


def problem(status: HTTPStatus, detail: str, *more: tuple[str, str]) -> Answer:
    content = {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": detail}
    return Answer(int(status), _packed(content), PROBLEM, more=more)


def _packed(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, allow_nan=False).encode() + b"\n"
